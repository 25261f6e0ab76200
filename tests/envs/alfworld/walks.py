"""Random walks over real games, valid and invalid actions mixed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envs.alfworld.adapter import ENVIRONMENT, AlfworldGame
from envs.base import Task
from rules import load_manual
from vocabulary.belief import Belief


class Step(NamedTuple):
    before: Belief
    action: str
    observation: str
    after: Belief
    game: AlfworldGame


def task_of(file: Path) -> Task:
    return Task(env="alfworld", split="", index=0, id=file.parent.name, goal="", source=str(file))


def walk(game: AlfworldGame, file: Path, steps: int, seed: int) -> Iterator[Step]:
    """Two thirds admissible commands in the agent's wording, one third anything at all."""
    rng = random.Random(f"{seed}:{file.parent.name}")
    belief = ENVIRONMENT.first_belief(game.reset(task_of(file)))
    for _ in range(steps):
        action = propose(rng, game, belief)
        outcome = game.step(action)
        after = ENVIRONMENT.update_belief(belief, action, outcome.observation)
        yield Step(belief, action, outcome.observation, after, game)
        belief = after


def propose(rng: random.Random, game: AlfworldGame, belief: Belief) -> str:
    if rng.random() < 2 / 3:
        commands = [ENVIRONMENT.read_action(c) for c in game.admissible() if c != "help"]
        # Every room has dozens of places to go to; without this a walk would do little else.
        doing = [c for c in commands if not c.startswith("go to ")]
        if len(doing) > 2 and rng.random() < 0.7:
            commands = doing
        return rng.choice(commands)
    rule = rng.choice(load_manual("alfworld").actions)
    things = [*belief["last_seen"], *belief["holding"]] or ["mug 1"]
    near = [p for p in (belief["location"], *belief["reachable"]) if p] or belief["places"]
    pool = {"object": things, "tool": things, "thing": [*things, *near], "place": belief["places"]}
    names = {
        name: rng.choice(near if name == "place" and rng.random() < 0.5 else pool[name])
        for name in rule.parameters
    }
    return rule.syntax.format(**names)
