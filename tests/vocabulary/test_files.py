from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.envs.alfworld.tasks import data_root
from rpms.evals.records.run_folder import EPISODES, MANIFEST, RunWriter
from rpms.evals.records.schema import EpisodeLine, Manifest
from rpms.memory_store import write_snapshot
from rpms.models.prices import rates_for
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import (
    cache_dir,
    expanded,
    is_file,
    is_folder,
    json_bytes,
    make_folder,
    parse_json,
    read_bytes,
    read_text,
    read_yaml,
    refuse_special,
    stamp_of,
    whole_file,
    write_whole,
)  # fmt: skip


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "half \ud800", "a/" * 3000])
def test_a_name_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    assert not is_file(file) and not is_folder(file) and stamp_of(file) == (0, 0)
    with pytest.raises(RpmsError, match="cannot read"):
        read_bytes(file)
    with pytest.raises(RpmsError, match="cannot write"):
        write_whole(file, "x")
    with pytest.raises(RpmsError, match="cannot write"):
        make_folder(file / "y")
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_cannot_be_read_is_an_error_of_one_line(tmp_path: Path) -> None:
    file = tmp_path / "list"
    with pytest.raises(RpmsError, match=f"cannot read the list {file}: No such file"):
        read_text(file, "the list")
    with pytest.raises(RpmsError, match=f"cannot read the list {tmp_path}: Is a directory"):
        read_text(tmp_path, "the list")
    file.write_bytes(b"\xef\xbb\xbfone")
    assert read_text(file) == "one"
    file.write_bytes(b"caf\xe9")
    with pytest.raises(RpmsError, match="not UTF-8"):
        read_text(file)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '"\\ud800"', "NaN", "9" * 5000, "{", "", b'"\xff"', "1 2"]
)
def test_json_that_is_none(text: str | bytes) -> None:
    with pytest.raises(RpmsError, match="here: not JSON"):
        parse_json(text, "here")


NOT_YAML = {
    "does not fit its type": ("a: !!int abc", "a: 2030-13-45"),
    "own.yaml:1: not valid YAML": ("a: [",),
    "not valid YAML": ("\0", "!!python/object/apply:os.getcwd []"),
}


@pytest.mark.parametrize("refusal", NOT_YAML)
def test_yaml_that_is_none(refusal: str, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    for text in NOT_YAML[refusal]:
        file.write_text(text)
        with pytest.raises(RpmsError, match=refusal) as caught:
            read_yaml(file)
        assert str(file) in str(caught.value)


def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / ("x" * 250)  # as long as a name may be, nearly
    assert refuse_special(file) == file and [*tmp_path.iterdir()] == []
    write_whole(file, "café \ud800")
    assert file.read_text() == "café ?"
    write_whole(file, b"\xff", durable=True)
    assert file.read_bytes() == b"\xff" and [*file.parent.iterdir()] == [file]


def test_pipes_devices_and_folders_are_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("pipe", "null", "."):
        with pytest.raises(RpmsError, match=re.escape(f"cannot write {tmp_path / name}: it is no")):
            write_whole(tmp_path / name, "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["null", "pipe"]


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there/file")
    write_whole(tmp_path / "link", "one")
    write_whole(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there/file").read_text() == "two"


def test_what_fails_half_way_leaves_the_old_file_and_its_rights(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "older")
    file.chmod(0o600)
    write_whole(file, "old")
    with pytest.raises(ZeroDivisionError), whole_file(file) as out:
        out.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(RpmsError, match=r"cannot write .*file: full"), whole_file(file):
        raise OSError(28, "full")
    assert file.read_text() == "old" and [*tmp_path.iterdir()] == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o027])
def test_files_are_for_whom_the_umask_says(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path / "cache"))
    before = os.umask(umask)
    try:
        writer = RunWriter(tmp_path)
        writer.write_manifest(Manifest.model_construct())
        writer.append(EpisodeLine.model_construct(condition="A", task="t"), b"steps")
        writer.close()
        write_snapshot(tmp_path / "memory.jsonl", "alfworld", [])
        get_environment("alfworld").tasks("generated_unseen", 1)
    finally:
        os.umask(before)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    names = {file.name for file in files}
    assert {MANIFEST, EPISODES, "memory.jsonl"} < names and len(files) >= 6
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in files}
    assert set(modes.values()) == {oct(0o666 & ~umask)}, modes


def test_where_things_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RPMS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_dir() == Path("/home/me/.cache/rpms")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/other")
    assert cache_dir() == Path("/home/me/other/rpms")
    monkeypatch.setenv("RPMS_CACHE", "~/mine")
    assert cache_dir() == Path("/home/me/mine") == expanded("~/mine", "it")


@pytest.mark.parametrize(
    ("variable", "use"),
    [("RPMS_CACHE", cache_dir), ("ALFWORLD_DATA", data_root),
     ("RPMS_PRICES", lambda: rates_for("openai:x"))],
)  # fmt: skip
def test_a_home_that_nobody_has(
    variable: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "~nouser/x")
    with pytest.raises(RpmsError, match=f"{variable}: '~nouser/x'"):
        use()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([math.nan, math.inf, {"a": -math.inf}], b'["NaN","Infinity",{"a":"-Infinity"}]'),
        ("NaN \ud83d", b'"NaN ?"'),
        ({"at": Path("a/b")}, b'{"at":"a/b"}'),
    ],
)
def test_whatever_was_said_is_written_as_json(value: object, written: bytes) -> None:
    assert json_bytes(value) == written
    assert parse_json(written, "here") is not None
