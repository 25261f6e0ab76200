"""Read a game file into everything about it that stays the same while it is played."""

from __future__ import annotations

import hashlib
import json
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rpms.envs.alfworld.conditions import Atom
from rpms.envs.alfworld.facts import Arguments, Signature, TypeTable
from rpms.envs.alfworld.forms import PddlError
from rpms.envs.alfworld.joins import Row
from rpms.envs.alfworld.rules import read_domain, read_problem
from rpms.envs.alfworld.texts import Grammar, Text, parse_grammar
from rpms.envs.alfworld.world import Ground, Operator
from rpms.envs.alfworld.writer import Context, Entity
from rpms.vocabulary.errors import RpmsError

_ADVICE = "fetch or generate the game again"
_SPELLED = (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))

Effect = tuple[Signature, Signature, Arguments]
"""The signature a fact is added under, the one it is removed from, and its arguments."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """An operator in the game's words."""

    operator: Operator
    feedback: Text
    context: Context
    effects: tuple[Effect, ...]
    touched: tuple[tuple[str, Atom, Signature, Arguments], ...]
    """What it may change, each with a short key for snapshots."""


class Game:
    """A game file, parsed; never changed after that, so any number of engines may share it."""

    def __init__(self, path: Path) -> None:
        """Read a game.

        Raises:
            RpmsError: the file is missing, damaged, no ALFWorld game, or uses something that
                this engine does not know.
        """
        data, self.mark = _read_json(path)
        self.path = path
        self.texts: str = data["grammar"]
        steps = data.get("walkthrough")
        self.walkthrough = [str(step) for step in steps] if isinstance(steps, list) else None
        try:
            self.grammar = _parse_texts(data["grammar"])
            self.rules = _read_rules(data["pddl_domain"], data["pddl_problem"])
            domain = self.rules.domain
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
        self.constant = {
            name: domain.fluents.isdisjoint(self.grammar.consulted(wording.command))
            for name, wording in self.grammar.actions.items()
        }
        self.start: dict[Signature, list[Arguments]] = {}
        for atom in self.rules.facts:
            signature, row = self.typed(atom)
            insort(self.start.setdefault(signature, []), row)
        self.entities = _entities(
            thing for rows in self.start.values() for row in rows for thing in row
        )

    def typed(self, atom: Atom) -> tuple[Signature, Arguments]:
        """A fact as TextWorld keeps it, with the declared type of each object."""
        objects = self.rules.problem.objects
        row = tuple((name, objects[name]) for name in atom[1])
        return (atom[0], tuple(kind for _, kind in row)), row

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

    def describe(self, operator: Operator) -> Spoken:
        """Put an operator into the game's words."""
        effects = [
            *(self._effect(atom, negated=False) for atom in operator.added),
            *(self._effect(atom, negated=True) for atom in operator.removed),
        ]
        atoms = dict.fromkeys(operator.added + operator.removed)
        return Spoken(
            operator=operator,
            feedback=self.grammar.actions[operator.action].feedback,
            context=self.context(operator.action, operator.args),
            effects=tuple(effects),
            touched=tuple((self.key(atom), atom, *self.typed(atom)) for atom in atoms),
        )

    def _effect(self, atom: Atom, *, negated: bool) -> Effect:
        """As TextWorld does it: a fact replaces its own negation, and is replaced by it."""
        positive, row = self.typed(atom)
        negative = denial(positive)
        return (negative, positive, row) if negated else (positive, negative, row)


def denial(signature: Signature) -> Signature:
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


def _parse_texts(source: str) -> Grammar:
    try:
        grammar = parse_grammar(source)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"the grammar does not parse ({reason[:160]})") from error
    if "intro" not in grammar.rules:
        raise ValueError("the grammar has no rule 'intro'")
    return grammar


def _read_rules(domain: str, problem: str) -> Ground:
    try:
        rules = read_domain(domain)
    except PddlError as error:
        raise ValueError(f"its PDDL domain: {error}") from error
    try:
        return Ground(rules, read_problem(problem, rules))
    except PddlError as error:
        raise ValueError(f"its PDDL problem: {error}") from error


def _entities(things: Iterable[tuple[str, str]]) -> dict[str, Entity]:
    """Name the things as ALFWorld does ("mug 1"): numbered from the last id to the first."""
    types = dict(things)
    kinds = {one: kind for one in sorted(types) if (kind := _numbered_kind(one)) is not None}
    left: dict[str, int] = {}
    for kind in kinds.values():
        left[kind] = left.get(kind, 0) + 1
    entities = {}
    for one in sorted(types):
        name = f"{_spelled(one)} "  # Where alfworld writes no number, it still writes the blank.
        if one in kinds:
            kind = kinds[one]
            name = f"{_spelled(kind)} {left[kind]}"
            left[kind] -= 1
        entities[one] = Entity(one, types[one], name)
    return entities


def _numbered_kind(one: str) -> str | None:
    kind, found, _ = one.partition("_bar_")
    if not found:
        return None
    return f"{kind}basin" if "basin" in one else kind


def _spelled(name: str) -> str:
    for word, sign in _SPELLED:
        name = name.replace(word, sign)
    return name
