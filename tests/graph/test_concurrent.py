from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.graph import run_episode
from rpms.graph.concurrent import build_concurrent_graph
from rpms.nodes.context import RunContext
from rpms.nodes.state import EpisodeOutput
from tests.openai_server import Answer, OpenAIServer

CONTEXTS = {
    letter: RunContext.for_condition(letter, max_steps=12) for letter in "ABCD"
} | {
    "off": RunContext(scf="off", arbitration="none", max_steps=12),
    "no scf": RunContext(scf="off", max_steps=12),
    "late": RunContext(layout="cache_friendly", scf="preconditions", max_steps=12),
}  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("name", CONTEXTS)
async def test_it_gives_what_the_plain_graph_gives(name: str, settled: bool) -> None:
    context = CONTEXTS[name]
    graph = build_concurrent_graph(settled=context if settled else None)
    asked: Any = {"env": "alfworld", "split": "generated_unseen", "task": "4"}
    visited: list[str] = []
    final: dict[str, Any] = {}
    async for update in graph.astream(asked, context=context, stream_mode="updates"):
        for stage, change in update.items():
            visited.append(stage)
            final |= change
    plain = run_episode(4, context=context)
    assert {key: final[key] for key in EpisodeOutput.__annotations__} == plain
    assert ("rule_assembly" in visited) is context.rules
    assert ("goal_retrieval" in visited) is context.memory
    assert ("scf" in visited) is (context.memory and context.scf != "off")
    judged = context.rules and context.memory and context.arbitration != "none"
    assert ("arbitration" in visited) is judged


@pytest.mark.engine
async def test_the_loop_is_free_while_models_and_games_are_slow(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is answered before all twelve episodes have made theirs, at each of three steps."""
    everyone = threading.Barrier(12)

    def reply(request: dict[str, Any]) -> Answer:
        everyone.wait()
        return Answer()

    context = RunContext(model="openai:m", base_url=openai_server.url, max_steps=3, timeout_s=500)
    tasks = get_environment("alfworld").tasks("generated_unseen", 12)
    graph = build_concurrent_graph(find=lambda state: tasks[int(state["task"])], settled=context)

    async def episode(index: int) -> Any:
        asked: Any = {"env": "alfworld", "split": "generated_unseen", "task": str(index)}
        return await graph.ainvoke(asked, context=context)

    await episode(0)  # opens the client
    openai_server.plays_by(reply)
    done = await asyncio.gather(*map(episode, range(12)))
    assert len(openai_server.requests) == 12 * 3
    assert [result["task_id"] for result in done] == [task["id"] for task in tasks]
    assert all(result["steps"] == 3 and not result["error"] for result in done)
