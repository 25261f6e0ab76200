"""Play ALFWorld games on the real TextWorld engine, many times faster than its stock wrapper.

fast-downward's own library holds the state, says which operators apply, applies them and checks
the goal; TextWorld's parsers read the game's grammar. What changes is what is not done again:
parsing, translating, copying. Feedback, admissible commands and flags equal the stock engine's
word for word (a test replays games both ways).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.alfworld.facts import FactBase
from rpms.envs.alfworld.game import Game, Operator, prepare_game
from rpms.envs.alfworld.grammar import Context, Reference, Text, Writer
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.folders import cache_dir

NOTHING_HAPPENS = "Nothing happens."
_INTRO: Text = (Reference("intro"),)
_NOWHERE = Context({}, {})
# Unloading a C++ library does not give its memory back, so closed engines leave theirs here.
_spare_libraries: list[Any] = []


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
    """One live TextWorld game; ``load`` another game into the same object to keep memory flat.

    The library underneath is not thread-safe, so an engine belongs to the process and thread
    that first loaded a game into it, until ``close``.
    """

    def __init__(self, *, cache: Path | bool = True) -> None:
        """Prepare an engine.

        Args:
            cache: keep translated games on disk in the default folder (True), in this folder,
                or not at all (False).
        """
        self._cache = cache
        self._owner: tuple[int, int] | None = None
        self._library: Any = None
        self._return_library: weakref.finalize[..., GameEngine] | None = None
        self._game: Game | None = None
        self._facts: FactBase | None = None
        self._choices: dict[str, Operator] = {}
        self._state: EngineState | None = None
        self._fresh = False

    @property
    def walkthrough(self) -> list[str] | None:
        """The solution stored in the game file, if any; nothing is ever planned."""
        steps = self._loaded().walkthrough
        return None if steps is None else list(steps)

    def load(self, gamefile: str | Path) -> None:
        """Read a game file and make it the current game.

        Raises:
            RpmsError: the file is missing, damaged or no ALFWorld game.
        """
        self._check_owner()
        self._forget_game()
        cache = cache_dir() if self._cache is True else self._cache or None
        game = prepare_game(Path(gamefile), cache)
        if self._library is None:
            self._library = _borrow_library()
            self._return_library = weakref.finalize(self, _give_back, self._library)
            self._return_library.atexit = False
        self._owner = (os.getpid(), threading.get_ident())
        self._library.load_sas(game.sas)
        self._fresh = True
        try:
            game.enter(self._library)
        except (KeyError, ValueError, AssertionError) as error:
            raise RpmsError(
                f"{game.path}: unplayable game: it uses a name it never declares ({error})"
            ) from error
        self._game = game

    def reset(self) -> EngineState:
        """Start the loaded game from its beginning."""
        game = self._loaded()
        if not self._fresh:
            self._library.load_sas(game.sas)
        self._facts = FactBase(game.types, game.start)
        writer = Writer(game.grammar, self._facts, game.infos)
        with self._describing(game):
            return self._observe(game, writer, writer.write(_INTRO, _NOWHERE))

    def step(self, command: str) -> EngineState:
        """Play one command; one that is not admissible changes nothing and says so."""
        game = self._loaded()
        if self._facts is None or self._state is None:
            raise EnvironmentFault(f"{game.path}: reset() the game before the first step()")
        operator = self._choices.get(command.strip())
        if operator is None:
            return replace(self._state, feedback=NOTHING_HAPPENS)
        writer = Writer(game.grammar, self._facts, game.infos)
        with self._describing(game):
            self._fresh = False
            self._apply(game, operator, self._facts)
            feedback = writer.write(operator.feedback, operator.context)
            return self._observe(game, writer, feedback)

    def facts(self) -> list[Fact]:
        """Report everything true in the current state; for tests and metrics, never the agent."""
        game = self._loaded()
        if self._facts is None:
            raise EnvironmentFault(f"{game.path}: reset() the game before asking for facts()")
        names = {key: info.name.strip() for key, info in game.infos.items()}
        return [
            Fact(predicate, tuple(names.get(name, name) for name, _ in row))
            for predicate, row in self._facts
        ]

    def close(self) -> None:
        """Let go of the game; the engine may be loaded again, by any thread."""
        self._check_owner()
        self._forget_game()
        self._library = self._owner = None
        if self._return_library is not None:
            self._return_library()
            self._return_library = None

    def _forget_game(self) -> None:
        self._game = self._facts = self._state = None
        self._choices = {}

    def _check_owner(self) -> None:
        if self._owner not in (None, (os.getpid(), threading.get_ident())):
            raise EnvironmentFault(
                "a GameEngine was used outside the process or thread that loaded its game; "
                "give each worker its own engine"
            )

    def _loaded(self) -> Game:
        self._check_owner()
        if self._game is None:
            raise EnvironmentFault("no game is loaded; call load() first")
        return self._game

    @contextmanager
    def _describing(self, game: Game) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # The texts are data: what goes wrong in them is anyone's guess.
            self._facts = self._state = None
            raise EnvironmentFault(
                f"{game.path}: the grammar cannot describe this state ({error})"
            ) from error

    def _observe(self, game: Game, writer: Writer, feedback: str) -> EngineState:
        import fast_downward

        count = self._library.get_applicable_operators_count()
        found = (fast_downward.Operator * count)()
        self._library.get_applicable_operators(found)
        # The same words may fit several operators; as in TextWorld, the first one answers.
        choices: dict[str, Operator] = {}
        for entry in found:
            operator = game.operators.get(entry.id)
            if operator is None:
                operator = game.operators[entry.id] = game.describe(writer, entry)
            command = operator.command
            if command is None:
                command = writer.write(operator.template, operator.context)
            choices.setdefault(command, operator)
        self._choices = choices
        won = bool(self._library.check_goal())
        self._state = EngineState(feedback, tuple(sorted(choices)), won, won)
        return self._state

    def _apply(self, game: Game, operator: Operator, facts: FactBase) -> None:
        if operator.effects is not None:
            self._library.apply_operator(operator.id, None)
        else:
            import fast_downward

            atoms = (fast_downward.Atom * operator.effect_count)()
            self._library.apply_operator(operator.id, atoms)
            operator.effects = [game.effect(atom.name) for atom in atoms]
        for true, false, row in operator.effects:
            facts.remove(false, row)
            facts.add(true, row)


def _borrow_library() -> Any:
    import fast_downward

    return _spare_libraries.pop() if _spare_libraries else fast_downward.load_lib()


def _give_back(library: Any) -> None:
    library.cleanup()
    _spare_libraries.append(library)
