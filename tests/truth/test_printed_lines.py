"""Every line that a model reads, in every world, held against the simulator's truth.

What is printed about the state, about what an action needs or about where something is must be
true at that step; a line that nobody can check is a fault, too.
"""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.envs.base import Task
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from tests.truth import alfworld_lines
from tests.truth.playing import PLAYERS, play
from tests.truth.reading import false_lines, one_voice_faults

# Every condition with blocks, and both forms of memory; E shows the guard's offers, too.
ARMS: dict[str, RunContext] = {
    "S": RunContext.for_condition("S"),
    "B": RunContext.for_condition("B"),
    "B all rules": RunContext.for_condition("B").with_(rules_scope="all"),
    "C": RunContext.for_condition("C"),
    "C recorded": RunContext.for_condition("C").with_(memory_form="recorded"),
    "D": RunContext.for_condition("D"),
    "D recorded": RunContext.for_condition("D").with_(memory_form="recorded"),
    "D short history": RunContext.for_condition("D").with_(history=3),
    "E": RunContext.for_condition("E"),
}


def one_of_each_type(env: str, split: str) -> list[Task]:
    world, chosen = get_environment(env), dict[str, Task]()
    for task in world.tasks(split, 12):
        chosen.setdefault(world.parse_goal(task["goal"])["type"], task)
    return list(chosen.values())


def test_alfworld_prints_no_false_line() -> None:
    """Some thousand steps: every goal type, condition, form of memory and player."""
    faults, steps = list[str](), 0
    for task in one_of_each_type("alfworld", "generated_seen"):
        for context in ARMS.values():
            for player in PLAYERS:
                before: Belief | None = None
                for moment in play("alfworld", task, context, player, steps=20):
                    steps += 1
                    faults += false_lines(moment, alfworld_lines.KINDS)
                    faults += one_voice_faults(moment)
                    faults += alfworld_lines.needs_hold(moment, before)
                    before = alfworld_lines.truth_of(moment)
    assert steps > 2000
    assert faults == []
