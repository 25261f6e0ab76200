"""The ``rpms`` command as an installation has it: a script whose path is not the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs shell commands in a folder of their own, with ``rpms`` on the path."""
    script = tmp_path / "bin" / "rpms"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nfrom rpms.commands.main import main\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    script.chmod(0o755)

    def run(commands: str, where: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "COLUMNS": "200",
        }
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=where, env=env, capture_output=True, text=True, timeout=500, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """RPMS alone on a path, as in site-packages: no other folder of the repository."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "rpms").symlink_to(ROOT / "rpms")
    return folder
