"""Playing tickets of tau2 by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rpms.envs import Task, get_environment
from rpms.envs.base import Outcome
from rpms.envs.manuals import load_manual
from rpms.envs.tau2.domain import all_tasks
from rpms.envs.telecom.adapter import HAND_OVER, TelecomGame
from rpms.guard.procedure import find_violation
from rpms.rules.conditions import DecisionPoint
from rpms.rules.verdicts import Violation
from rpms.vocabulary.belief import Belief

WORLD, MANUAL = get_environment("telecom"), load_manual("telecom")
TRAIN = {task["id"]: task for task in WORLD.tasks("train")}
IDENTIFY = "get_customer_by_phone phone_number=555-123-2002"
LINE = "get_details_by_id id=L1002"
BILLS = "get_bills_for_customer customer_id=C1001 limit=12"
USAGE = "get_data_usage customer_id=C1001 line_id=L1002"


class Step(NamedTuple):
    """A call, what spoke against it, and what came of it."""

    action: str
    veto: Violation | None
    outcome: Outcome


class Player:
    """A ticket in play, with what an agent would believe."""

    def __init__(self, task: Task) -> None:
        self.game, self.goal = TelecomGame(), WORLD.parse_goal(task["goal"])
        self.belief: Belief = WORLD.first_belief(self.game.reset(task))

    def veto(self, action: str) -> Violation | None:
        step = WORLD.sub_goal(self.goal, self.belief, [])
        return find_violation(DecisionPoint(MANUAL, self.goal, step, self.belief), action)

    def play(self, *actions: str) -> Iterator[Step]:
        for action in actions:
            against, outcome = self.veto(action), self.game.step(action)
            self.belief = WORLD.update_belief(self.belief, action, outcome.observation)
            yield Step(action, against, outcome)
            if outcome.done:
                return

    def belief_errors(self) -> list[str]:
        return WORLD.belief_errors(self.belief, self.game.facts())


def gold(task: Task) -> list[str]:
    """The task's own actions, after what the policy has one look up before them."""
    actions = [IDENTIFY, LINE, BILLS, USAGE, "check_network_status"]
    for action in all_tasks("telecom")[task["source"]].evaluation_criteria.actions:
        if action.name == HAND_OVER:
            actions += ["reseat_sim_card"] * ("unseat_sim" in task["id"]) + ["check_sim_status"]
        arguments = (f"{name}={value}" for name, value in action.arguments.items())
        actions.append(" ".join([action.name, *arguments]))
    return actions


def with_name(*parts: str) -> Task:
    """The first training ticket in which all this is broken."""
    return next(task for name, task in TRAIN.items() if all(part in name for part in parts))
