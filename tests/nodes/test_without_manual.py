"""Without rules nothing reads Tiers 2 and 3: not the prompt, and not belief, sub-goal or memory.

ScienceWorld's belief and goals once read tables of the manual's own files, around every switch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld import things
from rpms.memory_store import parse_entry, write_snapshot
from rpms.nodes.state import EpisodeState
from tests.nodes.test_prompt_build import BOIL, MEMORIES, OPENING, SCRIPT

Play = Callable[..., list[EpisodeState]]
WORLD = get_environment("scienceworld")


def commands_alone(folder: Path) -> None:
    """A manual of the commands' forms: replies are read by them, and everybody is shown them."""
    actions = load_manual(WORLD.name).actions
    rules = [{"id": r.id, "name": r.name, "syntax": r.syntax} for r in actions]
    tier = {"tier": "environment", "actions": rules}
    (folder / "environment.yaml").write_text(yaml.safe_dump(tier))
    (folder / "domain.yaml").write_text("tier: domain\nprocedures: {}\n")


@pytest.mark.parametrize("condition", ["A", "S", "C"])
def test_the_prompts_are_the_same_without_the_manual(
    condition: str, play_script: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "science.jsonl"
    write_snapshot(memory, WORLD.name, [parse_entry(entry) for entry in MEMORIES])

    def prompts(**settings: Any) -> list[Any]:
        states = play_script(condition, SCRIPT, BOIL, OPENING, memory_file=str(memory), **settings)
        assert len(states) == len(SCRIPT) + 1
        return [state["prompt"] for state in states]

    usual = prompts()
    gone = tmp_path / "rules"
    gone.mkdir()
    commands_alone(gone)
    shipped = WORLD.rules
    monkeypatch.setattr(WORLD, "rules", gone, raising=False)
    really_open = Path.open

    def watched(path: Path, *args: Any, **kwargs: Any) -> Any:
        assert shipped not in path.parents, f"{path} was read"
        return really_open(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", watched)
    monkeypatch.setattr(Path, "read_text", lambda path, **_: watched(path, encoding="utf-8").read())
    for table in (things.tables, things.renamed, things._vocabulary, things.kinds):
        table.cache_clear()
    assert load_manual(WORLD.name).domain.categories == {}
    assert prompts(seed=1) == usual  # another seed, so that it is played again


def test_the_words_of_a_step_come_with_the_rules_and_its_target_without(play_script: Play) -> None:
    for condition, rules in (("S", False), ("B", True)):
        state = play_script(condition, SCRIPT, BOIL, OPENING)[0]
        text = "\n".join(str(message["content"]) for message in state["prompt"])
        assert f"[Task Goal] {BOIL['goal']}" in text
        assert ("[Current Objective] find the water" in text) == rules
        assert "Progress: 0%" in text
        assert "[Current State]\n  Room: kitchen" in text
    state = play_script("S")[0]
    text = "\n".join(str(message["content"]) for message in state["prompt"])
    assert "Current sub-goal: " in text
