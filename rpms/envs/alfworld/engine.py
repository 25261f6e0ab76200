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
_Key = tuple[int, Row]
"""An operator: the number of its plan, and its objects."""


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
        self._commands: dict[_Key, str | None] = {}
        self._spoken: dict[_Key, Spoken] = {}
        self._choices: dict[str, _Key] = {}
        self._touched: dict[str, int] = {}

    @property
    def walkthrough(self) -> list[str] | None:
        """The solution stored in the game file, if any; nothing is ever planned."""
        steps = self._loaded().walkthrough
        return None if steps is None else list(steps)

    @property
    def game(self) -> Game:
        """The loaded game's rules and words, which never change."""
        return self._loaded()

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
        key = self._choices.get(command.strip())
        if key is None:
            return replace(self._state, feedback=NOTHING_HAPPENS)
        with self._describing(game):
            assert self._world is not None
            spoken = self._operator(key)
            self._world.apply(spoken.operator)
            for true, false, row in spoken.effects:
                self._facts.remove(false, row)
                self._facts.add(true, row)
            for mark, (name, args), signature, row in spoken.touched:
                self._touched[mark] = (
                    _TRUE * (args in self._world.relations[name])
                    + _TOLD * self._facts.holds(signature, row)
                    + _DENIED * self._facts.holds(denial(signature), row)
                )
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
        return {"game": self._started().mark, "facts": dict(self._touched)}

    def restore(self, snapshot: Mapping[str, Any]) -> EngineState:
        """Take the loaded game to where a snapshot was taken; nothing is played again.

        Raises:
            EnvironmentFault: the snapshot was taken in another game.
        """
        game = self._begin()
        if snapshot["game"] != game.mark:
            raise EnvironmentFault(f"{game.path}: not the game that this episode was begun in")
        assert self._world is not None
        for key, flags in snapshot["facts"].items():
            name, args = atom = game.atom(key)
            self._touched[key] = flags
            self._world.relations[name].put(args, bool(flags & _TRUE))
            signature, row = game.typed(atom)
            self._facts.put(signature, row, bool(flags & _TOLD))
            self._facts.put(denial(signature), row, bool(flags & _DENIED))
        with self._describing(game):
            return self._observe("")

    def close(self) -> None:
        """Let go of the game."""
        self._game = self._world = None
        self._commands, self._spoken, self._choices = {}, {}, {}

    def _begin(self) -> Game:
        game = self._loaded()
        self._world = State(game.rules)
        self._facts = FactBase(game.types, game.start)
        self._touched = {}
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
        choices: dict[str, _Key] = {}
        for key in self._world.applicable():
            command = self._commands[key] if key in self._commands else self._command(key)
            if command is None:
                continue
            # The same words may fit several operators; as in TextWorld, the first one answers.
            if command in choices and self._before(choices[command], key):
                continue
            choices[command] = key
        self._choices = choices
        won = self._world.won()
        self._state = EngineState(feedback, tuple(sorted(choices)), won, won)
        return self._state

    def _command(self, key: _Key) -> str | None:
        """The words for an operator; None where there is no such operator."""
        game = self._loaded()
        action = game.rules.plans[key[0]][0].name
        if not game.rules.changes_something(*key):
            self._commands[key] = None
            return None
        text = game.grammar.actions[action].command
        command = self._writer.write(text, game.context(action, key[1]))
        if game.constant[action]:
            self._commands[key] = command
        return command

    def _before(self, one: _Key, other: _Key) -> bool:
        return self._operator(one).operator.order <= self._operator(other).operator.order

    def _operator(self, key: _Key) -> Spoken:
        if key not in self._spoken:
            game = self._loaded()
            operator = game.rules.operator(*key)
            assert operator is not None  # or it would have no words
            self._spoken[key] = game.describe(operator)
        return self._spoken[key]
