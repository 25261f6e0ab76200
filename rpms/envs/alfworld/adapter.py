"""ALFWorld as the graph sees it: the pieces of this folder behind one name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rpms.envs.alfworld import belief as beliefs
from rpms.envs.alfworld import goals, stock, wording
from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.stock import chosen_engine
from rpms.envs.alfworld.tasks import GENERATED, OFFICIAL, list_tasks, read_game
from rpms.envs.alfworld.wheel import command_templates
from rpms.envs.base import Demo, Environment, LiveGame, Outcome, Task
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import EnvironmentFault

SHIPPED = Path(__file__).parents[2]


class AlfworldGame(LiveGame):
    """One game, speaking the paper's wording; its state is plain data."""

    def __init__(self) -> None:
        """No game yet."""
        self._engine = GameEngine()
        self._dialect: wording.Dialect = "move"

    def reset(self, task: Task) -> str:
        """Load the task's game file and start it."""
        self._load(task)
        self._state = self._engine.reset()
        return wording.to_agent(self._state.feedback)

    def step(self, action: str) -> Outcome:
        """Play one action. Only a win ends an ALFWorld game."""
        self._state = state = self._engine.step(wording.to_game(action, self._dialect))
        observation = wording.to_agent(state.feedback)
        return Outcome(
            observation=observation,
            done=state.done,
            won=state.won,
            score=1.0 if state.won else 0.0,
            world={**self._engine.snapshot(), "said": _mark(observation)},
        )

    def restore(self, task: Task, world: Mapping[str, Any], observation: str) -> None:
        """Load the task's game file and go where the state was taken."""
        if world["said"] != _mark(observation):
            raise EnvironmentFault(
                f"{task['id']}: the episode's state was not taken after {observation!r}, where its "
                "record ends"
            )
        self._load(task)
        self._state = self._engine.restore(world)

    def facts(self) -> Any:
        """TextWorld's true facts, for tests and metrics."""
        return self._engine.facts()

    def admissible(self) -> tuple[str, ...]:
        """TextWorld's own list of valid commands, for tests only."""
        return self._state.admissible_commands

    def commands(self) -> list[str]:
        """The same list in the agent's wording, for runs that show it."""
        return [wording.read_action(command) for command in self._state.admissible_commands]

    def demands(self, actions: Sequence[str]) -> list[dict[str, bool] | None]:
        """What the game's PDDL demands of actions, for audits only."""
        from rpms.envs.alfworld.demands import demands

        game, commands = self._engine.game, [wording.to_game(a, self._dialect) for a in actions]
        kinds = {one.name.strip(): one.type for one in game.entities.values()}
        facts = self._engine.facts()
        return demands(commands, game.rules.domain, game.texts, kinds, facts)

    def close(self) -> None:
        """Let go of the game."""
        self._engine.close()

    def _load(self, task: Task) -> None:
        self._engine.load(task["source"])
        self._dialect = wording.dialect_of(self._engine.grammar)


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Alfworld(Environment):
    """The household world: six task types, one hand, silent failures, as the defaults have it."""

    name = "alfworld"
    rules = SHIPPED / "rules" / "alfworld"
    memory = SHIPPED / "memory_store" / "snapshots" / "alfworld.jsonl"
    learning_split = "generated_seen"
    demo = Demo("generated_unseen", 2)
    packages = ("alfworld", "textworld")
    lists_actions = True

    # The pieces of this folder under the base class's names.
    parse_goal = staticmethod(goals.parse_goal)
    first_belief = staticmethod(beliefs.first_belief)
    update_belief = staticmethod(beliefs.update_belief)
    sub_goal = staticmethod(goals.sub_goal)
    describe_belief = staticmethod(beliefs.describe_belief)
    read_action = staticmethod(wording.read_action)

    @property
    def max_live(self) -> int | None:
        """Our engine knows no limit; stock TextWorld is native code, with a library per game."""
        return None if chosen_engine() == "python" else stock.MAX_LIVE

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

    def command_templates(self) -> list[str]:
        """From the same grammar, in the agent's wording."""
        return wording.agent_templates(command_templates())

    def splits(self) -> list[str]:
        """Generated homes first: they are there without any download."""
        return [*reversed(GENERATED), *OFFICIAL]

    def wording(self, split: str) -> str:
        """Always the paper's; what the game files themselves say is told beside it."""
        task = list_tasks(split, 1)[0]
        dialect = wording.dialect_of(read_game(Path(task["source"]))["grammar"])
        return f"the paper's (put X in/on Y, no arrival lines), from games that say {dialect}"

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The split's tasks in their fixed order."""
        return list_tasks(split, count)

    def open_game(self) -> LiveGame:
        """A fresh engine: ours, or stock TextWorld's where the run asked for it."""
        return AlfworldGame() if chosen_engine() == "python" else stock.StockGame()

    def drift(self, belief: Belief, facts: Any) -> list[str]:
        """Where belief and TextWorld's facts part."""
        from rpms.envs.alfworld.truth import disagreements

        return disagreements(belief, facts)

    def true_state(self, facts: Any) -> dict[str, str]:
        """Where the agent truly stands, what it holds and what is open."""
        from rpms.envs.alfworld.truth import true_state

        return true_state(facts)

    def true_belief(self, facts: Any) -> Belief | None:
        """From TextWorld's facts."""
        from rpms.envs.alfworld.demands import true_belief

        return true_belief(facts)

    def demands(
        self, game: LiveGame, actions: Sequence[str]
    ) -> list[dict[str, bool] | None] | None:
        """From the game's PDDL; stock TextWorld's games are not asked."""
        return game.demands(actions) if isinstance(game, AlfworldGame) else None


ENVIRONMENT = Alfworld()
