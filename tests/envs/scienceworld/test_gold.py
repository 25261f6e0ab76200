"""The simulator's own solutions of training tasks, judged by guard verify: none is sent back.

The solutions of all of train_mini are recorded (tools/record_scienceworld.py). Every task's
shortest is played here; ``make gold`` plays them all, which takes a few minutes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from rpms.envs import get_environment
from rpms.envs.base import Task
from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.simulator import ScienceWorldGame
from rpms.envs.scienceworld.tasks import catalogue, list_tasks, read_source
from rpms.guard.procedure import find_violation
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.belief import fingerprint

WORLD = get_environment("scienceworld")
MANUAL = load_manual("scienceworld")
GOLD: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("gold_train.json").read_text(encoding="utf-8")
)


class Judged(NamedTuple):
    task: str
    action: str
    reason: str
    """Why verify would send it back; empty if it would not."""
    answer_reason: str
    """The same with answers checked."""
    rejected: bool
    """By the environment itself."""


def judge(game: ScienceWorldGame, task: Task) -> list[Judged]:
    """Play a solution to its end, and judge each action in the belief of that moment."""
    goal, belief = WORLD.parse_goal(task["goal"]), WORLD.first_belief(game.reset(task))
    played: dict[str, list[str]] = {}
    no_effect: list[str] = []
    refused: set[str] = set()
    judged = []
    for gold in GOLD[task["id"]]:
        action, here = WORLD.read_action(gold), fingerprint(belief)
        sub_goal = WORLD.sub_goal(goal, belief, [])
        before = tuple(played.get(here, ()))
        now = DecisionPoint(MANUAL, goal, sub_goal, belief, no_effect, before, refused)
        against = [
            find_violation(now._replace(check_answers=check), action) for check in (False, True)
        ]
        outcome = game.step(action)
        reasons = [each.reason if each else "" for each in against]
        failed = WORLD.failed(outcome.observation)
        judged.append(Judged(task["id"], action, reasons[0], reasons[1], failed))
        played.setdefault(here, []).append(action)
        after = WORLD.update_belief(belief, action, outcome.observation)
        no_effect = [*no_effect, action] if after == belief else []
        refused = {*refused, action} if failed and after == belief else set()
        belief = after
        if outcome.done:
            assert outcome.won, task["id"]
            break
    return judged


def chosen() -> list[Task]:
    tasks = list_tasks("train_mini")
    if os.environ.get("RPMS_ALL_GOLD"):
        return tasks
    shortest: dict[str, Task] = {}
    for task in sorted(tasks, key=lambda task: len(GOLD[task["id"]])):
        shortest.setdefault(read_source(task["source"])[0], task)
    return [*shortest.values()]


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_verify_sends_no_solution_back(game: ScienceWorldGame) -> None:
    """What the environment itself rejects aside; with answers checked, too."""
    judged = [each for task in chosen() for each in judge(game, task)]
    played = [each for each in judged if not each.rejected]
    assert {read_source(each.task)[0] for each in judged} == {*catalogue()}
    assert [each for each in played if each.reason or each.answer_reason] == []
    verbs = Counter(each.action.split()[0] for each in played)
    assert len(played) >= 600 and verbs["focus"] >= len(catalogue()), verbs
