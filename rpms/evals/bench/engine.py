"""Measure our engine against stock TextWorld: same games, same commands, same run.

Ratios taken side by side mean something on any machine; absolute times do not. Stock and ours
take turns game by game, so that a busy moment of the machine touches both.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, TypeVar

from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.stock import require_stock, start_stock
from rpms.vocabulary.errors import RpmsError

PARTS = ("load", "reset", "step", "episode")

_T = TypeVar("_T")


class _Stopwatch:
    """Collects the processor seconds of every call under a name."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)

    def time(self, name: str, call: Callable[..., _T], *args: Any) -> _T:
        start = process_time()
        result = call(*args)
        self._seconds[name].append(process_time() - start)
        return result

    def medians(self) -> dict[str, float]:
        return {f"{name}_s": median(seconds) for name, seconds in self._seconds.items()}


def bench_engine(gamefiles: Sequence[Path], steps: int) -> dict[str, float]:
    """Play each game with both engines and compare.

    Args:
        gamefiles: the games; each costs stock TextWorld a few seconds.
        steps: how many commands to play in each, all admissible, chosen with a fixed seed.

    Returns:
        Median processor seconds per load, reset, step and whole episode (load, reset and the
        walkthrough) as ``stock_*_s`` and ``ours_*_s``, and how many times faster ours is
        (``load_ratio``, ``reset_ratio``, ``step_ratio``, ``episode_ratio``). Nothing of a game
        is kept from one load to the next.

    Raises:
        RpmsError: stock TextWorld is not installed, or there is nothing to measure.
    """
    if not gamefiles or steps < 1:
        raise RpmsError("bench: needs at least one game and one step")
    require_stock()
    watch = _Stopwatch()
    rng = random.Random(0)
    ours = GameEngine()
    ours.load(gamefiles[0])  # Imports and the rules that games share are paid once per process.
    stock: Any = start_stock(gamefiles[0])
    for gamefile in gamefiles:
        watch.time("ours_load", ours.load, gamefile)
        watch.time("stock_load", stock.load, str(gamefile))
        _play(ours, stock, watch, rng, steps)
        walkthrough = ours.walkthrough or ["look"]
        watch.time("ours_episode", _episode, ours, gamefile, walkthrough)
        watch.time("stock_episode", _episode, stock, gamefile, walkthrough)
    ours.close()
    stock.close()
    seconds = watch.medians()
    return seconds | {
        f"{part}_ratio": seconds[f"stock_{part}_s"] / seconds[f"ours_{part}_s"] for part in PARTS
    }


def _play(ours: GameEngine, stock: Any, watch: _Stopwatch, rng: random.Random, steps: int) -> None:
    state = watch.time("ours_reset", ours.reset)
    commands = []
    for _ in range(steps):
        command = rng.choice(state.admissible_commands)
        commands.append(command)
        state = watch.time("ours_step", ours.step, command)
    watch.time("stock_reset", stock.reset)
    for command in commands:
        watch.time("stock_step", stock.step, command)


def _episode(engine: Any, gamefile: Path, commands: Sequence[str]) -> None:
    engine.load(str(gamefile))
    engine.reset()
    for command in commands:
        engine.step(command)
