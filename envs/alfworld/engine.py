"""Play ALFWorld games by their own rules and words, in plain Python.

A game file carries its rules (PDDL), its start and its texts. This engine holds the state, finds
what can be done, and answers word for word as stock TextWorld does with fast-downward underneath:
feedback, admissible commands, flags and facts (``python -m tools.compare_engines`` compares them
game by game). An engine is an object like any other: it shares nothing that changes, so any
number may be open, on any thread, and its state is plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.alfworld.conditions import Atom
from rpms.envs.alfworld.facts import FactBase
from rpms.envs.alfworld.game import Game, Spoken, denial
from rpms.envs.alfworld.joins import Row
from rpms.envs.alfworld.texts import Reference, Text
from rpms.envs.alfworld.world import State
from rpms.envs.alfworld.writer import Context, Writer
from rpms.vocabulary.errors import EnvironmentFault

NOTHING_HAPPENS = "Nothing happens."
_INTRO: Text = (Reference("intro"),)
_NOWHERE = Context({}, {})
# A fact of the rules, and what the texts know of it: the two part where a condition was not met.
_TRUE, _TOLD, _DENIED = 1, 2, 4

Snapshot = dict[str, Any]


class Fact(NamedTuple):
    """One true statement about the game, in the names a player sees."""

    predicate: str
    args: tuple[str, ...]


@dataclass(frozen=True)
class EngineState:
    """What the game says after a reset or a step."""

    feedback: str
    admissible_commands: tuple[str, ...]
    won: bool
    done: bool


class GameEngine:
    """One running game; ``load`` another to play that instead."""

    def __init__(self) -> None:
        """An engine without a game."""
        self._game: Game | None = None
        self._world: State | None = None
        self._spoken: dict[tuple[int, Row], tuple[Spoken, str | None] | None] = {}
        self._choices: dict[str, Spoken] = {}
        self._touched: set[Atom] = set()

    @property
    def walkthrough(self) -> list[str] | None:
        """The solution stored in the game file, if any; nothing is ever planned."""
        steps = self._loaded().walkthrough
        return None if steps is None else list(steps)

    @property
    def grammar(self) -> str:
        """The source of the game's texts."""
        return self._loaded().texts

    def load(self, gamefile: str | Path) -> None:
        """Read a game file and make it the current game.

        Raises:
            RpmsError: the file is missing, damaged or no ALFWorld game.
        """
        self.close()
        self._game = Game(Path(gamefile))

    def reset(self) -> EngineState:
        """Start the loaded game from its beginning."""
        game = self._begin()
        with self._describing(game):
            return self._observe(self._writer.write(_INTRO, _NOWHERE))

    def step(self, command: str) -> EngineState:
        """Play one command; one that is not admissible changes nothing and says so."""
        game = self._started()
        spoken = self._choices.get(command.strip())
        if spoken is None:
            return replace(self._state, feedback=NOTHING_HAPPENS)
        with self._describing(game):
            assert self._world is not None
            self._world.apply(spoken.operator)
            self._touched.update(spoken.operator.added, spoken.operator.removed)
            for true, false, row in spoken.effects:
                self._facts.remove(false, row)
                self._facts.add(true, row)
            return self._observe(self._writer.write(spoken.feedback, spoken.context))

    def facts(self) -> list[Fact]:
        """Report everything true in the current state; for tests and metrics, never the agent."""
        names = {key: one.name.strip() for key, one in self._started().entities.items()}
        return [
            Fact(predicate, tuple(names.get(name, name) for name, _ in row))
            for predicate, row in self._facts
        ]

    def snapshot(self) -> Snapshot:
        """The state as plain data: which game, and every fact that was touched since its start."""
        game = self._started()
        assert self._world is not None
        facts = {}
        for name, args in sorted(self._touched):
            signature, row = game.typed((name, args))
            facts[" ".join([name, *(str(game.numbers[arg]) for arg in args)])] = (
                _TRUE * (args in self._world.relations[name])
                + _TOLD * self._facts.holds(signature, row)
                + _DENIED * self._facts.holds(denial(signature), row)
            )
        return {"game": game.mark, "facts": facts}

    def restore(self, snapshot: Mapping[str, Any]) -> EngineState:
        """Take the loaded game to where a snapshot was taken; nothing is played again.

        Raises:
            EnvironmentFault: the snapshot was taken in another game.
        """
        game = self._begin()
        if snapshot["game"] != game.mark:
            raise EnvironmentFault(f"{game.path}: not the game that this episode was begun in")
        assert self._world is not None
        names = list(game.numbers)
        for text, flags in snapshot["facts"].items():
            name, *numbers = text.split()
            atom = (name, tuple(names[int(number)] for number in numbers))
            self._touched.add(atom)
            self._world.relations[name].set(atom[1], bool(flags & _TRUE))
            signature, row = game.typed(atom)
            self._facts.set(signature, row, bool(flags & _TOLD))
            self._facts.set(denial(signature), row, bool(flags & _DENIED))
        with self._describing(game):
            return self._observe("")

    def close(self) -> None:
        """Let go of the game."""
        self._game = self._world = None
        self._spoken, self._choices = {}, {}

    def _begin(self) -> Game:
        game = self._loaded()
        self._world = State(game.rules)
        self._facts = FactBase(game.types, game.start)
        self._touched = set()
        self._writer = Writer(game.grammar, self._facts, game.entities)
        return game

    def _loaded(self) -> Game:
        if self._game is None:
            raise EnvironmentFault("no game is loaded; call load() first")
        return self._game

    def _started(self) -> Game:
        game = self._loaded()
        if self._world is None:
            raise EnvironmentFault(f"{game.path}: reset() the game before playing in it")
        return game

    @contextmanager
    def _describing(self, game: Game) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # The texts are data: what goes wrong in them is anyone's guess.
            self._world = None
            raise EnvironmentFault(
                f"{game.path}: the grammar cannot describe this state ({error})"
            ) from error

    def _observe(self, feedback: str) -> EngineState:
        assert self._game is not None and self._world is not None
        choices: dict[str, Spoken] = {}
        write = self._writer.write
        for key in self._world.applicable():
            if key in self._spoken:
                known = self._spoken[key]
            else:
                known = self._spoken[key] = self._describe(key)
            if known is None:
                continue
            spoken, command = known
            if command is None:
                command = write(spoken.command, spoken.context)
            # The same words may fit several operators; as in TextWorld, the first one answers.
            other = choices.get(command)
            if other is None or spoken.operator.order < other.operator.order:
                choices[command] = spoken
        self._choices = choices
        won = self._world.won()
        self._state = EngineState(feedback, tuple(sorted(choices)), won, won)
        return self._state

    def _describe(self, key: tuple[int, Row]) -> tuple[Spoken, str | None] | None:
        game = self._loaded()
        operator = game.rules.operator(*key)
        if operator is None:
            return None
        spoken = game.describe(operator)
        constant = game.constant[operator.action]
        return spoken, self._writer.write(spoken.command, spoken.context) if constant else None
