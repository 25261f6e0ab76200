"""Edges read what the stage before them leaves, whoever wrote it and in whatever way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite

from rpms.graph import STAGES, build_graph
from rpms.nodes.state import EpisodeInput
from rpms.vocabulary.context import RunContext

TASK = EpisodeInput(split="generated_unseen", task=0)


def decision(verdict: str) -> dict[str, Any]:
    return {"step": 1, "proposal": "", "verdict": verdict, "rule": "", "reason": "", "repair": "",
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
    others = dict.fromkeys(("memory_selection", "prompt_build", "llm_call"), unchanged)
    graph = build_graph({**swapped, **others})
    if asynchronous:
        stream = graph.astream(TASK, context=RunContext(), stream_mode="updates")
        visited = [name async for update in stream for name in update]
    else:
        parts = graph.stream(TASK, context=RunContext(), stream_mode="updates")
        visited = [name for update in parts for name in update]
    assert visited == [
        "reset_env", "belief_update", "goal_retrieval", "scf", "memory_selection", "prompt_build",
        "llm_call",
    ]  # fmt: skip


@pytest.mark.engine
def test_a_person_who_changes_the_state_is_heard() -> None:
    graph = build_graph(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    context = RunContext(max_steps=1, guard="verify")
    graph.invoke(TASK, config, context=context, interrupt_after=["guard_check"])

    def after(stage: str, values: dict[str, Any]) -> tuple[str, ...]:
        return graph.get_state(graph.update_state(config, values, as_node=stage)).next

    assert after("guard_check", {"decisions": [decision("retried")]}) == ("llm_call",)
    assert after("guard_check", {"action": "look"}) == ("llm_call",)
    accepted = Overwrite([decision("accepted")])
    assert after("guard_check", {"decisions": accepted}) == ("env_step",)
    assert after("belief_update", {"settings": {**context.plain, "rules": False}}) == (
        "goal_retrieval",
    )
    assert after("env_step", {"done": True}) == ()
    assert after("env_step", {"done": False}) == ("belief_update",)


# For every stage, what a person may want otherwise, and how it shows later on: in the state after
# the next reply (``then``), or at the end.
Values = dict[str, Any]
EDITS: dict[str, tuple[Callable[[Values], Values], Callable[[Values, Values], bool]]] = {
    "reset_env": (
        lambda now: {"first_observation": "You are in the attic."},
        lambda then, end: "You are in the attic." in str(then["prompt"]),
    ),
    "belief_update": (
        lambda now: {"belief": {**now["belief"], "holding": ["moonstone 1"]}},
        lambda then, end: "moonstone 1" in str(then["prompt"]),
    ),
    "rule_assembly": (
        lambda now: {"rules": {**now["rules"], "universal": [{"id": "U-1", "text": "Sing."}]}},
        lambda then, end: "Sing." in str(then["prompt"]),
    ),
    "goal_retrieval": (
        lambda now: {"recalls": now["recalls"][:1]},
        lambda then, end: len(then["recalls"]) == 1,
    ),
    "scf": (
        lambda now: {"recalls": [{**r, "dropped_by": "", "reason": ""} for r in now["recalls"]]},
        lambda then, end: not any(r["dropped_by"] == "scf" for r in then["recalls"]),
    ),
    "arbitration": (
        lambda now: {"recalls": []},
        lambda then, end: then["recalls"] == [],
    ),
    "memory_selection": (
        lambda now: {"recalls": []},
        lambda then, end: then["recalls"] == [] and "[Past Experience" not in str(then["prompt"]),
    ),
    "prompt_build": (
        lambda now: {"prompt": [{"role": "user", "content": "What now?"}]},
        lambda then, end: then["usage"]["prompt_tokens"] < 50,
    ),
    "llm_call": (
        lambda now: {"action": "inventory"},
        lambda then, end: end["history"][0]["action"] == "inventory",
    ),
    "guard_check": (
        lambda now: {"action": "open the moon"},
        lambda then, end: end["history"][0]["action"] == "open the moon",
    ),
    "env_step": (
        lambda now: {"first_observation": "You are on the moon."},
        lambda then, end: "You are on the moon." in str(then["prompt"]),
    ),
}


@pytest.mark.engine
@pytest.mark.parametrize("stage", STAGES)
def test_a_person_can_go_on_from_every_stage(stage: str) -> None:
    """Change what the stage wrote, and play on."""
    graph = build_graph(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    context = RunContext(max_steps=2, guard="offer", theta=0.0)
    graph.invoke(
        {**TASK, "task": 5}, config, context=context, interrupt_after=[stage], durability="exit"
    )
    edit, seen = EDITS[stage]
    graph.update_state(config, edit(graph.get_state(config).values), as_node=stage)
    graph.invoke(None, config, context=context)
    end = graph.get_state(config).values
    assert end["done"] and end["failure_mode"] == "timeout" and not end["error"]
    assert (end["condition"], end["steps"], len(end["history"])) == ("D", 2, 2)
    after_replies = [
        past.values for past in graph.get_state_history(config) if past.next == ("guard_check",)
    ]
    assert seen(after_replies[-1], end)
