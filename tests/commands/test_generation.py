"""Generated homes: what the command line shows of them, and when it asks first."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rpms.commands import generation
from rpms.envs import get_environment
from rpms.envs.generation import NewScenes, watched
from tests.command_line import Rpms

SPLIT = "generated_unseen"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    return tmp_path


def homes(cache: Path) -> list[Path]:
    return [*cache.glob(f"generated/*/move/json_2.1.1/{SPLIT}/*/*/game.tw-pddl")]


def test_more_than_a_thousand_need_a_yes(rpms: Rpms, cache: Path) -> None:
    for words in (
        ("tasks", "--split", SPLIT, "--limit", "1001"),
        ("run", "--split", SPLIT, "--task", "1500"),
        ("eval", "--split", SPLIT, "--limit", "2000", "--out", cache / "run"),
        ("learn", "--limit", "1001", "--out", cache / "m.jsonl"),
        ("rules", "learn", "--explore", "1001", "--out", cache / "rules"),
    ):
        done = rpms(*words)
        assert done.code == 2 and not done.out
        (line,) = done.err.splitlines()
        assert " new homes of generated_" in line and str(cache) in line
        assert "add --yes to generate more than 1,000 at once" in line
    assert not homes(cache)


def test_many_are_announced_once_with_their_folder(
    rpms: Rpms, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "SHOWN_FROM", 6)
    monkeypatch.setattr(generation, "MANY", 8)
    first = rpms("tasks", "--split", SPLIT, "--limit", "7")
    begun, done, summary = first.err.splitlines()[:3]
    folder = homes(cache)[0].parents[2]
    assert begun == f"generating 7 new homes of {SPLIT} in {folder}"
    assert done == f"generated 7 new homes of {SPLIT}: they lie in {folder}"
    assert summary.startswith("7 tasks: ") and len(first.out.splitlines()) == 7
    assert "generat" not in rpms("tasks", "--split", SPLIT, "--limit", "7").err
    assert rpms("tasks", "--split", SPLIT, "--limit", "16").code == 2  # 9 more than there are
    assert rpms("tasks", "--split", SPLIT, "--limit", "16", "--yes").code == 0
    assert len(homes(cache)) == 16
    assert rpms("tasks", "--split", SPLIT, "--limit", "30").code == 2  # a yes is for one command


def test_in_python_nothing_is_asked(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(get_environment("alfworld").tasks(SPLIT, 110)) == len(homes(cache)) == 110
    assert list(watched("ab", NewScenes(5000, "homes", cache))) == ["a", "b"]
    assert capfd.readouterr() == ("", "")


def test_a_person_at_a_terminal_is_asked(cache: Path) -> None:
    terminal, end = pty.openpty()
    words = ["-m", "rpms", "tasks", "--split", SPLIT, "--limit", "1001"]
    process = subprocess.Popen([sys.executable, *words], stdin=end, stdout=end, stderr=end)
    os.close(end)
    os.write(terminal, b"n\n")
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the terminal of a process that has ended
            break
        shown += part
    assert process.wait() == 2
    text = " ".join(shown.decode().split())
    assert "This generates 1,001 new homes of generated_unseen in" in text
    assert "Go on? [y/N]:" in text and "no homes of generated_unseen were generated" in text
    assert not homes(cache)
