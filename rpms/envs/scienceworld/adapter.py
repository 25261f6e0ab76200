"""ScienceWorld as the graph sees it: the pieces of this folder behind one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpms.envs.base import BlockName, Demo, Environment, LiveGame, Task
from rpms.envs.scienceworld import belief as beliefs
from rpms.envs.scienceworld import compatibility, goals, handling, tasks, wording
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import read_state

SHIPPED = Path(__file__).parents[2]
# What rules can be learned about, in the wording and with the blanks of the manual. The others
# depend on what no statement about their blanks says: whether a focus is right, which rooms share
# an open door (go to), how much of which substance is where (use, pour, dunk, mix, eat, flush); or
# they decide nothing (look at, look in, examine, read, wait, task).
LEARNABLE = (
    "look around", "inventory", "teleport to {place}", "open {thing}", "close {thing}",
    "activate {device}", "deactivate {device}", "pick up {object}", "put down {object}",
    "move {object} to {place}",
)  # fmt: skip


class ScienceWorld(Environment):
    """The science house: four families of tasks, many things to carry, one fatal mistake."""

    name = "scienceworld"
    max_steps = 100
    max_tokens = 512
    # Each running game is a Java process of its own.
    max_live = 1
    rules = SHIPPED / "rules" / "scienceworld"
    memory = SHIPPED / "memory_store" / "snapshots" / "scienceworld.jsonl"
    # The order of the paper's listing for this world: state, objective, rules, memory.
    blocks: tuple[BlockName, ...] = ("state", "goal", "rules", "situation", "memory")
    graded = True
    # family:verb:target; the verb tells goals of a family apart, not the destination.
    signature = ("type", "destination", "object")
    learning_split = "train_mini"
    demo = Demo("dev_mini", 1)
    packages = ("scienceworld",)

    # The pieces of this folder under the base class's names.
    parse_goal = staticmethod(goals.parse_goal)
    first_belief = staticmethod(beliefs.first_belief)
    update_belief = staticmethod(beliefs.update_belief)
    failed = staticmethod(beliefs.refused)
    carried_out = staticmethod(handling.carried_out)
    sub_goal = staticmethod(goals.sub_goal)
    describe_belief = staticmethod(beliefs.describe_belief)
    print_state = staticmethod(beliefs.print_state)
    compat = staticmethod(compatibility.compat)
    requirements = staticmethod(compatibility.requirements)
    read_action = staticmethod(wording.read_action)

    def goal_types(self) -> list[str]:
        """The four families."""
        return goals.FAMILIES

    def command_verbs(self) -> list[str]:
        """First words of the simulator's commands, recorded from it so that no JVM starts."""
        return tasks.command_verbs()

    def command_templates(self) -> list[str]:
        """Those whose fate a belief can speak about; the rest stays as the manual has it."""
        return list(LEARNABLE)

    def splits(self) -> list[str]:
        """The test episodes first, then what may be learned from."""
        return list(tasks.SPLITS)

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The split's tasks in their fixed order."""
        return tasks.list_tasks(split, count)

    def task_name(self, task: Task) -> str:
        """``boil`` for ``boil/21``."""
        return tasks.read_source(task["source"])[0]

    def open_game(self) -> LiveGame:
        """A fresh simulator; its JVM starts with the first episode."""
        from rpms.envs.scienceworld.game import ScienceWorldGame

        return ScienceWorldGame()

    def drift(self, belief: Belief, facts: Any) -> list[str]:
        """Where belief and the simulator's object tree part."""
        from rpms.envs.scienceworld.truth import disagreements

        return disagreements(belief, facts)

    def true_state(self, facts: Any) -> dict[str, str]:
        """The room the agent truly is in and what it carries."""
        from rpms.envs.scienceworld.truth import true_state

        return true_state(facts)

    def compat_key(self, printed: str) -> str:
        """The room, which ``compat`` compares; entries without one are told apart as usual."""
        return read_state(printed).get("room") or super().compat_key(printed)


ENVIRONMENT = ScienceWorld()
