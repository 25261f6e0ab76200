"""Play ALFWorld games by their own rules and words, in plain Python.

A game file carries its rules (PDDL), its start and its texts. This engine holds the state, finds
what can be done, and answers word for word as stock TextWorld does with fast-downward underneath:
feedback, admissible commands, flags and facts (``python -m tools.compare_engines`` compares them
game by game). An engine is an object like any other: it shares nothing that changes, so any
number may be open, on any thread, and its state is plain data.
"""

from __future__ import annotations

import hashlib
import json
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.alfworld.pddl import Atom, PddlError, read_domain, read_problem
from rpms.envs.alfworld.texts import (
    Arguments,
    Context,
    Entity,
    FactBase,
    Reference,
    Signature,
    Text,
    TypeTable,
    Writer,
    parse_grammar,
)  # fmt: skip
from rpms.envs.alfworld.world import Ground, Operator, Row, State
from rpms.envs.base import NOTHING_HAPPENS
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

_ADVICE = "fetch or generate the game again"
_SPELLED = (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))
_INTRO: Text = (Reference("intro"),)
_NOWHERE = Context({}, {})
# A fact of the rules, and what the texts know of it: the two part where a condition was not met.
_TRUE, _TOLD, _DENIED = 1, 2, 4

Snapshot = dict[str, Any]
_Key = tuple[int, Row]
"""An operator: the number of its plan, and its objects."""


class _Choice(NamedTuple):
    """An operator, and the game's words for asking for it."""

    operator: Operator
    command: str


class Game:
    """A game file, parsed; never changed after that, so any number of engines may share it.

    Raises:
        RpmsError: the file is missing, damaged, no ALFWorld game, or uses something that this
            engine does not know.
    """

    def __init__(self, path: Path) -> None:
        data, self.mark = _read_json(path)
        self.path = path
        self.texts: str = data["grammar"]
        steps = data.get("walkthrough")
        self.walkthrough = [str(step) for step in steps] if isinstance(steps, list) else None
        try:
            try:
                self.grammar = parse_grammar(self.texts)
            except ValueError as error:
                reason = " ".join(str(error).split())
                raise ValueError(f"the grammar does not parse ({reason[:160]})") from error
            self.rules = _read_rules(data["pddl_domain"], data["pddl_problem"])
            domain = self.rules.domain
            if "intro" not in self.grammar.rules:
                raise ValueError("the grammar has no rule 'intro'")
            for action in domain.actions:
                if action.name not in self.grammar.actions:
                    raise ValueError(f"the grammar has no words for the action {action.name}")
        except ValueError as error:
            raise RpmsError(f"{path}: unplayable game: {error}; skip it, or {_ADVICE}") from error
        self._names = list(self.rules.problem.objects)
        self._numbers = {name: at for at, name in enumerate(self._names)}
        self.types = TypeTable(domain.types)
        self._parameters = {
            action.name: [(name.strip("?"), kind) for name, kind in action.parameters]
            for action in domain.actions
        }
        self.start: dict[Signature, list[Arguments]] = {}
        for atom in self.rules.problem.init:
            signature, row = self.typed(atom)
            insort(self.start.setdefault(signature, []), row)
        things = dict(thing for rows in self.start.values() for row in rows for thing in row)
        names = display_names(things)
        self.entities = {name: Entity(name, kind, names[name]) for name, kind in things.items()}
        self.names = {name: printed.strip() for name, printed in names.items()}
        self.fact = lru_cache(maxsize=None)(self._fact)  # most facts stay true at every step

    def typed(self, atom: Atom) -> tuple[Signature, Arguments]:
        """A fact as TextWorld keeps it, with the declared type of each object."""
        objects = self.rules.problem.objects
        row = tuple((name, objects[name]) for name in atom[1])
        return (atom[0], tuple(kind for _, kind in row)), row

    def _fact(self, predicate: str, row: Arguments) -> Fact:
        return Fact(predicate, tuple(self.names.get(name, name) for name, _ in row))

    def key(self, atom: Atom) -> str:
        """A fact in few letters: objects by their place in the problem."""
        return " ".join([atom[0], *(str(self._numbers[name]) for name in atom[1])])

    def atom(self, key: str) -> Atom:
        """The fact of a key."""
        name, *numbers = key.split()
        return name, tuple(self._names[int(number)] for number in numbers)

    def context(self, action: str, row: Row) -> Context:
        """The things an operator is about, under the names its texts have for them."""
        pairs = list(zip(self._parameters[action], row, strict=False))
        return Context(
            {hole[0]: self.entities[arg] for hole, arg in pairs},
            {hole: (arg, hole[1]) for hole, arg in pairs},
        )


def _denial(signature: Signature) -> Signature:
    """The signature TextWorld keeps a fact under once it has been made false."""
    return f"not_{signature[0]}", signature[1]


def _read_json(path: Path) -> tuple[dict[str, Any], str]:
    """The file's contents, and a mark by which the same contents can be told again."""
    try:
        content = path.read_bytes()
        data = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise RpmsError(f"{path}: cannot read the game ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise RpmsError(f"{path}: not an ALFWorld game: not JSON ({error}); {_ADVICE}") from error
    if not isinstance(data, dict):
        raise RpmsError(f"{path}: not an ALFWorld game: no JSON object; {_ADVICE}")
    for key in ("pddl_domain", "pddl_problem", "grammar"):
        if not isinstance(data.get(key), str):
            raise RpmsError(f"{path}: not an ALFWorld game: no text {key!r} in it; {_ADVICE}")
    return data, hashlib.sha256(content).hexdigest()[:16]


def _read_rules(domain: str, problem: str) -> Ground:
    part = "domain"
    try:
        rules = read_domain(domain)
        part = "problem"
        return Ground(rules, read_problem(problem, rules))
    except PddlError as error:
        raise ValueError(f"its PDDL {part}: {error}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"its PDDL {part} does not parse ({error!r:.160})") from error


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """The names a game prints, such as ``mug 2``, for the ids of one problem.

    Instances are numbered from the last id in alphabetical order to the first, as alfworld does;
    where it writes no number, it still writes the blank.
    """
    kinds = {}
    for thing in sorted(thing_id.lower() for thing_id in ids):
        kind, bar, _ = thing.partition("_bar_")
        kinds[thing] = f"{kind}basin" if bar and "basin" in thing else kind, bool(bar)
    unnumbered = Counter(kinds.values())
    names = {}
    for thing, (kind, numbered) in kinds.items():
        names[thing] = f"{kind} {unnumbered[kind, True] if numbered else ''}"
        unnumbered[kind, True] -= numbered
        for word, sign in _SPELLED:
            names[thing] = names[thing].replace(word, sign)
    return names


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
        self._game: Game | None = None
        self._world: State | None = None
        self._known: dict[_Key, _Choice | None] = {}
        self._choices: dict[str, _Choice] = {}
        self._touched: dict[str, int] = {}

    @property
    def game(self) -> Game:
        """The loaded game's rules and words, which never change."""
        if self._game is None:
            raise EnvironmentFault("no game is loaded; call load() first")
        return self._game

    @property
    def walkthrough(self) -> list[str] | None:
        """The solution stored in the game file, if any; nothing is ever planned."""
        return self.game.walkthrough

    @property
    def texts(self) -> str:
        """The source of the game's texts."""
        return self.game.texts

    def load(self, gamefile: str | Path) -> None:
        """Read a game file and make it the current game."""
        self.close()
        self._game = Game(Path(gamefile))

    def reset(self) -> EngineState:
        """Start the loaded game from its beginning."""
        self._begin()
        with self._describing():
            return self._observe(self._writer.write(_INTRO, _NOWHERE))

    def step(self, command: str) -> EngineState:
        """Play one command; one that is not admissible changes nothing and says so."""
        world = self._running()
        choice = self._choices.get(command.strip())
        if choice is None:
            return replace(self._state, feedback=NOTHING_HAPPENS)
        operator, game = choice.operator, self.game
        with self._describing():
            world.apply(operator)
            # As TextWorld does it, a fact replaces its own negation, and is replaced by it.
            for true, atoms in ((True, operator.added), (False, operator.removed)):
                for signature, row in map(game.typed, atoms):
                    self._facts.put(_denial(signature) if true else signature, row, False)
                    self._facts.put(signature if true else _denial(signature), row, True)
            for atom in (*operator.added, *operator.removed):
                signature, row = game.typed(atom)
                self._touched[game.key(atom)] = (
                    _TRUE * (atom[1] in world.relations[atom[0]].rows)
                    + _TOLD * self._facts.holds(signature, row)
                    + _DENIED * self._facts.holds(_denial(signature), row)
                )
            feedback = game.grammar.actions[operator.action].feedback
            context = game.context(operator.action, operator.args)
            return self._observe(self._writer.write(feedback, context))

    def facts(self) -> list[Fact]:
        """Report everything true in the current state; for tests and metrics, never the agent."""
        self._running()
        return [self.game.fact(predicate, row) for predicate, row in self._facts]

    def snapshot(self) -> Snapshot:
        """The state as plain data: which game, and every fact that was touched since its start."""
        self._running()
        return {"game": self.game.mark, "facts": dict(self._touched)}

    def restore(self, snapshot: Mapping[str, Any]) -> EngineState:
        """Take the loaded game to where a snapshot of it was taken; nothing is played again."""
        game, world = self.game, self._begin()
        if snapshot["game"] != game.mark:
            raise EnvironmentFault(f"{game.path}: not the game that this episode was begun in")
        for key, flags in snapshot["facts"].items():
            name, args = atom = game.atom(key)
            self._touched[key] = flags
            world.relations[name].put(args, bool(flags & _TRUE))
            signature, row = game.typed(atom)
            self._facts.put(signature, row, bool(flags & _TOLD))
            self._facts.put(_denial(signature), row, bool(flags & _DENIED))
        with self._describing():
            return self._observe("")

    def close(self) -> None:
        """Let go of the game."""
        self._game = self._world = None
        self._known, self._choices = {}, {}

    def _begin(self) -> State:
        game = self.game
        self._world = State(game.rules)
        self._facts = FactBase(game.types, game.start)
        self._touched = {}
        self._writer = Writer(game.grammar, self._facts, game.entities)
        return self._world

    def _running(self) -> State:
        if self._world is None:
            raise EnvironmentFault(f"{self.game.path}: reset() the game before playing in it")
        return self._world

    @contextmanager
    def _describing(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # The texts are data: what goes wrong in them is anyone's guess.
            self._world = None
            raise EnvironmentFault(
                f"{self.game.path}: the grammar cannot describe this state ({error})"
            ) from error

    def _observe(self, feedback: str) -> EngineState:
        world = self._running()
        choices: dict[str, _Choice] = {}
        for key in world.applicable():
            if key not in self._known:
                self._known[key] = self._choice(key)
            choice = self._known[key]
            # The same words may fit several operators; as in TextWorld, the first one answers.
            if choice is not None:
                rival = choices.setdefault(choice.command, choice)
                if choice.operator.order < rival.operator.order:
                    choices[choice.command] = choice
        self._choices = choices
        won = world.won()
        self._state = EngineState(feedback, tuple(sorted(choices)), won, won)
        return self._state

    def _choice(self, key: _Key) -> _Choice | None:
        """What can be done to certain objects, in words that never change."""
        operator = self.game.rules.operator(*key)
        if operator is None:
            return None
        template = self.game.grammar.actions[operator.action].command
        context = self.game.context(operator.action, operator.args)
        return _Choice(operator, self._writer.write(template, context))
