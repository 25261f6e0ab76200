"""Translate a game's PDDL for fast-downward once, and remember the result.

Stock TextWorld translates every game twice on load and twice again on every reset (one of the two
only serves its planner, which we never run). The translation depends on nothing but the two PDDL
texts, so the latest ones are kept in memory and all of them on disk, outside the game folders.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_FORMAT = 1
_KEPT_IN_MEMORY = 8
_LONGEST_NAME = 1023  # fast-downward copies names into fixed buffers of 1024 bytes, unchecked.

# The translator swaps sys.stdout and sys.argv and keeps its options in module globals.
_translating = threading.Lock()
_recent: OrderedDict[str, Translation] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Translation:
    """What the engine needs to know about a PDDL problem; plain values, so it can be stored."""

    sas: str
    types: tuple[tuple[str, tuple[str, ...]], ...]
    objects: dict[str, str]
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    parameters: dict[str, tuple[tuple[str, str], ...]]

    def fluents(self) -> set[str]:
        """Name the predicates that some action can change."""
        return set(re.findall(r"^(?:Negated)?Atom ([^(\n]+)\(", self.sas, re.MULTILINE))


def translate(domain: str, problem: str, folder: Path | None) -> Translation:
    """Translate a problem, or recall it from memory or from ``folder``.

    Raises:
        ValueError: the PDDL does not parse, or fast-downward could not hold it safely.
    """
    key = _key(domain, problem)
    with _translating:
        known = _recent.get(key)
        if known is None:
            path = folder / "alfworld" / f"{key}.sas" if folder else None
            known = _read(path) if path else None
            if known is None:
                known = _translate(domain, problem)
                _refuse_unsafe(known.sas)
                if path:
                    _write(path, known)
        _recent[key] = known
        _recent.move_to_end(key)
        while len(_recent) > _KEPT_IN_MEMORY:
            _recent.popitem(last=False)
    return known


def forget() -> None:
    """Drop what is kept in memory, so that a benchmark can measure a first load."""
    with _translating:
        _recent.clear()


def _key(domain: str, problem: str) -> str:
    parts = [_FORMAT, _translator_version(), domain, problem]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _translator_version() -> str:
    try:
        return version("fast-downward-textworld")
    except PackageNotFoundError:
        return "unknown"


def _translate(domain: str, problem: str) -> Translation:
    import fast_downward

    try:
        with _argv_kept():
            task, sas = fast_downward.pddl2sas(domain, problem)
        return Translation(
            sas=sas,
            types=tuple((kind.name, tuple(kind.supertype_names)) for kind in task.types),
            objects={thing.name: thing.type_name for thing in task.objects},
            facts=tuple(_initial_facts(task)),
            parameters={
                action.name: tuple(
                    (hole.name.strip("?"), hole.type_name) for hole in action.parameters
                )
                for action in task.actions
            },
        )
    except (Exception, SystemExit) as error:  # The parser leaves by sys.exit on some mistakes.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"the PDDL does not parse ({reason[:160]})") from error


@contextmanager
def _argv_kept() -> Iterator[None]:
    saved = sys.argv
    try:
        yield
    finally:
        sys.argv = saved


def _initial_facts(task: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read the initial state as TextWorld does: atoms, and assignments that are no distances."""
    from fast_downward.translate.pddl.conditions import Atom
    from fast_downward.translate.pddl.f_expression import Assign

    for item in task.init:
        if isinstance(item, Atom) and item.predicate != "=":
            yield item.predicate, tuple(item.args)
        elif isinstance(item, Assign) and item.fluent.symbol != "total-cost":
            name = str(item.expression.value)
            if not name.isdigit():
                yield name, tuple(item.fluent.args)


def _refuse_unsafe(sas: str) -> None:
    """Refuse what would make the C++ library crash or end the process instead of failing."""
    if "Atom dummy(val1)" in sas:
        raise ValueError("the goal can never be met, or already is")
    if "\nbegin_goal\n0\n" in sas:
        raise ValueError("the problem has no goal")
    if not sas.isascii() or "\0" in sas:
        raise ValueError("the PDDL has names that are not plain ASCII")
    if max(map(len, sas.split("\n"))) > _LONGEST_NAME:
        raise ValueError(f"the PDDL has names longer than {_LONGEST_NAME} characters")
    if re.search(r"^\d{10,}$", sas, re.MULTILINE):
        raise ValueError("the PDDL has numbers too large for the planner library")


def _read(path: Path) -> Translation | None:
    """Recall a stored translation; anything odd about the file means it has to be made again."""
    try:
        digest, _, packed = path.read_bytes().partition(b"\n")
        if hashlib.sha256(packed).hexdigest().encode() != digest:
            return None
        data = json.loads(zlib.decompress(packed))
        return Translation(
            sas=data["sas"],
            types=tuple((name, tuple(parents)) for name, parents in data["types"]),
            objects=data["objects"],
            facts=tuple((name, tuple(names)) for name, names in data["facts"]),
            parameters={
                action: tuple((name, kind) for name, kind in holes)
                for action, holes in data["parameters"].items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return None


def _write(path: Path, translation: Translation) -> None:
    """Store a translation in one move, so that a reader never sees half a file."""
    packed = zlib.compress(json.dumps(asdict(translation)).encode(), 3)
    # A full or read-only disk costs time on the next load, nothing else.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed)
            os.replace(name, path)
        except OSError:
            Path(name).unlink(missing_ok=True)
