"""The real ``langgraph dev``, driven by the real SDK, as LangGraph Studio would."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import APIStatusError

import rpms
from rpms.graph import STAGES, build_graph, run_episode
from rpms.nodes.state import EpisodeInput, EpisodeOutput, ServerOutput
from rpms.vocabulary.context import RunContext
from tests.evals.sample_runs import lines_of
from tests.langgraph_dev import Server, langgraph_dev
from tests.openai_server import Answer, OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("server")]

ROOT = Path(__file__).resolve().parents[2]
MEMORY_STAGES = {"goal_retrieval", "scf", "arbitration", "memory_selection"}
OURS = "rpms.envs.alfworld.adapter"  # a world, and still no client may name a module
TASK: dict[str, Any] = {"env": "alfworld", "split": "generated_unseen", "task": 5}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that, when its tests are through, has blocked nothing and stops when asked."""
    # Ours, and one more line, as its page says.
    config = json.loads((ROOT / "langgraph.json").read_text())
    graphs = {**config["graphs"], "mine": "./examples/minimal.py:mine"}
    config["graphs"] = {name: path.replace("./", f"{ROOT}/") for name, path in graphs.items()}
    config["dependencies"] = [str(ROOT)]
    with langgraph_dev(tmp_path_factory.mktemp("server"), config, cwd=ROOT) as served:
        yield served
    # Here and not in tests of their own, which would have to run last: tests are handed out in
    # any order.
    text = served.log.read_text()
    assert "langgraph_api" in text
    for complaint in ("locking call", "BlockingError", "unregistered type"):
        assert complaint not in text
    assert "Traceback" not in text.rpartition("Shutting down")[2]


def test_graph_and_schemas_can_be_read(server: Server) -> None:
    client = get_sync_client(url=server.url)
    (assistant,) = client.assistants.search(graph_id="D")
    drawn = client.assistants.get_graph(assistant["assistant_id"])
    added = {"__start__", "__end__"}
    assert {str(node["id"]) for node in drawn["nodes"]} == {*STAGES, *added}
    edges = {(edge["source"], edge["target"]) for edge in drawn["edges"]}
    assert {("belief_update", "prompt_build"), ("env_step", "belief_update")} <= edges
    schemas: Any = client.assistants.get_schemas(assistant["assistant_id"])
    entry, form = (schemas[f"{name}_schema"]["properties"] for name in ("input", "context"))
    assert set(entry) == set(EpisodeInput.__annotations__)
    assert set(schemas["output_schema"]["properties"]) == set(EpisodeOutput.__annotations__)
    assert {"belief", "recalls", "prompt"} <= set(schemas["state_schema"]["properties"])
    assert {"rules", "memory", "guard", "model", "max_steps"} <= form.keys()
    for name, field in form.items():
        assert field["title"] and field["description"], name
    (other,) = client.assistants.search(graph_id="B")
    form = client.assistants.get_schemas(other["assistant_id"])["context_schema"]["properties"]
    assert (form["rules"]["default"], form["memory"]["default"]) == (True, False)


@pytest.mark.engine
async def test_an_empty_submit_plays_task_0_under_the_graphs_own_condition(server: Server) -> None:
    client = get_client(url=server.url)
    for name, letter in (("A", "A"), ("B", "B"), ("C", "C"), ("D", "D"), ("D+verify", "D")):
        for context in (None, {"max_steps": 1}, {"max_steps": 1, "theta": 0.5}):
            entry: dict[str, Any] = {} if name == "B" else TASK
            thread = (await client.threads.create())["thread_id"]
            result: Any = await client.runs.wait(
                thread, name, input=entry, context=context, interrupt_after=["env_step"]
            )
            assert result["condition"] == letter
            state: Any = await client.threads.get_state(thread)
            expected = RunContext.for_condition(name, **(context or {}))
            assert state["values"]["settings"] == expected.plain
            assert state["values"]["task"] == entry.get("task", 0)


@pytest.mark.engine
async def test_one_variant_is_the_same_in_python_on_the_server_and_in_a_comparison(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    mine = import_module("minimal").mine
    client = get_client(url=server.url)
    (assistant,) = await client.assistants.search(graph_id="mine")
    drawn: Any = await client.assistants.get_graph(assistant["assistant_id"])
    assert {node["id"] for node in drawn["nodes"]} == {*mine().get_graph().nodes}
    thread = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread, "mine", input=TASK, stream_mode="updates")
    names = [name async for part in stream if part.event == "updates" for name in part.data]
    served = (await client.threads.get_state(thread))["values"]
    assert isinstance(served, dict)
    alone: Any = mine().invoke(TASK)
    updates = mine().stream(TASK, stream_mode="updates")
    assert names == [name for update in updates for name in update] and "referee" in names
    await asyncio.to_thread(
        rpms.evaluate, {"D": "D", "mine": mine}, out=tmp_path, split=TASK["split"],
        tasks=[alone["task_id"]], execution=rpms.ExecutionOptions(workers=0), show=False,
    )  # fmt: skip
    (measured,) = [line for line in lines_of(tmp_path) if line["condition"] == "mine"]
    for key in ("success", "steps", "history"):
        assert served[key] == alone[key] == measured[key], key
    assert (served["condition"], served["objections"]) == (alone["condition"], alone["objections"])


@pytest.mark.engine
async def test_configurable_means_the_same_and_an_edit_changes_one_setting(server: Server) -> None:
    client = get_client(url=server.url)
    thread = (await client.threads.create())["thread_id"]
    config: Any = {"configurable": {"max_steps": 2}}
    await client.runs.wait(
        thread, "B", input=TASK, config=config, interrupt_after=["belief_update"]
    )
    await client.threads.update_state(thread, {"settings": {"seed": 7}}, as_node="belief_update")
    state: Any = await client.threads.get_state(thread)
    expected = RunContext.for_condition("B", max_steps=2, seed=7)
    assert state["values"]["settings"] == expected.plain
    for mistake, names in (
        ({"settings": {"sed": 7}}, ("'sed'", "'seed'")),
        ({"belief": {"locaton": "sofa 1"}}, ("'locaton'", "'location'")),
        ({"belif": {}}, ("'belif'", "'belief'")),
    ):
        with pytest.raises(APIStatusError) as caught:
            await client.threads.update_state(thread, mistake, as_node="belief_update")
        assert all(name in str(caught.value.body) for name in names)
    end: Any = await client.runs.wait(thread, "B", input=None)
    assert (end["condition"], end["steps"]) == ("B", 2)


async def play(
    server: Server, context: dict[str, Any], task: dict[str, Any] = TASK
) -> tuple[list[str], dict[str, Any]]:
    """Stages visited, in order, and the output."""
    client = get_client(url=server.url)
    thread = await client.threads.create()
    names: list[str] = []
    async for part in client.runs.stream(
        thread["thread_id"], "D", input=task, context=context, stream_mode="updates"
    ):
        assert part.event != "error", part.data
        if part.event == "updates":
            names += part.data
    values = (await client.threads.get_state(thread["thread_id"]))["values"]
    assert isinstance(values, dict)
    return names, values


@pytest.mark.engine
@pytest.mark.parametrize(
    ("toggles", "skipped"),
    [
        ({"rules": False, "memory": False}, {"rule_assembly", *MEMORY_STAGES}),
        ({"rules": True, "memory": True}, set()),
    ],
)
async def test_an_episode_with_toggles(
    toggles: dict[str, Any], skipped: set[str], server: Server
) -> None:
    names, values = await play(server, {**toggles, "max_steps": 3})
    loop = [name for name in STAGES[1:] if name not in {*skipped, "guard_check"}]
    assert names == ["reset_env", *loop * 3]
    here = run_episode(
        TASK["task"], split=TASK["split"], context=RunContext(**toggles, max_steps=3)
    )
    assert {key: values[key] for key in here} == here


@pytest.mark.engine
def test_the_recipes_run_as_they_are_written(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fork and the watching of docs/langgraph.md, but for the address."""
    page = (ROOT / "docs" / "langgraph.md").read_text(encoding="utf-8")
    recipes = re.findall(r"^```py\n(.*?)^```\n+```text\n(.*?)^```", page, re.S | re.M)
    assert len(recipes) == 2
    for code, output in recipes:
        exec(code.replace("http://127.0.0.1:2024", server.url), {})
        assert capsys.readouterr().out == output


@pytest.mark.engine
@pytest.mark.parametrize("name", ["D", "mine"])
async def test_updates_have_belief_rules_and_memories_as_without_a_server(
    name: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    graph = import_module("minimal").mine() if name == "mine" else build_graph()
    client, context = get_client(url=server.url), RunContext(max_steps=2)
    there = [
        (stage, update)
        async for part in client.runs.stream(
            None, name, input=TASK, context=context.plain, stream_mode="updates"
        )
        if part.event == "updates"
        for stage, update in part.data.items()
    ]
    stream = graph.stream(TASK, context=context, stream_mode="updates")
    here = [(stage, update) for part in stream for stage, update in part.items()]
    keys = {"belief", "sub_goal", "rules", "recalls", "thought", "action"}

    def knowledge(updates: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [(stage, {key: update[key] for key in keys & (update or {}).keys()})
                for stage, update in updates if stage != "reset_env"]  # fmt: skip

    assert knowledge(there) == knowledge(here)
    empty = {stage for stage, update in knowledge(there) if not update}
    assert empty == {"prompt_build", *{"D": [], "mine": ["referee"]}[name]}


@pytest.mark.engine
async def test_an_episode_of_another_world(server: Server) -> None:
    task = {"env": "scienceworld", "split": "dev_mini", "task": "0"}
    names, values = await play(server, {"rules": True, "memory": False, "max_steps": 3}, task)
    loop = [name for name in STAGES[1:] if name not in {*MEMORY_STAGES, "guard_check"}]
    assert names == ["reset_env", *loop * 3]
    assert (values["condition"], values["steps"], values["error"]) == ("B", 3, "")


@pytest.mark.engine
@pytest.mark.parametrize(
    ("task", "context", "names"),
    [
        ({}, {"scf": "sometimes"}, "scf='sometimes' off occupancy"),
        ({"tsk": 3}, {}, "'tsk' 'task'"),
        ({}, {"scff": "off"}, "'scff' 'scf'"),
        ({"env": f"{OURS}:ENVIRONMENT"}, {}, f"'{OURS}:ENVIRONMENT'"),
        ({"env": "this:s"}, {}, "'this:s' alfworld"),
        ({"env": "airline"}, {}, "'airline'"),
    ],
)
async def test_a_mistake_reaches_the_client_as_words(
    task: dict[str, Any], context: dict[str, Any], names: str, server: Server
) -> None:
    client = get_client(url=server.url)
    for name in ("D", "mine"):
        entry: dict[str, Any] = {**TASK, **task}
        errors = [
            part.data
            async for part in client.runs.stream(None, name, input=entry, context=context)
            if part.event == "error"
        ]
        assert len(errors) == 1
        assert errors[0]["error"] in ("RpmsError", "BadSetting")
        assert all(name in errors[0]["message"] for name in names.split())


@pytest.mark.engine
async def test_a_model_behind_http(server: Server, openai_server: OpenAIServer) -> None:
    """A real client opens, fails and gives up on the server's event loop without blocking it."""
    openai_server.plays("Action: look", Answer(status=401, error="wrong key"))
    context = {"memory": False, "model": "openai:scripted", "base_url": openai_server.url}
    names, values = await play(server, context)
    assert names[-1] == "__error_handler__llm_call"
    assert values["failure_mode"] == "model_error"
    assert "wrong key" in values["error"]
    assert values["steps"] == 1


@pytest.mark.engine
async def test_a_run_taken_up_again_stays_the_same_experiment(server: Server) -> None:
    """The server makes a context of defaults where the caller gave none."""
    client = get_client(url=server.url)
    begun = {"rules": False, "memory": False, "max_steps": 4}
    for context in (None, {"max_steps": 3, "rules": True}):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "D", input=TASK, context=begun, interrupt_after=["env_step"])
        result: Any = await client.runs.wait(thread, "D", input=None, context=context)
        assert set(result) == set(ServerOutput.__annotations__)
        assert (result["condition"], result["steps"]) == ("A", 4)
        state: Any = await client.threads.get_state(thread)
        assert state["values"]["settings"] == RunContext(**begun).plain


@pytest.mark.engine
async def test_a_changed_state_imports_nothing_either(server: Server) -> None:
    """``this`` prints a poem when it is imported."""
    client = get_client(url=server.url)
    thread = (await client.threads.create())["thread_id"]
    context = {"memory": False, "max_steps": 2}
    await client.runs.wait(
        thread, "D", input=TASK, context=context, interrupt_before=["belief_update"]
    )
    await client.threads.update_state(thread, {"env": "this:s"}, as_node="reset_env")
    with pytest.raises(Exception, match="unknown environment 'this:s'"):
        await client.runs.wait(thread, "D", input=None, context=context)
    assert "Beautiful is better than ugly" not in server.log.read_text()


@pytest.mark.engine
async def test_a_person_can_go_on_from_a_changed_stage(server: Server) -> None:
    """Under the settings it began with and under others; every stage: test_routing."""
    client = get_client(url=server.url)
    begun = RunContext(guard="offer", max_steps=2, theta=0.0)
    for settings in (begun, begun.with_(rules=False, guard="off")):
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(
            thread, "D", input=TASK, context=begun.plain, interrupt_after=["scf"]
        )
        change = {"recalls": [], "settings": settings.plain}
        await client.threads.update_state(thread, change, as_node="scf")
        end: Any = await client.runs.wait(thread, "D", input=None)
        assert end["failure_mode"] == "timeout" and not end["error"]
        assert (end["condition"], end["steps"]) == (settings.condition, 2)
        assert len(end["history"]) == 2
