"""The real ``langgraph dev``, driven by the real SDK, as LangGraph Studio would."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client

from rpms.graph import STAGES, run_episode
from rpms.nodes import RunContext
from rpms.nodes.state import EpisodeOutput
from tests.openai_server import Answer, OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("server")]

ROOT = Path(__file__).resolve().parents[2]
MEMORY_STAGES = {"goal_retrieval", "scf", "arbitration"}
TASK = {"env": "alfworld", "split": "generated_unseen", "task": "5"}


class Server(NamedTuple):
    url: str
    log: Path
    process: subprocess.Popen[bytes]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/ok", timeout=2).json()["ok"]:
                return
        except httpx.HTTPError:
            time.sleep(0.3)
    raise AssertionError(f"the server did not come up:\n{log.read_text()}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("server") / "log.txt"
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", *command],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LANGSMITH_TRACING": "false"},
        )
    try:
        wait_until_up(url, process, log)
        yield Server(url, log, process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_the_graph_can_be_read(server: Server) -> None:
    client = get_sync_client(url=server.url)
    (assistant,) = client.assistants.search(graph_id="rpms")
    drawn = client.assistants.get_graph(assistant["assistant_id"])
    assert {str(node["id"]) for node in drawn["nodes"]} == {*STAGES, "__start__", "__end__"}
    edges = {(edge["source"], edge["target"]) for edge in drawn["edges"]}
    assert ("belief_update", "prompt_build") in edges
    assert ("env_step", "belief_update") in edges


def test_the_schemas_can_be_read(server: Server) -> None:
    client = get_sync_client(url=server.url)
    (assistant,) = client.assistants.search(graph_id="rpms")
    schemas: Any = client.assistants.get_schemas(assistant["assistant_id"])
    assert set(schemas["input_schema"]["properties"]) == {"env", "split", "task"}
    assert set(schemas["output_schema"]["properties"]) == set(EpisodeOutput.__annotations__)
    assert {"belief", "recalls", "prompt"} <= set(schemas["state_schema"]["properties"])
    form = schemas["context_schema"]["properties"]
    assert form["rules"]["type"] == "boolean"
    assert form["scf"]["enum"] == ["off", "occupancy", "preconditions"]
    assert form["max_steps"]["default"] == 0


async def play(
    server: Server, context: dict[str, Any], task: dict[str, str] = TASK
) -> tuple[list[str], dict[str, Any]]:
    """Stages visited, in order, and the output."""
    client = get_client(url=server.url)
    thread = await client.threads.create()
    names: list[str] = []
    async for part in client.runs.stream(
        thread["thread_id"], "rpms", input=task, context=context, stream_mode="updates"
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
        ({"rules": True, "memory": False}, MEMORY_STAGES),
        ({"rules": True, "memory": True, "arbitration": "none"}, {"arbitration"}),
        ({"rules": True, "memory": True}, set()),
    ],
)
async def test_an_episode_with_toggles(
    toggles: dict[str, Any], skipped: set[str], server: Server
) -> None:
    names, values = await play(server, {**toggles, "max_steps": 3})
    loop = [name for name in STAGES[1:] if name not in {*skipped, "action_arbitration"}]
    assert names == ["reset_env", *loop * 3]
    here = run_episode(
        TASK["task"], split=TASK["split"], context=RunContext(**toggles, max_steps=3)
    )
    assert {key: values[key] for key in here} == here


@pytest.mark.engine
async def test_an_episode_of_another_world(server: Server) -> None:
    task = {"env": "scienceworld", "split": "dev_mini", "task": "0"}
    names, values = await play(server, {"rules": True, "memory": False, "max_steps": 3}, task)
    loop = [name for name in STAGES[1:] if name not in {*MEMORY_STAGES, "action_arbitration"}]
    assert names == ["reset_env", *loop * 3]
    here = run_episode(
        "0", env="scienceworld", split="dev_mini",
        context=RunContext.for_condition("B", max_steps=3),
    )  # fmt: skip
    assert {key: values[key] for key in here} == here


@pytest.mark.engine
async def test_the_output_is_the_output_schema(server: Server) -> None:
    client = get_client(url=server.url)
    result: Any = await client.runs.wait(
        None, "rpms", input=TASK, context={"rules": True, "memory": False}
    )
    assert set(result) == set(EpisodeOutput.__annotations__)
    assert result["steps"] == len(result["history"]) > 0 and not result["error"]


@pytest.mark.engine
async def test_bad_settings_are_answered_with_the_reason(server: Server) -> None:
    client = get_client(url=server.url)
    # The server keeps an error's text from its clients, but not from its log.
    with pytest.raises(Exception, match="RpmsError"):
        await client.runs.wait(None, "rpms", input=TASK, context={"scf": "sometimes"})
    assert "scf='sometimes' is not possible; choose from off" in server.log.read_text()


@pytest.mark.engine
async def test_a_model_behind_http(server: Server, openai_server: OpenAIServer) -> None:
    """A real client opens, fails and gives up on the server's event loop without blocking it."""
    openai_server.plays("Action: look", Answer(status=401, error="wrong key"))
    context = {"memory": False, "model": "openai:scripted", "base_url": openai_server.url}
    names, values = await play(server, context)
    assert names[-1] == "llm_call"
    assert values["failure_mode"] == "model_error"
    assert "wrong key" in values["error"]
    assert values["steps"] == 1


@pytest.mark.engine
async def test_an_unfinished_run_can_be_gone_on_with(server: Server) -> None:
    client = get_client(url=server.url)
    thread = (await client.threads.create())["thread_id"]
    context = {"memory": False, "max_steps": 4}
    await client.runs.wait(
        thread, "rpms", input=TASK, context=context, interrupt_before=["env_step"]
    )
    state: Any = await client.threads.get_state(thread)
    assert state["next"] == ["env_step"]
    result: Any = await client.runs.wait(thread, "rpms", input=None, context=context)
    assert result["steps"] == 4


def test_nothing_blocked_the_event_loop(server: Server) -> None:
    """Last on purpose: by now every kind of run has passed."""
    text = server.log.read_text()
    assert "langgraph_api" in text
    assert "locking call" not in text
    assert "BlockingError" not in text
    assert "unregistered type" not in text


def test_it_stops_when_asked(server: Server) -> None:
    server.process.send_signal(signal.SIGINT)
    server.process.wait(30)
    assert "Traceback" not in server.log.read_text().rpartition("Shutting down")[2]
