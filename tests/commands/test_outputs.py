"""Where commands write, and how much may be asked of them; nothing special is ever replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.command_line import Rpms
from tests.evals.sample_runs import write_run


@pytest.fixture(params=["pipe", "null"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A pipe, or a link to a device."""
    place = tmp_path / str(request.param)
    os.mkfifo(place) if request.param == "pipe" else place.symlink_to("/dev/null")
    return place


WRITERS = {
    "learn": ["learn", "--limit", "1", "--workers", "0", "--out", "OUT"],
    "learn from runs": ["learn", "--from-runs", "RUN", "--allow", "x", "--out", "OUT"],
    "report": ["report", "RUN", "--html", "OUT"],
    "atif": ["export", "RUN", "--format", "atif", "--out", "OUT.jsonl"],
    "chat": ["export", "RUN", "--format", "chat", "--out", "OUT.jsonl"],
    "expert": ["export", "--expert", "--format", "chat", "--limit", "1", "--workers", "0",
               "--out", "OUT.jsonl"],
    "eval": ["eval", "--limit", "1", "--workers", "0", "--conditions", "A", "--out", "OUT"],
    "rules learn": ["rules", "learn", "--explore", "1", "--steps", "2", "--out", "OUT"],
}  # fmt: skip


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_devices_and_pipes_are_never_replaced(
    words: list[str], special: Path, tmp_path: Path, rpms: Rpms
) -> None:
    run = write_run(tmp_path / "run", {"B": [True]}, split="generated_seen")
    if "OUT.jsonl" in words:
        special = special.rename(special.with_suffix(".jsonl"))
    places = {"OUT": str(special), "OUT.jsonl": str(special), "RUN": str(run)}
    before = special.stat().st_mode
    done = rpms(*(places.get(word, word) for word in words))
    assert done.code == 2 and str(special) in done.err, done
    assert [line for line in done.err.splitlines() if "cannot write" in line]
    assert special.stat().st_mode == before and not stat.S_ISREG(before)


def test_a_rule_file_is_not_written_over_a_pipe(tmp_path: Path, rpms: Rpms) -> None:
    os.mkfifo(tmp_path / "environment.yaml")
    done = rpms("rules", "learn", "--explore", "1", "--steps", "2", "--out", tmp_path)
    assert done.code == 2 and "environment.yaml: it is a device or a pipe" in done.err
    assert stat.S_ISFIFO((tmp_path / "environment.yaml").stat().st_mode)


HUGE = str(10**20)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["tasks", "--limit", HUGE], "--limit"),
        (["tasks", "--limit", "-1"], "--limit"),
        (["learn", "--out", "m", "--limit", "-1"], "--limit"),
        (["learn", "--out", "m", "--limit", HUGE], "--limit"),
        (["learn", "--out", "m", "--rounds", HUGE], "--rounds"),
        (["eval", "--out", "r", "--limit", HUGE], "--limit"),
        (["eval", "--out", "r", "--trials", HUGE], "--trials"),
        (["eval", "--out", "r", "--repeats", "0"], "--repeats"),
        (["eval", "--out", "r", "--workers", HUGE], "--workers"),
        (["eval", "--out", "r", "--concurrency", "0"], "--concurrency"),
        (["eval", "--out", "r", "--max-steps", HUGE], "--max-steps"),
        (["demo", "--tasks", HUGE], "--tasks"),
        (["export", "--expert", "--format", "chat", "--out", "x", "--limit", HUGE], "--limit"),
        (["export", "--expert", "--format", "chat", "--out", "x", "--workers", "-1"], "--workers"),
        (["rules", "learn", "--out", "r", "--explore", HUGE], "--explore"),
        (["rules", "audit", "--games", "0"], "--games"),
        (["memory", "show", "m", "--limit", "-1"], "--limit"),
        (["eval", "--out", ""], "--out"),
        (["eval", "--out", " "], "--out"),
        (["learn", "--out", ""], "--out"),
        (["export", "--expert", "--format", "chat", "--out", ""], "--out"),
        (["rules", "learn", "--explore", "1", "--out", ""], "--out"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_too_much_too_little_and_nothing_at_all_name_the_option(
    words: list[str], option: str, rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rpms(*words)
    assert done.code == 2 and f"'{option}'" in done.err and done.err.count("\n") == 1
    assert [*tmp_path.iterdir()] == []
