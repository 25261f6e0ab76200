"""Measure our engine against stock TextWorld: same games, same commands, same run.

Ratios taken side by side mean something on any machine; absolute times do not. Stock and ours
take turns game by game, so that a busy moment of the machine touches both.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeVar

from rpms.envs.alfworld import memo
from rpms.envs.alfworld.engine import GameEngine
from rpms.vocabulary.errors import RpmsError

_T = TypeVar("_T")


class _Stopwatch:
    """Collects the seconds of every call under a name."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)

    def time(self, name: str, call: Callable[..., _T], *args: Any) -> _T:
        start = perf_counter()
        result = call(*args)
        self._seconds[name].append(perf_counter() - start)
        return result

    def medians(self) -> dict[str, float]:
        return {f"{name}_s": median(seconds) for name, seconds in self._seconds.items()}


def bench_engine(gamefiles: Sequence[Path], steps: int) -> dict[str, float]:
    """Play each game with both engines and compare.

    Args:
        gamefiles: the games; each costs stock TextWorld a few seconds.
        steps: how many commands to play in each, all admissible, chosen with a fixed seed.

    Returns:
        Median seconds per load, reset and step (``stock_*_s``, ``ours_*_s``; ``ours_load_s`` is
        a first load and ``ours_cached_load_s`` one with the translation on disk), and how many
        times faster ours is (``load_ratio``, ``cached_load_ratio``, ``reset_ratio``,
        ``step_ratio``).
    """
    if not gamefiles or steps < 1:
        raise RpmsError("bench: needs at least one game and one step")
    watch = _Stopwatch()
    rng = random.Random(0)
    with TemporaryDirectory(prefix="rpms-bench-") as folder:
        ours = GameEngine(cache=Path(folder))
        ours.load(gamefiles[0])  # Imports and the shared grammar are paid once per process.
        stock: Any = start_stock(gamefiles[0])
        for gamefile in gamefiles:
            _clear(Path(folder))
            watch.time("ours_load", ours.load, gamefile)
            memo.forget()
            watch.time("ours_cached_load", ours.load, gamefile)
            watch.time("stock_load", stock.load, str(gamefile))
            _play(ours, stock, watch, rng, steps)
        ours.close()
        stock.close()
    seconds = watch.medians()
    ratios = {
        "load_ratio": seconds["stock_load_s"] / seconds["ours_load_s"],
        "cached_load_ratio": seconds["stock_load_s"] / seconds["ours_cached_load_s"],
        "reset_ratio": seconds["stock_reset_s"] / seconds["ours_reset_s"],
        "step_ratio": seconds["stock_step_s"] / seconds["ours_step_s"],
    }
    return seconds | ratios


def _play(ours: GameEngine, stock: Any, watch: _Stopwatch, rng: random.Random, steps: int) -> None:
    """Time one game from reset; the first reset after a load is too easy for ours to count."""
    state = ours.reset()
    ours.step(state.admissible_commands[0])
    state = watch.time("ours_reset", ours.reset)
    commands = []
    for _ in range(steps):
        command = rng.choice(state.admissible_commands)
        commands.append(command)
        state = watch.time("ours_step", ours.step, command)
    watch.time("stock_reset", stock.reset)
    for command in commands:
        watch.time("stock_step", stock.step, command)


def _clear(folder: Path) -> None:
    memo.forget()
    for entry in folder.rglob("*.sas"):
        entry.unlink()


def start_stock(gamefile: Path) -> Any:
    """TextWorld's own environment for a game, as alfworld starts it."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    if sys.version_info >= (3, 13):
        _repair_stock()
    infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=True)
    return textworld.start(str(gamefile), infos, wrappers=[AlfredDemangler(), AlfredInfos])


def _repair_stock() -> None:
    """Let stock TextWorld run on Python 3.13, where writing to ``locals()`` has no effect.

    Its text expansion evaluates names that it has put there. The same expression is evaluated
    with the same names, given explicitly; nothing else changes.
    """
    from textworld.envs.pddl import textgen

    def derive(self: Any, context: Any = None) -> list[Any]:
        names = {"context": context or self.context, **(context or self.context)["variables"]}
        return [textgen.TerminalSymbol(eval(self.expression, vars(textgen), names))]

    textgen.EvalSymbol.derive = derive
