"""A sub-goal of a science task and a belief, and what is offered for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.nodes.manual import load_manual
from rpms.policy import DecisionPoint, serving_actions
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.goal import SubGoal

Served = Callable[..., list[str]]


@pytest.fixture
def served() -> Served:
    """The actions offered for a sub-goal, best first; the belief is given by its fields."""
    world, manual = get_environment("scienceworld"), load_manual("scienceworld")

    def ask(
        sentence: str, step: str, target: str = "", no_effect: tuple[str, ...] = (), **fields: Any
    ) -> list[str]:
        goal = world.parse_goal(sentence)
        belief = Belief(**{**empty_belief(), "location": "kitchen", **fields})  # type: ignore[typeddict-item]
        belief["visible"] = belief["visible"] or ["air"]
        sub_goal = SubGoal(name=step, target=target or goal["object"], progress=0)
        choices = serving_actions(DecisionPoint(manual, goal, sub_goal, belief, no_effect))
        return [choice["action"] for choice in choices]

    return ask
