from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rpms.models.weights import context_length, read_metadata
from rpms.vocabulary.errors import RpmsError


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


ENTRIES = [
    entry("general.architecture", 8, text("toy")),
    entry("tokenizer.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("bc")),
    entry("scores", 9, struct.pack("<IQ", 6, 3) + bytes(12)),
    entry("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 0, 2) + b"xy"),
    entry("toy.context_length", 4, struct.pack("<I", 4096)),
    entry("toy.scale", 6, struct.pack("<f", 0.5)),
    entry("toy.tied", 7, b"\x01"),
]


def header(entries: list[bytes], version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "toy.gguf"


def test_scalars_and_texts_are_read_and_arrays_passed_over(file: Path) -> None:
    file.write_bytes(header(ENTRIES) + b"tensors follow")
    found = read_metadata(file)
    assert found["general.architecture"] == "toy"
    assert (found["toy.scale"], found["toy.tied"]) == (0.5, True)
    assert found["tokenizer.tokens"] is None
    assert context_length(found) == 4096


def test_a_model_that_does_not_say_how_much_it_reads(file: Path) -> None:
    file.write_bytes(header(ENTRIES[:1]))
    assert context_length(read_metadata(file)) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a GGUF model"),
        (b"PK\x03\x04 a zip file", "is not a GGUF model"),
        (header(ENTRIES, version=9), "version 9"),
        (b"GGUF\x03", "damaged or incomplete"),
        (header(ENTRIES)[:60], "damaged or incomplete"),
        (header(ENTRIES)[:-3], "damaged or incomplete"),
        (header([entry("odd", 77, b"")]), "damaged or incomplete"),
        (header([struct.pack("<Q", 1 << 62)]), "damaged or incomplete"),
        (header([text("x")[:-1] + b"\xff" + struct.pack("<I", 0) + b"1"]), "damaged or incomplete"),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_one_line(
    file: Path, content: bytes, message: str
) -> None:
    file.write_bytes(content)
    with pytest.raises(RpmsError, match=message) as caught:
        read_metadata(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="cannot read the model"):
        read_metadata(tmp_path)
