"""ALFWorld as the graph sees it: the pieces of this folder behind one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpms.envs.alfworld import belief as beliefs
from rpms.envs.alfworld import goals, wording
from rpms.envs.alfworld.tasks import GENERATED, OFFICIAL, list_tasks, read_game
from rpms.envs.alfworld.wheel import command_templates
from rpms.envs.base import Demo, Environment, LiveGame, Outcome, Task
from rpms.vocabulary.belief import Belief

SHIPPED = Path(__file__).parents[2]


class AlfworldGame(LiveGame):
    """One TextWorld engine, reused from game to game, speaking the paper's wording."""

    def __init__(self) -> None:
        """The engine is imported here, so that listing tasks and rules never pays for it."""
        from rpms.envs.alfworld.engine import GameEngine

        self._engine = GameEngine()
        self._dialect: wording.Dialect = "move"

    def reset(self, task: Task) -> str:
        """Load the task's game file and start it."""
        file = Path(task["source"])
        self._dialect = wording.dialect_of(read_game(file)["grammar"])
        self._engine.load(file)
        self._state = self._engine.reset()
        return wording.to_agent(self._state.feedback)

    def step(self, action: str) -> Outcome:
        """Play one action. Only a win ends an ALFWorld game."""
        self._state = state = self._engine.step(wording.to_game(action, self._dialect))
        return Outcome(
            observation=wording.to_agent(state.feedback),
            done=state.done,
            won=state.won,
            score=1.0 if state.won else 0.0,
        )

    def facts(self) -> Any:
        """TextWorld's true facts, for tests and metrics."""
        return self._engine.facts()

    def admissible(self) -> tuple[str, ...]:
        """TextWorld's own list of valid commands, for tests only."""
        return self._state.admissible_commands

    def close(self) -> None:
        """Free the engine's native library."""
        self._engine.close()


class Alfworld(Environment):
    """The household world: six task types, one hand, silent failures, as the defaults have it.

    Engines are reused and share their memoised parts, so an open game is a few megabytes.
    """

    name = "alfworld"
    rules = SHIPPED / "rules" / "alfworld"
    memory = SHIPPED / "memory_store" / "snapshots" / "alfworld.jsonl"
    learning_split = "generated_seen"
    demo = Demo("generated_unseen", 5)
    packages = ("alfworld", "textworld")

    # The pieces of this folder under the base class's names.
    parse_goal = staticmethod(goals.parse_goal)
    first_belief = staticmethod(beliefs.first_belief)
    update_belief = staticmethod(beliefs.update_belief)
    sub_goal = staticmethod(goals.sub_goal)
    describe_belief = staticmethod(beliefs.describe_belief)
    read_action = staticmethod(wording.read_action)

    def goal_types(self) -> list[str]:
        """The six official task types."""
        return goals.GOAL_TYPES

    def type_label(self, goal_type: str) -> str:
        """The long official names without what they all share."""
        if goal_type.endswith("_in_recep"):
            goal_type = goal_type.removeprefix("pick_").removesuffix("_in_recep")
        return super().type_label(goal_type)

    def command_verbs(self) -> list[str]:
        """Read from the grammar that ships with the engine."""
        verbs = {wording.read_action(text).split()[0] for text in command_templates()}
        return sorted(verbs)

    def splits(self) -> list[str]:
        """Generated homes first: they are there without any download."""
        return [*reversed(GENERATED), *OFFICIAL]

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The split's tasks in their fixed order."""
        return list_tasks(split, count)

    def open_game(self) -> LiveGame:
        """A fresh engine."""
        return AlfworldGame()

    def drift(self, belief: Belief, facts: Any) -> list[str]:
        """Where belief and TextWorld's facts part."""
        from rpms.envs.alfworld.truth import disagreements

        return disagreements(belief, facts)

    def true_state(self, facts: Any) -> dict[str, str]:
        """Where the agent truly stands, what it holds and what is open."""
        from rpms.envs.alfworld.truth import true_state

        return true_state(facts)


ENVIRONMENT = Alfworld()
