"""A campaign of exploration: home after home, first curiosity, then experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from rpms.envs.base import Environment, Task
from rpms.rule_learning.experiments import Laboratory
from rpms.rule_learning.exploring import Curiosity, Player, Watcher
from rpms.rule_learning.transitions import Experience

STEPS = 600
"""Commands per home."""
RELEARN = 200
"""Commands after which the rules are induced again."""

Report = Callable[[int, Experience], None]


def explore(
    env: Environment,
    tasks: Sequence[Task],
    seed: int,
    report: Report = lambda number, experience: None,
    steps: int = STEPS,
    watchers: Sequence[Watcher] = (),
) -> Experience:
    """Play the tasks' homes and note every answer; ``report`` is called after each home.

    Whatever the tasks ask for is of no interest here.
    """
    game, done = env.open_game(), Counter[tuple[str, object]]()
    experience = Experience(env.command_templates(), _constants(env, tasks))
    try:
        for number, task in enumerate(tasks, start=1):
            player = Player(env, game, experience, Random(f"{seed}/{number}"), watchers)
            player.begin(task, steps)
            _play_home(player, done)
            report(number, experience)
    finally:
        game.close()
    return experience


def _play_home(player: Player, done: Counter[tuple[str, object]]) -> None:
    curiosity = Curiosity(player)
    laboratory = Laboratory(player, curiosity, done)
    due = player.left - RELEARN
    while player.left > 0:
        if player.left <= due:
            curiosity.learn()
            due = player.left - RELEARN
        curiosity.test_here()
        chance = player.rng.random()
        if chance < 0.5:
            laboratory.run_one()
        elif chance < 0.6:
            curiosity.look()
        elif chance < 0.75:
            curiosity.try_anything()
        else:
            curiosity.walk()
    player.end()


def _constants(env: Environment, tasks: Sequence[Task]) -> list[str]:
    """Places that every home has under the same name: a rule may speak of them."""
    game = env.open_game()
    try:
        found = [set(env.first_belief(game.reset(task))["places"]) for task in tasks[:20]]
    finally:
        game.close()
    return sorted(set.intersection(*found)) if len(found) > 1 else []
