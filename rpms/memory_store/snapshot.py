"""A frozen memory: a file with one JSON header line, then one entry or note per line.

Evaluation never writes it. Writing is atomic: a process that is killed half-way leaves the old file
unchanged. For deployments that share one database, a LangGraph store is filled from the file. Every
``BaseStore`` works: in memory, SQLite, PostgreSQL.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from langgraph.store.base import BaseStore, PutOp, SearchItem
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from rpms.memory_store.entries import ADAPTER, NOTES, Entry, Note, parse_entry
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import open_file, parse_json, reason_of, whole_file

FORMAT: Literal["rpms-memory"] = "rpms-memory"
SCHEMA_VERSION = 1
OUR_METHOD = "rpms"
"""The method whose memories are read when no other is named."""
_OF_OTHERS = {"method", "written_by", "unread"}
# Of a store: how many changes are written at once, and the key of its header.
_BATCH = 500
_HEADER = "header"


class Header(BaseModel):
    """The first line of a memory file: its environment, its origin and its number of entries.

    ``learned_by`` names the models (or policies) whose episodes it was learned from. Only memories
    of other methods have the last three: ``method``, ``written_by`` (the model that wrote the
    texts) and ``unread`` (the number of that model's replies that could not be read).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["rpms-memory"] = FORMAT
    schema_version: int = SCHEMA_VERSION
    env: str
    sources: list[str] = []
    learned_by: list[str] = []
    rounds: int = 0
    entries: int
    counts: dict[str, int]
    method: str = OUR_METHOD
    written_by: str = ""
    unread: int = 0


def write_snapshot(
    file: Path,
    env: str,
    entries: Sequence[Entry | Note],
    sources: Sequence[str] = (),
    rounds: int = 0,
    **header_fields: Any,
) -> Header:
    """Write a whole memory; ``header_fields`` are further fields of its header."""
    counts = Counter(entry.kind if isinstance(entry, Note) else entry.type for entry in entries)
    header = Header(
        env=env, sources=list(sources), rounds=rounds, entries=len(entries),
        counts=dict(sorted(counts.items())), **header_fields,
    )  # fmt: skip
    with whole_file(file, durable=True) as out:
        left_out = _OF_OTHERS if header.method == OUR_METHOD else set()
        out.write(f"{header.model_dump_json(exclude=left_out)}\n".encode())
        for entry in entries:
            row = entry.model_dump(mode="json", exclude_defaults=isinstance(entry, Note))
            out.write(f"{json.dumps(row, ensure_ascii=False)}\n".encode("utf-8", "replace"))
    return header


def read_snapshot(file: Path, env: str = "") -> tuple[Header, list[Entry]]:
    """Read and validate every entry; an error names the first invalid line.

    A memory of another environment than ``env`` is an error too.
    """
    header, rows = _open(file, ADAPTER, env)
    return header, list(rows)


def read_notes(file: Path, env: str, method: str) -> list[Note]:
    """Read every note; another environment or method, or an invalid line, is an error."""
    return list(_open(file, NOTES, env, method)[1])


def read_header(file: Path) -> Header:
    """Read only the first line."""
    rows = _rows(file, ADAPTER)
    header: Header = next(rows)
    rows.close()
    return header


def _open(
    file: Path, adapter: TypeAdapter[Any], env: str, method: str = OUR_METHOD
) -> tuple[Header, Generator[Any, None, None]]:
    """Return the header and the rows; another environment or method is an error."""
    rows = _rows(file, adapter)
    header: Header = next(rows)
    if env and header.env != env:
        raise RpmsError(f"{file}:1: this memory was learned in {header.env}, not in {env}")
    if header.method != method:
        raise RpmsError(
            f"{file}:1: a memory of the method '{header.method}', not of '{method}'; set "
            "memory_method to match, or give another file"
        )
    return header, rows


def _rows(file: Path, adapter: TypeAdapter[Any]) -> Generator[Any, None, None]:
    """Yield the header, then the entries, each validated."""
    try:
        with open_file(file, "memory file") as lines:
            header = _header(file, lines.readline())
            yield header
            number = 1
            for number, line in enumerate(lines, start=2):
                if not line.endswith(b"\n"):
                    raise RpmsError(f"{file}:{number}: the last line is cut short")
                try:
                    entry = adapter.validate_json(line)
                except ValidationError as error:
                    raise RpmsError(f"{file}:{number}: {_problem(error)}") from error
                yield entry
    except OSError as error:
        raise RpmsError(f"cannot read memory file {file}: {reason_of(error)}") from error
    if number - 1 != header.entries:
        raise RpmsError(
            f"{file}:{number + 1}: the header announces {header.entries} entries, the file holds "
            f"{number - 1}; it was cut short or edited by hand"
        )


def _header(file: Path, line: bytes) -> Header:
    try:
        data = parse_json(line, f"{file}:1")
    except RpmsError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise RpmsError(f"{file}:1: not an rpms memory file (no header line)")
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        advice = "update this program" if newer else "learn it again"
        raise RpmsError(
            f"{file}:1: schema version {version}, this program reads {SCHEMA_VERSION}; {advice}"
        )
    try:
        return Header.model_validate(data)
    except ValidationError as error:
        raise RpmsError(f"{file}:1: {_problem(error)}") from error


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def namespace(env: str) -> tuple[str, ...]:
    return ("rpms", env, "memory")


def save_to_store(store: BaseStore, env: str, entries: Sequence[Entry]) -> None:
    """Replace an environment's memory by these entries."""
    rows = {
        (namespace(env), f"{number:06} {entry.id}"): entry.model_dump(mode="json")
        for number, entry in enumerate(entries)
    }
    stale = {(item.namespace, item.key) for item in _items(store, env)} - rows.keys()
    changes = [PutOp(*place, None) for place in stale]
    changes += [PutOp(*place, row, index=False) for place, row in rows.items()]
    for start in range(0, len(changes), _BATCH):
        store.batch(changes[start : start + _BATCH])
    # Written last: a reader that finds a matching count finds all entries.
    header = {"entries": len(rows), "version": uuid4().hex}
    store.put((*namespace(env), _HEADER), _HEADER, header, index=False)


def load_from_store(store: BaseStore, env: str) -> list[Entry]:
    """Return the entries of an environment, sorted by type and id."""
    entries = []
    for item in _items(store, env):
        try:
            entries.append(parse_entry(item.value))
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise RpmsError(f"store {item.namespace} key {item.key}: {message}") from error
    announced = _store_header(store, env)["entries"]
    if len(entries) != announced:
        raise RpmsError(
            f"the store announces {announced} memories for {env} and holds {len(entries)}; save "
            "them again"
        )
    return sorted(entries, key=lambda entry: (entry.type, entry.id))


def store_version(store: BaseStore, env: str) -> str:
    """Return a string that changes with every save; empty while no memory is saved."""
    header = _store_header(store, env)
    return str(header["version"]) if header["entries"] else ""


def _store_header(store: BaseStore, env: str) -> Mapping[str, Any]:
    header = store.get((*namespace(env), _HEADER), _HEADER)
    return {"entries": 0} if header is None else header.value


def _items(store: BaseStore, env: str) -> list[SearchItem]:
    """Read all items in one query, because the order of stores does not allow paging."""
    limit = 2 * int(_store_header(store, env)["entries"]) + _BATCH
    items = store.search(namespace(env), limit=limit, refresh_ttl=False)
    return [item for item in items if item.key != _HEADER]
