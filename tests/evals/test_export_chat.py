"""Episodes as chat messages to learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.records.run_folder import read_run
from rpms.evals.running.export_chat import (
    DECISIONS,
    ChatFormat,
    DecidedStep,
    ExportCounts,
    Lesson,
    Per,
    export_chat,
    lines_of,
    metadata_file,
    write_chat,
)
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message
from tests.evals.sample_runs import write_run


def message(role: Any, content: str) -> Message:
    return Message(role=role, content=content)


def lesson(*targets: bool, won: bool = True) -> Lesson:
    """An episode as layout paper has it: blocks in the first message, which change."""
    history: list[Message] = []
    decisions = []
    for number, target in enumerate(targets, start=1):
        example = [message("user", "example"), message("assistant", "Action: wait")]
        first = message("user", f"blocks {number}")
        prompt = [message("system", "act"), *example, first, *history]
        decisions.append(DecidedStep(number, prompt, f"Action: {number}", target))
        history += [message("assistant", f"Action: {number}"), message("user", f"seen {number}")]
    return Lesson({"task": "t", "condition": "D"}, decisions, won)


def weights(messages: list[dict[str, Any]]) -> list[int | None]:
    return [message.get("weight") for message in messages]


def test_a_line_for_each_decision_but_the_mistakes() -> None:
    (_, first), (line, third) = lines_of(lesson(True, False, True), DECISIONS)
    assert [first, third] == [
        {"task": "t", "condition": "D", "step": 1}, {"task": "t", "condition": "D", "step": 3}
    ]  # fmt: skip
    assert [m["content"] for m in line["messages"]][3:] == [
        "blocks 3", "Action: 1", "seen 1", "Action: 2", "seen 2", "Action: 3"
    ]  # fmt: skip
    assert weights(line["messages"]) == [None, None, 0, None, 0, None, 0, None, 1]


def test_an_episode_as_one_conversation_keeps_its_mistakes_without_weight() -> None:
    ((line, about),) = lines_of(lesson(True, False, True), ChatFormat("episode"))
    assert [m["content"] for m in line["messages"]] == [
        "act", "example", "Action: wait", "blocks 1", "Action: 1", "seen 1", "Action: 2", "seen 2",
        "Action: 3",
    ]  # fmt: skip
    assert weights(line["messages"]) == [None, None, 0, None, 1, None, 0, None, 1]
    assert about == {"task": "t", "condition": "D", "steps": 3, "not_learned": [2]}


@pytest.mark.parametrize("per", ["decision", "episode"])
def test_lost_episodes_teach_nothing(per: Per) -> None:
    assert [*lines_of(lesson(True, won=False), ChatFormat(per))] == []
    assert [*lines_of(lesson(False), ChatFormat(per))] == []


def test_a_long_episode_may_give_a_few_decisions_from_all_of_it() -> None:
    steps = [about["step"] for _, about in lines_of(lesson(*[True] * 9), ChatFormat(most=3))]
    assert len(steps) == 3
    assert steps[0] <= 3 < steps[1] <= 6 < steps[2]
    assert len([*lines_of(lesson(True, True), ChatFormat(most=3))]) == 2


def test_both_files_have_the_same_lines(tmp_path: Path) -> None:
    out = tmp_path / "new" / "lines.jsonl"
    done = write_chat([lesson(True, False, True), lesson(True, won=False)], out)
    assert done == ExportCounts(episodes=2, lost=1, lines=2, targets=2)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [[*row] for row in rows] == [["messages"], ["messages"]]
    assert metadata_file(out).name == "lines.meta.jsonl"
    assert len(metadata_file(out).read_text().splitlines()) == 2


def test_an_interrupted_export_leaves_what_was_there(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Lesson]:
        yield lesson(True, True)
        raise KeyboardInterrupt

    out = tmp_path / "lines.jsonl"
    write_chat([lesson(True)], out)
    with pytest.raises(KeyboardInterrupt):
        write_chat(interrupted(), out)
    assert [len(file.read_text().splitlines()) for file in tmp_path.iterdir()] == [1, 1]


def test_a_run_gives_its_won_episodes(tmp_path: Path) -> None:
    wins = {"A": [True, False], "D": [True, True]}
    run = read_run(write_run(tmp_path / "run", wins, split="generated_seen"))
    done = export_chat(run, tmp_path / "out.jsonl", ["D"])
    assert (done.episodes, done.lost) == (2, 0)
    assert done.lines == done.targets > 0
    about = [json.loads(line) for line in (tmp_path / "out.meta.jsonl").read_text().splitlines()]
    assert {row["condition"] for row in about} == {"D"}


def test_a_run_on_official_games_is_refused(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", {"A": [True]}, split="valid_seen"))
    with pytest.raises(RpmsError, match="split 'valid_seen' of alfworld is a test split"):
        export_chat(run, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
