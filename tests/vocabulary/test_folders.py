from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.envs.alfworld.tasks import data_root
from rpms.evals.run_layout import EPISODES, MANIFEST
from rpms.evals.run_writer import RunWriter
from rpms.memory_store.snapshot import write_lines
from rpms.models.prices import rates_for
from rpms.models.response_cache import default_file
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import cache_dir, expanded


@pytest.fixture(params=[0o022, 0o077, 0o002, 0o027])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_are_for_whom_the_umask_says(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_where_things_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("RPMS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_dir() == Path("/home/me/.cache/rpms")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/other")
    assert cache_dir() == Path("/home/me/other/rpms")
    monkeypatch.setenv("RPMS_CACHE", "~/mine")
    assert cache_dir() == Path("/home/me/mine") == expanded("~/mine", "it")


@pytest.mark.parametrize(
    ("variable", "use"),
    [
        ("RPMS_CACHE", cache_dir),
        ("ALFWORLD_DATA", data_root),
        ("RPMS_RESPONSE_CACHE", default_file),
        ("RPMS_PRICES", lambda: rates_for("openai:x")),
    ],
)
def test_a_home_that_nobody_has(
    variable: str, use: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "~nouser/x")
    assert callable(use)
    with pytest.raises(RpmsError, match=f"{variable}: '~nouser/x'"):
        use()
