"""Keep a memory in a LangGraph store, for deployments that share one database.

Every ``BaseStore`` works: in memory, SQLite, PostgreSQL. The snapshot file remains the format of
record; a store is filled from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langgraph.store.base import BaseStore, PutOp, SearchItem
from pydantic import ValidationError

from rpms.memory_store.entries import Entry, parse_entry
from rpms.vocabulary.errors import RpmsError

_BATCH = 500
_HEADER = "header"


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
            first = error.errors()[0]["msg"]
            raise RpmsError(f"store {item.namespace} key {item.key}: {first}") from error
    announced = _header(store, env)["entries"]
    if len(entries) != announced:
        raise RpmsError(
            f"the store announces {announced} memories for {env} and holds {len(entries)}; save "
            "them again"
        )
    return sorted(entries, key=lambda entry: (entry.type, entry.id))


def store_version(store: BaseStore, env: str) -> str:
    """Return a string that changes with every save; empty while no memory is saved."""
    header = _header(store, env)
    return str(header["version"]) if header["entries"] else ""


def _header(store: BaseStore, env: str) -> Mapping[str, Any]:
    header = store.get((*namespace(env), _HEADER), _HEADER)
    return {"entries": 0} if header is None else header.value


def _items(store: BaseStore, env: str) -> list[SearchItem]:
    """Read all items in one query, because the order of stores does not allow paging."""
    limit = 2 * int(_header(store, env)["entries"]) + _BATCH
    items = store.search(namespace(env), limit=limit, refresh_ttl=False)
    return [item for item in items if item.key != _HEADER]
