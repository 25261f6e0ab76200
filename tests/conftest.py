"""Games for the tests: the official ones where they are at hand, generated ones otherwise."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import pytest

from envs.alfworld.homes import ensure_games

ARCHIVES = Path(__file__).resolve().parents[1].parent / "shared" / "alfworld"
HAVE_OFFICIAL = (ARCHIVES / "valid_seen.tar.xz").is_file()
WHICH_GAMES = (
    "official valid_seen and valid_train games, and 12 in the older wording"
    if HAVE_OFFICIAL
    else "generated homes only (no official archives beside the checkout)"
)


def pytest_report_header() -> str:
    """Say on which games this run's results stand."""
    return f"ALFWorld games: {WHICH_GAMES}"


def _unpack(*names: str) -> Path:
    """Unpack archives once per machine; safe when several test workers start together."""
    mark = hashlib.sha256()
    for name in names:
        mark.update((ARCHIVES / name).read_bytes())
    home = Path(tempfile.gettempdir()) / f"rpms-tests-{os.getuid()}"
    target = home / f"{names[0].split('.')[0]}-{mark.hexdigest()[:12]}"
    if not target.is_dir():
        home.mkdir(exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=home))
        for name in names:
            with tarfile.open(ARCHIVES / name) as archive:
                archive.extractall(work, filter="data")
        try:
            work.rename(target)
        except OSError:
            shutil.rmtree(work)
    return target


@pytest.fixture(scope="session")
def have_official() -> bool:
    """Whether this run plays official games."""
    return HAVE_OFFICIAL


@pytest.fixture(scope="session")
def alfworld_data() -> Path:
    """A folder to use as ALFWORLD_DATA, with valid_seen and valid_train when they are at hand."""
    if HAVE_OFFICIAL:
        return _unpack("valid_seen.tar.xz", "valid_train.tar.xz")
    return ensure_games("generated_seen", 60)[0].parents[3].parent


@pytest.fixture(scope="session")
def official_games(alfworld_data: Path) -> list[Path]:
    """Game files in the newer wording, in sorted order."""
    return sorted(alfworld_data.glob("json_2.1.1/*/*/*/game.tw-pddl"))


@pytest.fixture(scope="session")
def put_games() -> list[Path]:
    """Game files in the older wording (put X in/on Y)."""
    if HAVE_OFFICIAL:
        files = sorted(_unpack("put_dialect_sample.tar.xz").glob("json_2.1.1/*/*/*/game.tw-pddl"))
        return [file for file in files if json.loads(file.read_text())["solvable"]]
    return ensure_games("generated_seen", 12, dialect="put")
