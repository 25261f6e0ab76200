"""Beliefs, turns and episodes as the graph has them, for the tests of every world."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rpms.envs import get_environment, live
from rpms.envs.alfworld.adapter import read_action
from rpms.envs.alfworld.tasks import read_game
from rpms.envs.base import Outcome, Task
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.turn import Turn


def task_of(file: Path) -> Task:
    """A task for a game file that stands in no split."""
    return Task(env="alfworld", split="", index=0, id=file.parent.name, goal="", source=str(file))


def plan_of(file: Path) -> list[str]:
    """The walkthrough that a game carries, in the agent's wording."""
    return [read_action(command) for command in read_game(file)["walkthrough"]]


def turn(step: int, action: str, observation: str, failed: bool = False) -> Turn:
    return Turn(
        step=step, thought="", action=action, observation=observation, failed=failed, reply=""
    )


def believing(**fields: Any) -> Belief:
    return Belief(**{**empty_belief(), **fields})  # type: ignore[typeddict-item]


def changed(world: str, before: dict[str, Any], action: str, observation: str) -> dict[str, Any]:
    """The fields of a belief that an observation changed, with their new values."""
    belief = believing(**before)
    after = get_environment(world).update_belief(belief, action, observation)
    return {key: value for key, value in after.items() if value != belief[key]}  # type: ignore[literal-required]


def unshown(belief: Belief, text: str) -> list[str]:
    """Names in a belief with a word that the text does not have; flags may be about no thing."""
    named = [belief["location"] or "", *belief["reachable"], *belief["holding"]]
    named += [*belief["places"], *belief["searched"], *belief["visible"], *belief["containers"]]
    named += [*belief["last_seen"], *belief["last_seen"].values(), *belief["spots"]]
    named += [thing for spot in belief["spots"].values() for thing in spot]
    named += [name for name in belief["flags"] if name not in ("task", "inventory")]
    words = set(re.findall(r"\w+", text.lower()))
    return [name for name in named if not words.issuperset(re.findall(r"\w+", name.lower()))]


class Player:
    """Plays an episode as the graph does: history and state grow by what came back."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task = name, task
        self.history: list[Turn] = []
        self.world: dict[str, Any] | None = None
        self.first = live.start(name, task)

    def play(self, action: str) -> Outcome:
        outcome = live.play(self.name, self.task, self.history, action, self.world)
        self.world = outcome.state
        self.history.append(turn(len(self.history) + 1, action, outcome.observation))
        return outcome


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))
