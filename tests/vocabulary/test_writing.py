from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import make_folder, refuse_special, whole_file, write_whole


def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "c.txt"
    write_whole(file, "café \ud800")
    assert file.read_text() == "café ?"
    write_whole(file, b"\xff", durable=True)
    assert file.read_bytes() == b"\xff" and [*file.parent.iterdir()] == [file]


@contextmanager
def output(stream: int) -> Iterator[None]:
    """Another standard output; inside the test, for pytest puts its own there before each."""
    kept = os.dup(1)
    os.dup2(stream, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@pytest.mark.parametrize("place", ["/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/mem"])
def test_devices_and_streams_are_never_replaced(place: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    reads, writes = os.pipe()
    with open(reads, "rb"), open(writes, "wb"), output(writes):
        before = os.stat(place)
        for name in (place, str(tmp_path / "link")):
            with pytest.raises(RpmsError, match=f"cannot write {name}: it is a device or a pipe"):
                write_whole(Path(name), "x")
        assert os.stat(place).st_mode == before.st_mode


@pytest.mark.parametrize("name", ["", "/below", "/generated/far/below"])
@pytest.mark.parametrize("taken", [False, True])
def test_the_lost_name_of_an_open_stream_is_never_written(
    name: str, taken: bool, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    with (tmp_path / "stream").open("wb") as stream, output(stream.fileno()):
        (tmp_path / "stream").unlink()
        if taken:
            Path(os.path.realpath("/dev/stdout")).mkdir()
        before = sorted(tmp_path.rglob("*"))
        for place in ("/dev/stdout", tmp_path / "link"):
            with pytest.raises(RpmsError, match=f"cannot write {place}{name}: "):
                write_whole(Path(f"{place}{name}"), "x")
        assert sorted(tmp_path.rglob("*")) == before and stream.tell() == 0


def test_pipes_links_to_devices_and_folders_are_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", "null", "loop", "."):
        with pytest.raises(RpmsError, match="cannot write"):
            write_whole(tmp_path / name, "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loop", "null", "pipe"]


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there/file")
    write_whole(tmp_path / "link", "one")
    write_whole(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there/file").read_text() == "two"


def test_rights_follow_the_umask_and_those_of_a_file_stay(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o600)
    write_whole(tmp_path / "new", "y")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "old")
    with pytest.raises(ZeroDivisionError), whole_file(file) as out:
        out.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(RpmsError, match=r"cannot write .*file: full"), whole_file(file) as out:
        raise OSError(28, "full")
    assert file.read_text() == "old" and [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "half \ud800", "a/" * 1500])
def test_a_name_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="cannot write"):
        write_whole(tmp_path / name, "x")
    with pytest.raises(RpmsError, match="cannot write"):
        make_folder(tmp_path / name / "y")
    assert [*tmp_path.iterdir()] == []


def test_a_long_name_that_a_file_can_have(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 250), "x")
    assert (tmp_path / ("x" * 250)).read_text() == "x"


def test_it_can_be_asked_before_the_work(tmp_path: Path) -> None:
    assert refuse_special(tmp_path / "new") == tmp_path / "new"
    assert [*tmp_path.iterdir()] == []
