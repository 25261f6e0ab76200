"""Edges read what the stage before them leaves, whoever wrote it and in whatever way."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite

from rpms.graph import build_graph
from rpms.nodes.state import EpisodeInput
from rpms.vocabulary.context import RunContext

ASKED = EpisodeInput(split="generated_unseen", task=0)


def decision(verdict: str) -> dict[str, Any]:
    return {"step": 1, "proposal": "", "verdict": verdict, "rule": "", "reason": "", "mend": "",
            "played": ""}  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_stage_may_answer_in_any_of_langgraphs_ways(asynchronous: bool) -> None:
    """A Command, or nothing at all."""

    def belief_update(state: Any) -> Any:
        return Command(update={"settings": RunContext.for_condition("C").plain})

    def scf(state: Any) -> Any:
        return Command(update={"done": True})

    def unchanged(state: Any) -> Any:
        return None

    swapped = {"belief_update": belief_update, "goal_retrieval": unchanged, "scf": scf}
    graph = build_graph({**swapped, "prompt_build": unchanged, "llm_call": unchanged})
    if asynchronous:
        stream = graph.astream(ASKED, context=RunContext(), stream_mode="updates")
        visited = [name async for update in stream for name in update]
    else:
        parts = graph.stream(ASKED, context=RunContext(), stream_mode="updates")
        visited = [name for update in parts for name in update]
    assert visited == [
        "reset_env", "belief_update", "goal_retrieval", "scf", "prompt_build", "llm_call"
    ]  # fmt: skip


@pytest.mark.engine
def test_a_person_who_changes_the_state_is_heard() -> None:
    graph = build_graph(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    context = RunContext(max_steps=1, guard="verify")
    graph.invoke(ASKED, config, context=context, interrupt_after=["action_arbitration"])

    def after(stage: str, values: dict[str, Any]) -> tuple[str, ...]:
        return graph.get_state(graph.update_state(config, values, as_node=stage)).next

    assert after("action_arbitration", {"decisions": [decision("asked_again")]}) == ("llm_call",)
    assert after("action_arbitration", {"action": "look"}) == ("llm_call",)
    one = Overwrite([decision("accepted")])
    assert after("action_arbitration", {"decisions": one}) == ("env_step",)
    assert after("belief_update", {"settings": {**context.plain, "rules": False}}) == (
        "goal_retrieval",
    )
    assert after("env_step", {"done": True}) == ()
    assert after("env_step", {"done": False}) == ("belief_update",)
