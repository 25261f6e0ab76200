"""Episodes as chat messages to learn from."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.export_chat import (
    Decided,
    Lesson,
    Per,
    Written,
    about_file,
    export_chat,
    lines_of,
    write_chat,
)
from rpms.evals.run_folder import read_run
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message
from tests.evals.sample_runs import write_run


def message(role: Any, content: str) -> Message:
    return Message(role=role, content=content)


def made(*targets: bool, won: bool = True, size: int = 1) -> Lesson:
    """An episode as layout paper has it: blocks in the first message, which change."""
    history: list[Message] = []
    decisions = []
    for number, target in enumerate(targets, start=1):
        example = [message("user", "example"), message("assistant", "Action: wait")]
        first = message("user", f"blocks {number}" * size)
        prompt = [message("system", "act"), *example, first, *history]
        decisions.append(Decided(number, prompt, f"Action: {number}", target))
        history += [message("assistant", f"Action: {number}"), message("user", f"seen {number}")]
    return Lesson({"task": "t", "condition": "D"}, decisions, won)


def weights(messages: list[dict[str, Any]]) -> list[int | None]:
    return [one.get("weight") for one in messages]


def test_a_line_for_each_decision_but_the_mistakes() -> None:
    found = [*lines_of(made(True, False, True), "decision")]
    assert [line.about for line in found] == [
        {"task": "t", "condition": "D", "step": 1}, {"task": "t", "condition": "D", "step": 3}
    ]  # fmt: skip
    assert [one["content"] for one in found[1].messages][3:] == [
        "blocks 3", "Action: 1", "seen 1", "Action: 2", "seen 2", "Action: 3"
    ]  # fmt: skip
    assert weights(found[1].messages) == [None, None, 0, None, 0, None, 0, None, 1]


def test_an_episode_as_one_conversation_keeps_its_mistakes_without_weight() -> None:
    (line,) = lines_of(made(True, False, True), "episode")
    assert [one["content"] for one in line.messages] == [
        "act", "example", "Action: wait", "blocks 1", "Action: 1", "seen 1", "Action: 2", "seen 2",
        "Action: 3",
    ]  # fmt: skip
    assert weights(line.messages) == [None, None, 0, None, 1, None, 0, None, 1]
    assert line.about == {"task": "t", "condition": "D", "steps": 3, "not_learned": [2]}


@pytest.mark.parametrize("per", ["decision", "episode"])
def test_lost_episodes_teach_nothing(per: Per) -> None:
    assert [*lines_of(made(True, won=False), per)] == []
    assert [*lines_of(made(False), per)] == []


def test_a_long_episode_may_give_a_few_decisions_from_all_of_it() -> None:
    steps = [line.about["step"] for line in lines_of(made(*[True] * 9), "decision", most=3)]
    assert len(steps) == 3
    assert steps[0] <= 3 < steps[1] <= 6 < steps[2]
    assert len([*lines_of(made(True, True), "decision", most=3)]) == 2


def test_both_files_have_the_same_lines(tmp_path: Path) -> None:
    out = tmp_path / "new" / "lines.jsonl"
    told: list[Written] = []
    done = write_chat([made(True, False, True), made(True, won=False)], out, tell=told.append)
    assert done == Written(episodes=2, lost=1, lines=2, targets=2) == told[-1]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [[*row] for row in rows] == [["messages"], ["messages"]]
    assert about_file(out).name == "lines.meta.jsonl"
    assert len(about_file(out).read_text().splitlines()) == 2


def test_an_interrupted_export_leaves_whole_lines(tmp_path: Path) -> None:
    def lessons() -> Iterator[Lesson]:
        yield made(True, True)
        raise KeyboardInterrupt

    out = tmp_path / "lines.jsonl"
    with pytest.raises(KeyboardInterrupt):
        write_chat(lessons(), out)
    for file in (out, about_file(out)):
        assert file.read_bytes().endswith(b"\n")
        assert len([json.loads(line) for line in file.read_text().splitlines()]) == 2


def test_a_line_that_breaks_off_takes_its_episode_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = json.dumps
    left = iter(range(3))

    def breaks(*words: Any, **more: Any) -> str:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return dump(*words, **more)

    monkeypatch.setattr("rpms.evals.export_chat.json.dumps", breaks)
    out = tmp_path / "lines.jsonl"
    with pytest.raises(KeyboardInterrupt):
        write_chat([made(True), made(True, True)], out)
    assert len(out.read_text().splitlines()) == len(about_file(out).read_text().splitlines()) == 1


def test_many_decisions_need_the_memory_of_one_episode(tmp_path: Path) -> None:
    def written(episodes: int) -> int:
        tracemalloc.start()
        lessons = (made(*[True] * 5, size=1000) for _ in range(episodes))
        assert write_chat(lessons, tmp_path / "lines.jsonl").lines == 5 * episodes
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert written(400) < 2 * written(10)


def test_a_run_gives_its_won_episodes(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", {"A": [True, False], "D": [True, True]}))
    done = export_chat(run, tmp_path / "out.jsonl", ["D"])
    assert (done.episodes, done.lost) == (2, 0)
    assert done.lines == done.targets > 0
    about = [json.loads(line) for line in (tmp_path / "out.meta.jsonl").read_text().splitlines()]
    assert {one["condition"] for one in about} == {"D"}


def test_a_run_on_official_games_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"A": [True]})
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "split": "valid_seen"}))
    with pytest.raises(RpmsError, match="nothing is trained on alfworld valid_seen"):
        export_chat(read_run(folder), tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
