"""Edges read what the stage before them leaves, and copy nothing to find out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from langgraph.channels.base import BaseChannel
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.ephemeral_value import EphemeralValue
from langgraph.channels.last_value import LastValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite

from rpms.graph import build_graph
from rpms.graph.routing import ROUTES, Edge
from rpms.nodes.context import RunContext
from rpms.nodes.state import EpisodeInput

STEPS = 3
ASKED = EpisodeInput(split="generated_unseen", task=0)


def decision(verdict: str) -> dict[str, Any]:
    return {"step": 1, "proposal": "", "verdict": verdict, "rule": "", "reason": "", "mend": "",
            "played": ""}  # fmt: skip


def test_every_conditional_edge_reads_for_itself() -> None:
    branches = build_graph().builder.branches
    assert branches.keys() == ROUTES.keys()
    assert all(isinstance(edge, Edge) for made in branches.values() for edge in made.values())


@pytest.mark.engine
def test_no_channel_is_copied_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangGraph's own edges copy all of them, some fifty, at each of six edges of a step."""
    copied: Counter[str] = Counter()

    def watch(kind: type[BaseChannel[Any, Any, Any]]) -> None:
        copy = kind.copy

        def counted(self: Any) -> Any:
            copied[kind.__name__] += 1
            return copy(self)

        monkeypatch.setattr(kind, "copy", counted)

    for kind in (LastValue, EphemeralValue, BinaryOperatorAggregate):
        watch(kind)
    seen: Counter[str] = Counter()
    context = RunContext(max_steps=STEPS, guard="verify")
    for update in build_graph().stream(ASKED, context=context, stream_mode="updates"):
        if "reset_env" in update:
            copied.clear()
        seen.update(list(update))
    assert seen["env_step"] == STEPS and seen["arbitration"] == STEPS
    assert not copied


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
