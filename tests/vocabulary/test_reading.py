from __future__ import annotations

import os
from pathlib import Path

import pytest

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import (
    MOST_TEXT,
    is_file,
    is_folder,
    open_plain,
    parse_json,
    read_bytes,
    read_text,
    read_yaml,
    stamp_of,
)


def test_what_is_no_plain_file_is_refused_and_nothing_waits(tmp_path: Path) -> None:
    for name, told in (("/dev/zero", "a device"), (str(tmp_path), "a folder")):
        with pytest.raises(RpmsError, match=rf"cannot read the list {name}: it is {told}"):
            open_plain(Path(name), "the list")
    os.mkfifo(tmp_path / "pipe")
    assert read_bytes(tmp_path / "pipe") == b""  # nobody writes into it


def test_a_pipe_that_somebody_writes_into_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    assert read_text(Path(f"/dev/fd/{reading}")) == "one\ntwo\n"
    os.close(reading)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a/" * 3000, "half \ud800"])
def test_a_name_that_no_file_can_have(name: str) -> None:
    file = Path(name)
    assert not is_file(file) and not is_folder(file) and stamp_of(file) == (0, 0)
    with pytest.raises(RpmsError, match="cannot read"):
        read_bytes(file)


def test_texts_are_utf8_and_not_endless(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_bytes(b"\xef\xbb\xbfone")
    assert read_text(file) == "one"
    file.write_bytes(b"caf\xe9")
    with pytest.raises(RpmsError, match="not UTF-8"):
        read_text(file)
    file.write_bytes(b"x" * (MOST_TEXT + 1))
    with pytest.raises(RpmsError, match="longer than"):
        read_text(file)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '"\\ud800"', "NaN", "9" * 5000, "{", "", b'"\xff"', "1 2"]
)
def test_json_that_is_none(text: str | bytes) -> None:
    with pytest.raises(RpmsError, match="here: not JSON"):
        parse_json(text, "here")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("&a [*a]", "nested too deeply"),
        ("&a {<<: *a}", "nested too deeply"),
        ("[" * 5000, "nested too deeply"),
        (BOMB, "more than 200,000 values"),
        ("a: !!int abc", "does not fit its type"),
        ("a: !!bool abc", "does not fit its type"),
        ("a: 2030-13-45", "does not fit its type"),
        ("a: " + "9" * 5000, "does not fit its type"),
        ("a: [", "own.yaml:1: not valid YAML"),
        ("\0", "not valid YAML"),
        ("!!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_yaml_that_is_none(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(RpmsError, match=said) as caught:
        read_yaml(file)
    assert str(file) in str(caught.value)


def test_aliases_are_welcome(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("a: &a {k: 1}\nb: {<<: *a, k: 2}\nc: *a\n")
    assert read_yaml(file)[1] == {"a": {"k": 1}, "b": {"k": 2}, "c": {"k": 1}}
