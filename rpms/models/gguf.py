"""What a GGUF file says about its model: the first few kilobytes, read without the runtime.

The native loader ends the whole process over some damaged files; a look at the header first
turns a wrong path or a half-finished download into one clear line.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.reading import open_plain

MAGIC = b"GGUF"
STRING, ARRAY = 8, 9
# Scalar kinds of the format, as struct codes (little-endian).
SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
LONGEST = 1 << 30


def read_metadata(file: Path) -> dict[str, Any]:
    """Every scalar and text of the header; arrays (the vocabulary) are passed over."""
    try:
        with open_plain(file, "the model") as stream:
            if stream.read(4) != MAGIC:
                raise RpmsError(f"{file} is not a GGUF model")
            version, _, entries = struct.unpack("<IQQ", stream.read(20))
            if version not in (2, 3):
                raise RpmsError(f"{file}: GGUF version {version} is not known")
            return dict(_entry(stream) for _ in range(entries))
    except OSError as error:
        raise RpmsError(f"cannot read the model {file}: {error.strerror}") from error
    except (struct.error, KeyError, UnicodeDecodeError, OverflowError) as error:
        raise RpmsError(f"{file} is a damaged or incomplete GGUF model") from error


def context_length(metadata: dict[str, Any]) -> int:
    """How many tokens the model was trained to read; 0 if it does not say."""
    found = metadata.get(f"{metadata.get('general.architecture')}.context_length", 0)
    return int(found or 0)


def _entry(stream: BinaryIO) -> tuple[str, Any]:
    name = _text(stream)
    return name, _value(stream, _number(stream, "I"))


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _text(stream)
    if kind == ARRAY:
        _skip_array(stream)
        return None
    return _number(stream, SCALARS[kind])


def _skip_array(stream: BinaryIO) -> None:
    kind, count = _number(stream, "I"), _number(stream, "Q")
    if kind in SCALARS:
        stream.seek(struct.calcsize(SCALARS[kind]) * count, 1)
        return
    for _ in range(count):
        if kind == STRING:
            stream.seek(_number(stream, "Q"), 1)
        else:
            _skip_array(stream)


def _text(stream: BinaryIO) -> str:
    length = _number(stream, "Q")
    if length > LONGEST:
        raise OverflowError
    data = stream.read(length)
    if len(data) < length:
        raise struct.error("the file ends early")
    return data.decode("utf-8")


def _number(stream: BinaryIO, code: str) -> Any:
    size = struct.calcsize(f"<{code}")
    return struct.unpack(f"<{code}", stream.read(size))[0]
