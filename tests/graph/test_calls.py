"""The settings of a call: one place decides them, and no way in loses one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from rpms.graph import RpmsGraph, build_graph, make_builder, run_episode
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from tests.graph.around import around
from tests.refusal import refused

pytestmark = pytest.mark.engine

TASK: Any = {"env": "alfworld", "split": "generated_unseen", "task": 5}
THREAD: Any = {"configurable": {"thread_id": "t"}}
B = RunContext.for_condition("B", guard="offer", seed=3, max_steps=2)


def forked(graph: RpmsGraph, context: Any) -> Any:
    graph.invoke(TASK, THREAD, context=context)
    past = [each for each in graph.get_state_history(THREAD) if each.next == ("llm_call",)][-1]
    return graph.invoke(None, graph.update_state(past.config, {"settings": {"seed": 9}}))


WAYS: dict[str, Callable[[RpmsGraph, Any], Any]] = {
    "invoke": lambda graph, context: graph.invoke(TASK, THREAD, context=context),
    "stream": lambda graph, context: [
        *graph.stream(TASK, THREAD, context=context, stream_mode="values")
    ][-1],
    "batch": lambda graph, context: graph.batch([TASK], THREAD, context=context)[0],
    "copy": lambda graph, context: graph.with_config(tags=["a"]).invoke(
        TASK, THREAD, context=context
    ),
    "run_episode": lambda graph, context: run_episode(
        5, env="alfworld", split="generated_unseen", graph=graph, config=THREAD, context=context
    ),
    "subgraph": lambda graph, context: around(graph).invoke(TASK, context=context),
    "runnable": lambda graph, context: (
        RunnableLambda(lambda task: task) | graph.bind(context=context)
    ).invoke(TASK, THREAD),
    "configurable": lambda graph, context: graph.invoke(
        TASK, {"configurable": {**THREAD["configurable"], **(context or {})}}
    ),
    "fork": forked,
}


@pytest.mark.parametrize("context", [None, {}, {"max_steps": 3}])
@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_leads_to_another_condition(way: str, context: Any) -> None:
    graph = build_graph(context=B, checkpointer=InMemorySaver())
    result = WAYS[way](graph, context)
    assert (result["condition"], result["steps"]) == ("B", 3 if context else 2)
    if way not in ("subgraph", "fork"):
        expected = B.with_(**(context or {})).plain
        assert graph.get_state(THREAD).values["settings"] == expected


async def test_the_same_on_an_event_loop_and_from_the_builder() -> None:
    graph = make_builder(context=B).compile()
    for result in (
        await graph.ainvoke(TASK, context={}),
        (await graph.abatch([TASK], context={}))[0],
    ):
        assert (result["condition"], result["steps"]) == ("B", 2)
    complete = graph.invoke(TASK, context=RunContext(max_steps=1))
    assert (complete["condition"], complete["steps"]) == ("D", 1)


def test_a_setting_in_configurable_is_one_of_the_context() -> None:
    graph = build_graph(context=B)
    config: Any = {"configurable": {"max_steps": 1, "user": "x"}}
    assert graph.invoke(TASK, config)["steps"] == 1
    assert graph.invoke(TASK, config, context={"max_steps": 1})["condition"] == "B"
    for context in ({"max_steps": 4}, RunContext()):
        with refused("max_steps", "configurable"):
            graph.invoke(TASK, config, context=context)


def test_an_edit_of_one_setting_keeps_the_others() -> None:
    graph = build_graph(checkpointer=InMemorySaver())
    begun = RunContext.for_condition("B+verify", max_steps=2)
    graph.invoke(TASK, THREAD, context=begun, interrupt_after=["belief_update"])
    graph.update_state(THREAD, {"settings": {"rules": False}})
    graph.update_state(THREAD, {"settings": {"max_steps": 1}}, as_node="belief_update")
    changed = begun.with_(rules=False, max_steps=1)
    assert graph.get_state(THREAD).values["settings"] == changed.plain
    result = graph.invoke(None, THREAD)
    assert (result["condition"], result["steps"]) == (changed.condition, 1)
    with refused("'sed'", "'seed'"):
        graph.update_state(THREAD, {"settings": {"sed": 7}})


def test_an_edit_of_one_field_of_the_belief_keeps_the_others() -> None:
    graph = build_graph(checkpointer=InMemorySaver(), context=B)
    graph.invoke(TASK, THREAD, interrupt_after=["belief_update"])
    believed = graph.get_state(THREAD).values["belief"]
    fork = graph.update_state(THREAD, {"belief": {"location": "sofa 1"}})
    assert graph.get_state(fork).values["belief"] == {**believed, "location": "sofa 1"}
    assert graph.invoke(None, fork)["condition"] == "B"
    with refused("'locaton'", "'location'"):
        graph.update_state(THREAD, {"belief": {"locaton": "sofa 1"}})
    for wrong in ({"holding": "mug 1"}, {"containers": ["fridge 1"]}, {"location": 5}, "sofa 1"):
        with refused("belief"):
            graph.update_state(THREAD, {"belief": wrong})


async def test_an_edit_of_what_the_state_does_not_have_is_refused() -> None:
    """LangGraph drops the key, and a fork would play on as if nothing had been edited."""
    graph = build_graph(checkpointer=InMemorySaver(), context=B)
    graph.invoke(TASK, THREAD, interrupt_after=["belief_update"])
    with refused("'belif'", "'belief'"):
        graph.update_state(THREAD, {"belif": {"location": "sofa 1"}})
    with refused("'belif'", "'belief'"):
        await graph.aupdate_state(THREAD, {"belif": {"location": "sofa 1"}})


def test_a_thread_used_again_takes_nothing_over() -> None:
    graph = build_graph(context=B, checkpointer=InMemorySaver())
    first = graph.invoke({**TASK, "split": "generated_seen"}, THREAD)
    default = build_graph(context=B).invoke({"task": 5})
    assert default["task_id"] != first["task_id"]
    assert graph.invoke({"task": 5}, THREAD)["task_id"] == default["task_id"]
    bare = graph.invoke({"task": 5}, THREAD, context=RunContext.for_condition("A", max_steps=2))
    assert bare == run_episode(5, context=RunContext.for_condition("A", max_steps=2))
    state = graph.get_state(THREAD).values
    assert not any(state["rules"].values()) and state["recalls"] == []
    with refused("'tsk'", "'task'"):
        graph.invoke({"tsk": 5}, THREAD)
    with refused("'alfword'"):
        graph.invoke({"env": "alfword", "task": 5}, THREAD)
    assert (
        graph.invoke({}, THREAD)["task_id"] == build_graph(context=B).invoke({"task": 0})["task_id"]
    )


def test_an_edge_of_ones_own_around_memory_leaves_no_old_memory() -> None:
    def without_memory(
        state: EpisodeState,
    ) -> Command[Literal["goal_retrieval", "prompt_build"]]:
        return Command(goto="goal_retrieval" if state["steps"] == 0 else "prompt_build")

    graph = build_graph(after={"rule_assembly": without_memory}, checkpointer=InMemorySaver())
    graph.invoke(TASK, THREAD, context=RunContext(max_steps=2, theta=0.0))
    prompts = [
        past.values for past in graph.get_state_history(THREAD) if past.next == ("llm_call",)
    ]
    late, early = prompts
    assert any(not recall["dropped_by"] for recall in early["recalls"])
    assert late["recalls"] == [] and "[Past Experience" not in str(late["prompt"])


def test_the_recursion_limit_follows_from_the_steps_unless_the_caller_gives_one() -> None:
    graph = build_graph(context=RunContext.for_condition("D", max_steps=5))
    chain: Any = RunnableLambda(lambda task: task) | graph
    inside = RunnableLambda(lambda task: run_episode(task, graph=graph))
    for result in (*graph.batch([TASK, TASK]), chain.invoke(TASK), inside.invoke(5)):
        assert result["steps"] == 5
    assert around(graph).batch([TASK])[0]["steps"] == 5
    for limited in (graph, graph.with_config(recursion_limit=7)):
        config: Any = {"recursion_limit": 7} if limited is graph else None
        with pytest.raises(GraphRecursionError, match="recursion_limit"):
            limited.invoke(TASK, config)
