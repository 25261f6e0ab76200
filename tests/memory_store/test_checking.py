"""Entries that were not earned: found in any snapshot, and in none that is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.envs import environment_names, get_environment
from rpms.memory_store import parse_entry, read_snapshot, write_snapshot
from rpms.memory_store.lessons import unearned
from tests.command_line import Rpms

SCIENCE = {"goal_signature": "F1:find:plant", "state_signature": "room=kitchen|inventory=empty"}


def success(*steps: str, **fields: Any) -> dict[str, Any]:
    return {"id": "s1", "type": "success", "sub_goal_type": "focus_object", **SCIENCE,
            "actions": list(steps), "lifted": list(steps), "won": True, **fields}  # fmt: skip


FATAL = {
    "id": "c1", "type": "critical_failure", **SCIENCE, "failed_action": "focus on stove",
    "lifted": "focus on stove", "failure_message": "score = -100", "corrective_rule": "it ended",
}  # fmt: skip
SCHEMA = {
    "id": "x1", "type": "schema", "action_template": "look around", "action_type": "look_around",
    "success_count": 1, "failure_count": 0, "confidence": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([success("teleport to outside", "pick up dove egg")], ""),
        ([success("focus on dove egg")], ""),
        ([FATAL, success("focus on stove")], "ended an episode with the same goal badly (c1)"),
        ([success("open door", "open door")], "'open door' stands twice in a row"),
        ([success("focus on dove egg", won=False)], "its episode is not marked as won"),
        ([success("pick up dove egg", won=False)], ""),
        ([success("move {the object} to blue box")], "'blue box' means another thing"),
        ([success("move {the object} to {the task's box}")], ""),
        ([SCHEMA], "neither what the action needs nor what it does"),
    ],
)
def test_what_is_wrong_with_an_entry(entries: list[dict[str, Any]], problem: str) -> None:
    parsed = [parse_entry(entry) for entry in entries]
    found = [text for _, text in unearned(parsed, get_environment("scienceworld"))]
    assert len(found) == bool(problem)
    assert all(problem in text for text in found)


@pytest.mark.parametrize("env", environment_names())
def test_what_is_shipped_was_earned(env: str) -> None:
    _, entries = read_snapshot(get_environment(env).memory)
    assert entries and list(unearned(entries, get_environment(env))) == []


def test_the_command_lists_them_with_their_lines(rpms: Rpms, tmp_path: Path) -> None:
    good, bad = parse_entry(success("open door")), parse_entry(success("wait", "wait", id="s2"))
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "scienceworld", [good, bad])
    checked = rpms("memory", "check", file)
    assert checked.code == 1
    assert f"{file}:3: s2: 'wait' stands twice in a row" in checked.out
    write_snapshot(file, "scienceworld", [good])
    assert rpms("memory", "check", file).code == 0
