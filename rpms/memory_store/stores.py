"""The same memory in any LangGraph store, for deployments that share one database.

Works with every ``BaseStore``: in memory, SQLite, PostgreSQL. The snapshot file stays the
format of record; a store is filled from it and can be read back into it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp, SearchItem
from pydantic import ValidationError

from rpms.memory_store.entries import Entry, parse_entry
from rpms.vocabulary.errors import RpmsError

_BATCH = 500
_HEADER = "header"


def namespace(env: str) -> tuple[str, ...]:
    """Where an environment's memory lives in a store."""
    return ("rpms", env, "memory")


def save_to_store(store: BaseStore, env: str, entries: Sequence[Entry]) -> None:
    """Replace an environment's memory by these entries."""
    rows = {entry.id: entry.model_dump(mode="json") for entry in entries}
    stale = [item.key for item in _items(store, env) if item.key not in rows]
    changes = [PutOp(namespace(env), key, None) for key in stale]
    changes += [PutOp(namespace(env), key, row, index=False) for key, row in rows.items()]
    for start in range(0, len(changes), _BATCH):
        store.batch(changes[start : start + _BATCH])
    digest = hashlib.blake2b(digest_size=8)
    for entry in sorted(entries, key=lambda entry: entry.id):
        digest.update(entry.model_dump_json().encode())
    # Written last: a reader that finds a matching count finds all entries.
    header = {"entries": len(rows), "version": digest.hexdigest()}
    store.put((*namespace(env), _HEADER), _HEADER, header, index=False)


def load_from_store(store: BaseStore, env: str) -> list[Entry]:
    """Every entry of an environment, in the order of ids; empty when there is none."""
    announced = _header(store, env)["entries"]
    entries = []
    for item in _items(store, env) if announced else []:
        try:
            entries.append(parse_entry(item.value))
        except ValidationError as error:
            first = error.errors()[0]["msg"]
            raise RpmsError(f"store {item.namespace} key {item.key}: {first}") from error
    if len(entries) != announced:
        raise RpmsError(
            f"the store announces {announced} memories for {env} and holds {len(entries)}; save "
            "them again"
        )
    return sorted(entries, key=lambda entry: (entry.type, entry.id))


def store_version(store: BaseStore, env: str) -> str:
    """Changes whenever another memory was saved; empty while there is none."""
    header = _header(store, env)
    return str(header.get("version", header["entries"])) if header["entries"] else ""


def _header(store: BaseStore, env: str) -> Mapping[str, Any]:
    """What was saved last, without reading it."""
    header = store.get((*namespace(env), _HEADER), _HEADER)
    return {"entries": 0} if header is None else header.value


def _items(store: BaseStore, env: str) -> list[SearchItem]:
    """Everything in one query: stores order by time of writing, which pages cannot rely on."""
    size = _header(store, env)["entries"]
    items = store.search(namespace(env), limit=2 * size + _BATCH)
    return [item for item in items if item.key != _HEADER]
