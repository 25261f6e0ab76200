"""The same memory in any LangGraph store, for deployments that share one database.

Works with every ``BaseStore``: in memory, SQLite, PostgreSQL. The snapshot file stays the
format of record; a store is filled from it and can be read back into it.

Entries lie by world, type and goal signature. The header says how many lie where and what they
weigh at most: listing namespaces goes through every row of a table, and tells no weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import quote
from uuid import uuid4

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp
from pydantic import ValidationError

from rpms.memory_store.entries import Entry, parse_entry
from rpms.vocabulary.errors import RpmsError

_BATCH = 500
_HEADER = "header"


class Shelf(NamedTuple):
    """How many entries of a type and goal there are; schemas and finds belong to no goal."""

    entries: int
    type: str = ""
    goal: str = ""
    weight: float = 0.0


def namespace(env: str, type: str = "", goal: str = "") -> tuple[str, ...]:
    """Where an environment's memory lives in a store: all of it, or that of a type and goal."""
    label = quote(goal, safe=": ").replace(".", "%2E")  # a period would part it in two
    return ("rpms", env, "memory", *filter(None, (type, label)))


def save_to_store(store: BaseStore, env: str, entries: Sequence[Entry]) -> None:
    """Replace an environment's memory by these entries."""
    groups: defaultdict[tuple[str, str], dict[str, Entry]] = defaultdict(dict)
    for entry in entries:
        groups[entry.type, getattr(entry, "goal_signature", "")][entry.id] = entry
    # In the order of a database's own index: any other takes many times as long to write.
    rows = {
        (namespace(env, *subject), key): entry.model_dump(mode="json")
        for subject, group in sorted(groups.items())
        for key, entry in group.items()
    }
    before = _items(store, env, [Shelf(_header(store, env)["entries"])])
    stale = {(item.namespace, item.key) for item in before} - rows.keys()
    changes = [PutOp(*place, None) for place in stale]
    changes += [PutOp(*place, row, index=False) for place, row in rows.items()]
    for start in range(0, len(changes), _BATCH):
        store.batch(changes[start : start + _BATCH])
    shelves = [
        (len(group), *subject, max(entry.retrieval_weight for entry in group.values()))
        for subject, group in groups.items()
    ]
    # Written last: a reader that finds a matching count finds all entries.
    header = {"entries": len(rows), "version": uuid4().hex, "shelves": shelves}
    store.put((*namespace(env), _HEADER), _HEADER, header, index=False)


def read_shelves(store: BaseStore, env: str) -> list[Shelf]:
    """What lies where; nothing if the memory was saved before there were shelves."""
    return [Shelf(*shelf) for shelf in _header(store, env).get("shelves", ())]


def load_from_store(store: BaseStore, env: str, on: Sequence[Shelf] | None = None) -> list[Entry]:
    """Every entry of an environment, or those on some shelves, in the order of ids; maybe none."""
    shelves = [Shelf(_header(store, env)["entries"])] if on is None else on
    announced = sum(shelf.entries for shelf in shelves)
    entries = []
    for item in _items(store, env, shelves) if announced else []:
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


def _items(store: BaseStore, env: str, shelves: Sequence[Shelf]) -> list[SearchItem]:
    """A query for each: stores order by time of writing, which pages cannot rely on."""
    searches = [
        SearchOp(namespace(env, type, goal), limit=2 * size + _BATCH, refresh_ttl=False)
        for size, type, goal, _ in shelves
    ]
    results = cast("list[list[SearchItem]]", store.batch(searches))
    return [item for items in results for item in items if item.key != _HEADER]
