from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.evals.run_layout import EPISODES, MANIFEST
from rpms.evals.run_writer import RunWriter
from rpms.memory_store.snapshot import write_lines
from rpms.vocabulary.folders import usual_mode


@pytest.fixture(params=[0o022, 0o077, 0o002, 0o027])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_are_for_whom_the_umask_says(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert usual_mode() == 0o666 & ~umask
    assert usual_mode() == 0o666 & ~umask, "asking changed it"
    writer = RunWriter(tmp_path)
    writer.write_manifest({})
    writer.append({"condition": "A", "task": "t", "repeat": 1, "trial": 1}, b"steps")
    writer.close()
    write_lines(tmp_path / "memory.jsonl", "{}", [])
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path / "cache"))
    get_environment("alfworld").tasks("generated_unseen", 1)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    names = {file.name for file in files}
    assert {MANIFEST, EPISODES, "memory.jsonl"} < names and len(files) >= 6
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in files}
    assert set(modes.values()) == {oct(0o666 & ~umask)}, modes
