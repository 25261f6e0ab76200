"""Analyses of step logs on disk, so that the report of a large run reads every log only once.

There is one file for each run folder in the cache folder. An analysis is used again if neither the
log, the rules, nor this package has changed. A damaged file is ignored and written anew.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rpms.evals.analysis.step_analysis import Analysis, AnalysisKey, analysis_by, key_of, remember
from rpms.evals.records.checksums import checksum, rules_hash
from rpms.evals.records.run_folder import Run, slug
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import cache_dir, is_file, read_bytes, write_whole

PACKAGE = Path(__file__).parents[2]
MANY = 500
"""Runs with fewer episodes are analysed anew each time, which takes a few seconds."""


class KeptAnalyses(TypedDict):
    """The file: the version of the package that made the analyses, and these by their key."""

    version: str
    analyses: dict[str, Analysis]


_FILE: TypeAdapter[KeptAnalyses] = TypeAdapter(KeptAnalyses)


def prepare_analyses(run: Run, processes: int = 1) -> None:
    """Read the kept analyses of large runs into memory, and keep those that are missing."""
    for part in run.parts or (run,):
        # The code of an environment outside this package may change unnoticed.
        if len(part.episodes) >= MANY and ":" not in part.manifest.env:
            _prepare(part, processes)


def _prepare(run: Run, processes: int) -> None:
    file = cache_dir() / "analyses" / f"{slug(str(run.folder.resolve()))}.json"
    version, kept = _version(), _read(file)
    found = kept["analyses"] if kept["version"] == version else {}
    keys = [key_of(run, episode) for episode in run.episodes.values()]
    texts = {key: _text(key) for key in keys}
    missing = [key for key in keys if texts[key] not in found]
    made = dict(zip(missing, _analyse(missing, processes), strict=True))
    analyses = {key: made[key] if key in made else found[texts[key]] for key in keys}
    for key, analysis in analyses.items():
        remember(key, analysis)
    if missing:
        every = {texts[key]: analysis for key, analysis in analyses.items()}
        _write(file, KeptAnalyses(version=version, analyses=every))


def _analyse(keys: Sequence[AnalysisKey], processes: int) -> Iterable[Analysis]:
    """The analyses in the order of their keys; many of them by several processes."""
    if processes < 2 or len(keys) < MANY:
        return map(analysis_by, keys)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        return [*pool.map(analysis_by, keys, chunksize=50)]


def _read(file: Path) -> KeptAnalyses:
    nothing = KeptAnalyses(version="", analyses={})
    try:
        return _FILE.validate_json(read_bytes(file)) if is_file(file) else nothing
    except (RpmsError, ValidationError):
        return nothing


def _write(file: Path, kept: KeptAnalyses) -> None:
    """Write the file; without space or permission the next report analyses the logs again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _FILE.dump_json(kept))
    except (RpmsError, OSError):
        return


def _text(key: AnalysisKey) -> str:
    return checksum(
        "\n".join([*map(repr, key[1:]), key.file.name, _manual_of(key.env, key.chosen)])
    )


@lru_cache(maxsize=256)
def _manual_of(env: str, chosen: tuple[tuple[str, str], ...]) -> str:
    """The checksum of an arm's manual; empty if it is missing."""
    settings = dict(chosen)
    try:
        return rules_hash(env, settings["rules_dir"], settings["without_rules"])
    except RpmsError:
        return ""


def _version() -> str:
    """A checksum of the names, sizes and times of the package's files."""
    stamps = hashlib.sha256()
    for path, folders, files in os.walk(PACKAGE):
        folders.sort()
        for name in sorted(files):
            if name.endswith((".py", ".yaml")):
                status = os.stat(os.path.join(path, name))
                stamps.update(f"{path}/{name} {status.st_mtime_ns} {status.st_size}\n".encode())
    return stamps.hexdigest()
