"""A small real run, played once for all tests that look at one."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rpms.commands.main import app

CONDITIONS = "A,B,C,D"
TASKS = 4


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in planner in four generated homes, under every condition of the paper."""
    folder = tmp_path_factory.mktemp("real") / "run"
    words = ["--split", "generated_unseen", "--conditions", CONDITIONS, "--limit", str(TASKS)]
    done = CliRunner().invoke(
        app, ["eval", *words, "--spread", "--workers", "0", "--out", str(folder)]
    )
    assert done.exit_code == 0, done.output
    return folder
