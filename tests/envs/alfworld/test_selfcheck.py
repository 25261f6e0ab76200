from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rpms.envs.alfworld import selfcheck
from rpms.envs.alfworld.engine import EngineState, GameEngine

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.engine
def test_a_working_engine_passes_with_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rpms.envs.alfworld.selfcheck"],
        cwd=REPOSITORY,
        env={"RPMS_CACHE": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ALFWorld engine works: ")
    assert done.stdout.count("\n") == 1
    # It must prove the engine, not a cache, and leave nothing behind.
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: GameEngine, gamefile: object) -> None:
        raise OSError("libdownward.so:\n undefined symbol")

    monkeypatch.setattr(GameEngine, "load", broken)
    assert selfcheck.main() == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "ALFWorld engine check failed: libdownward.so: undefined symbol\n"


@pytest.mark.parametrize(
    ("won", "complaint"), [(True, "before the first step"), (False, "should be possible")]
)
def test_an_engine_that_plays_wrongly_fails(
    won: bool, complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GameEngine, "load", lambda self, gamefile: None)
    monkeypatch.setattr(GameEngine, "reset", lambda self: EngineState("", (), won, won))
    assert selfcheck.main() == 1
    assert complaint in capsys.readouterr().err
