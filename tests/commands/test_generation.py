"""Generated homes: what the command line shows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.commands import generation
from rpms.envs import get_environment
from rpms.vocabulary.generation import NewScenes, watched
from tests.command_line import Rpms

SPLIT = "generated_unseen"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    return tmp_path


def homes(cache: Path) -> list[Path]:
    return [*cache.glob(f"generated/*/move/json_2.1.1/{SPLIT}/*/*/game.tw-pddl")]


def test_many_are_announced_once_with_their_folder(
    rpms: Rpms, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "SHOWN_FROM", 6)
    first = rpms("tasks", "--split", SPLIT, "--limit", "7")
    begun, done, summary = first.err.splitlines()[:3]
    folder = homes(cache)[0].parents[2]
    assert begun == f"generating 7 new homes of {SPLIT} in {folder}"
    assert done == f"generated 7 new homes of {SPLIT}: they lie in {folder}"
    assert summary.startswith("7 tasks: ") and len(first.out.splitlines()) == 7
    assert "generat" not in rpms("tasks", "--split", SPLIT, "--limit", "7").err


def test_in_python_nothing_is_shown(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(get_environment("alfworld").tasks(SPLIT, 110)) == len(homes(cache)) == 110
    assert list(watched("ab", NewScenes(5000, "homes", cache))) == ["a", "b"]
    assert capfd.readouterr() == ("", "")
