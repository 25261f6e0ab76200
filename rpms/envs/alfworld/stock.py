"""Stock TextWorld, for whoever wants to play on it or to compare with it.

Our engine plays the same games word for word, without a compiler and many times faster, so this
is an extra: ``pip install 'rpms[textworld]'``. The choice travels in an environment variable,
which worker processes inherit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from rpms.envs.alfworld.engine import EngineState, Fact
from rpms.envs.alfworld.tasks import read_game
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

EngineName = Literal["python", "textworld"]
VARIABLE = "RPMS_ENGINE"
MAX_LIVE = 8
"""Every stock game holds a copy of the planner library, and its memory is never given back."""

_NEEDED = ("textworld", "fast_downward", "alfworld", "numpy")


def chosen_engine() -> EngineName:
    """Which engine plays ALFWorld in this process."""
    name = os.environ.get(VARIABLE, "") or "python"
    if name == "python":
        return "python"
    if name == "textworld":
        return "textworld"
    raise RpmsError(f"unknown engine '{name}'; choose python or textworld")


def choose_engine(name: str) -> None:
    """Play ALFWorld on this engine from now on, here and in worker processes to come."""
    before = os.environ.get(VARIABLE, "")
    os.environ[VARIABLE] = name
    try:
        if chosen_engine() == "textworld":
            require_stock()
    except RpmsError:
        os.environ[VARIABLE] = before
        raise


def missing_stock() -> list[str]:
    """The packages that stock TextWorld lacks on this machine."""
    return [name for name in _NEEDED if find_spec(name) is None]


def require_stock() -> None:
    """Refuse to go on without stock TextWorld."""
    if absent := missing_stock():
        raise RpmsError(
            f"stock TextWorld is not installed ({', '.join(absent)} missing); it needs a C++ "
            "compiler: pip install 'rpms[textworld]', or play on the built-in engine"
        )


def start_stock(gamefile: Path) -> Any:
    """TextWorld's own environment for a game, as alfworld starts it."""
    require_stock()
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    if sys.version_info >= (3, 13):
        _repair_stock()
    infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=True)
    return textworld.start(str(gamefile), infos, wrappers=[AlfredDemangler(), AlfredInfos])


class StockEngine:
    """Stock TextWorld with our engine's face; it starts with the first game."""

    def __init__(self) -> None:
        require_stock()
        self._env: Any = None
        self._state: Any = None
        self.texts = ""

    def load(self, gamefile: str | Path) -> None:
        """Load a game."""
        self._file = Path(gamefile)
        self.texts = read_game(self._file)["grammar"]
        with self._refusing():
            if self._env is None:
                self._env = start_stock(self._file)
            else:
                self._env.load(str(gamefile))

    def reset(self) -> EngineState:
        """Start the loaded game."""
        with self._refusing():
            self._state = self._env.reset()
        return self._state_of(bool(self._state["won"]))

    def step(self, command: str) -> EngineState:
        """Play one command."""
        self._state, _, done = self._env.step(command)
        return self._state_of(bool(done))

    def facts(self) -> list[Fact]:
        """TextWorld's true facts, in the form our engine reports them."""
        return [
            Fact(fact.name, tuple(name.strip() for name in fact.names))
            for fact in self._state["facts"]
        ]

    def close(self) -> None:
        """Let go of the game."""
        if self._env is not None:
            self._env.close()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except KeyError as error:  # A goal out of reach leaves it with facts about nothing.
            raise EnvironmentFault(f"{self._file}: TextWorld cannot play it ({error!r})") from error

    def _state_of(self, done: bool) -> EngineState:
        state = self._state
        commands = tuple(state["admissible_commands"])
        return EngineState(state["feedback"], commands, bool(state["won"]), done)


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
