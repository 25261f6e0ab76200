"""A stage of one's own fails where it is wrong, and needs no more than it uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.runtime import Runtime

import rpms
import rpms.nodes
from rpms import EpisodeState, RunContext, build_graph
from rpms.memory_store.methods import MemoryMethod
from rpms.memory_store.methods.registry import checked_method
from rpms.vocabulary.goal import GoalSignature
from tests.refusal import refused

pytestmark = pytest.mark.engine

TASK: Any = {"env": "alfworld", "split": "generated_unseen", "task": 2}
D = RunContext(max_steps=2, theta=0.0)


def plain_belief(state: Any) -> Any:
    return {"belief": state["belief"]}


def textual_rules(state: Any) -> Any:
    return {"rules": "Look before you leap."}


def endless(state: Any) -> Any:
    return {"steps": state["steps"] + 1}


def half_a_recall(state: Any) -> Any:
    return {"recalls": [{"entry": {}, "dropped_by": ""}]}


def wordy(state: Any) -> Any:
    return {"action": ["look"], "reply": "look"}


async def awordy(state: Any) -> Any:
    return wordy(state)


@pytest.mark.parametrize(
    ("stage", "node", "names"),
    [
        ("belief_update", plain_belief, "sub_goal"),
        ("rule_assembly", textual_rules, "rules dict str"),
        ("env_step", endless, "done"),
        ("env_step", lambda state: None, "done"),
        ("goal_retrieval", half_a_recall, "recalls[0]['advice']"),
        ("llm_call", wordy, "action string list"),
        ("llm_call", awordy, "action string list"),
    ],
)
async def test_a_wrong_value_is_named_at_its_stage(stage: str, node: Any, names: str) -> None:
    with refused(f"'{stage}'", *names.split()):
        await build_graph({stage: node}).ainvoke(TASK, context=D)


def test_a_retrieval_of_ones_own_makes_its_memories() -> None:
    def goal_retrieval(state: EpisodeState) -> EpisodeState:
        thing = state["goal"]["object"]
        return {
            "recalls": [
                rpms.memory([f"take {thing} 1 from countertop 1"], score=0.9),
                rpms.memory(["open drawer 1", "close drawer 1"], sub_goal="find_object", count=3),
            ]
        }

    for changes in ({}, {"prompt_style": "paper"}, {"scf": "preconditions"}, {"rules": False}):
        graph = build_graph({"goal_retrieval": goal_retrieval})
        final = [*graph.stream(TASK, context=D.with_(**changes), stream_mode="values")][-1]
        assert len(final["recalls"]) == 2 and final["steps"] == 2 and not final["error"]


@pytest.mark.parametrize("name", ["reset_env", "goal_retrieval", "env_step"])
def test_a_stage_is_wrapped_with_the_runtime_or_without(name: str) -> None:
    ours: Callable[..., Any] = getattr(rpms.nodes, name)

    def without(state: EpisodeState) -> EpisodeState:
        return ours(state)

    def with_it(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        return ours(state, runtime)

    first, second = (
        build_graph({name: each}).invoke(TASK, context=D) for each in (without, with_it)
    )
    assert first == second == build_graph().invoke(TASK, context=D)


def test_a_similarity_of_ones_own_replaces_that_of_the_memory() -> None:
    """Also over goal types, which ours never mixes."""

    def of_any_type(goal: GoalSignature, other: GoalSignature) -> float:
        return 0.9 if goal.object == other.object or goal.type != other.type else 0.0

    def recalled(**nodes: Any) -> list[str]:
        graph = build_graph(nodes)
        final = [*graph.stream(TASK, context=D, stream_mode="values")][-1]
        return [recall["entry"].get("goal_signature", "") for recall in final["recalls"]]

    own = recalled(goal_retrieval=rpms.make_goal_retrieval(of_any_type))
    none = recalled(goal_retrieval=rpms.make_goal_retrieval(lambda goal, other: 0.0))
    goal = build_graph().invoke(TASK, context=D)["goal"]["type"]
    types = {signature.partition(":")[0] for signature in own if signature}
    assert types - {goal} and {s.partition(":")[0] for s in recalled() if s} <= {goal}
    assert not any(none)


@pytest.mark.parametrize("value", [3.0, -0.1, float("nan"), None, "1"])
def test_a_similarity_outside_0_to_1_is_refused_by_name(value: Any) -> None:
    def too_alike(goal: GoalSignature, other: GoalSignature) -> Any:
        return value

    graph = build_graph({"goal_retrieval": rpms.make_goal_retrieval(too_alike)})
    with refused("too_alike", "a number from 0 to 1"):
        graph.invoke(TASK, context=D)


def test_a_method_that_does_not_learn_needs_no_learn() -> None:
    class Fixed(MemoryMethod):
        name = "fixed"
        learns = False
        needs_file = False

        def recall(self, request: Any) -> list[rpms.Recall]:
            return [rpms.memory(["look"])]

        def check(self, env: str, context: RunContext) -> None: ...

        def render(self, recalls: Any, fill: Any) -> str:
            return "look"

    assert checked_method("here:Fixed", Fixed).learns is False
    Fixed.learns = True
    with refused("'learn'", "async def learn"):
        checked_method("here:Fixed", Fixed)
