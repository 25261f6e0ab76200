"""ScienceWorld as the graph sees it: the pieces of this folder behind one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rpms.envs.base import BlockName, Demo, Environment, LiveGame, Task
from rpms.envs.scienceworld import belief as beliefs
from rpms.envs.scienceworld import compatibility, goals, handling, tasks, wording
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.signature import read_state
from rpms.vocabulary.turn import Turn

SHIPPED = Path(__file__).parents[2]


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

    def goal_types(self) -> list[str]:
        """The four families."""
        return goals.FAMILIES

    def command_verbs(self) -> list[str]:
        """First words of the simulator's commands, recorded from it so that no JVM starts."""
        return tasks.command_verbs()

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

    def parse_goal(self, sentence: str) -> GoalSpec:
        """Read the goal from the sentence alone."""
        return goals.parse_goal(sentence)

    def first_belief(self, observation: str) -> Belief:
        """b_0 from the opening text."""
        return beliefs.first_belief(observation)

    def update_belief(self, belief: Belief, action: str, observation: str) -> Belief:
        """f_upd."""
        return beliefs.update_belief(belief, action, observation)

    def failed(self, observation: str) -> bool:
        """A refusal, in any of the simulator's wordings."""
        return beliefs.refused(observation)

    def carried_out(self, action: str, belief: Belief, observation: str) -> str:
        """A menu carries out nothing; the number that answers it, the line it stands for."""
        return handling.carried_out(action, belief, observation)

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """The current step of the family's procedure."""
        return goals.sub_goal(goal, belief, history)

    def drift(self, belief: Belief, facts: Any) -> list[str]:
        """Where belief and the simulator's object tree part."""
        from rpms.envs.scienceworld.truth import disagreements

        return disagreements(belief, facts)

    def true_state(self, facts: Any) -> dict[str, str]:
        """The room the agent truly is in and what it carries."""
        from rpms.envs.scienceworld.truth import true_state

        return true_state(facts)

    def describe_belief(self, belief: Belief, goal: GoalSpec) -> list[str]:
        """The [Current State] lines."""
        return beliefs.describe_belief(belief, goal)

    def print_state(self, belief: Belief) -> str:
        """``room=kitchen|inventory=empty|progress=0``."""
        return beliefs.print_state(belief)

    def compat(self, entry: Mapping[str, Any], belief: Belief) -> str:
        """Instrument, room and progress."""
        return compatibility.compat(entry, belief)

    def compat_key(self, printed: str) -> str:
        """The room, which ``compat`` compares; entries without one are told apart as usual."""
        return read_state(printed).get("room") or super().compat_key(printed)

    def requirements(self, belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
        """What COMPAT asks about: instrument, room and progress."""
        return compatibility.requirements(belief, actions)

    def read_action(self, text: str) -> str:
        """Bring loose wording to the canonical command."""
        return wording.read_action(text)


ENVIRONMENT = ScienceWorld()
