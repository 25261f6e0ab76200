"""Read a game file into everything about it that stays the same while it is played.

All the checks live here: a damaged or foreign file has to be refused before its contents reach
the C++ library, which answers bad input by ending the process.
"""

from __future__ import annotations

import json
from bisect import insort
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from rpms.envs.alfworld import memo
from rpms.envs.alfworld.facts import Arguments, Signature, TypeTable
from rpms.envs.alfworld.grammar import Context, Grammar, Text, Writer, consulted, parse_grammar
from rpms.vocabulary.errors import RpmsError

_ADVICE = "fetch or generate the game again"

Facts = dict[Signature, list[Arguments]]
Effect = tuple[Signature, Signature, Arguments]
"""The signature a fact is added under, the one it is removed from, and its arguments."""


@dataclass(slots=True)
class Operator:
    """What is known about one ground action; its effects once it has been applied."""

    id: int
    command: str | None  # None: the wording depends on the state
    template: Text
    feedback: Text
    context: Context
    effect_count: int
    effects: list[Effect] | None = None


@dataclass(slots=True)
class Game:
    """A game file, parsed and translated; ``operators`` fills up as they are met."""

    path: Path
    walkthrough: list[str] | None
    grammar: Grammar
    translation: memo.Translation
    sas: bytes
    types: TypeTable
    constant: dict[str, bool]
    infos: dict[str, Any] = field(default_factory=dict)
    start: Facts = field(default_factory=dict)
    operators: dict[int, Operator] = field(default_factory=dict)

    def enter(self, library: Any) -> None:
        """Learn the initial facts from the library, which has just loaded this game."""
        import fast_downward

        objects = self.translation.objects
        found: set[tuple[str, Arguments]] = {
            (name, tuple((arg, objects[arg]) for arg in args))
            for name, args in self.translation.facts
        }
        atoms = (fast_downward.Atom * library.get_state_size())()
        library.get_state(atoms)
        for atom in atoms:
            negated, name, row = self._parse_atom(atom.name)
            if not negated:
                found.add((name, row))
        self.start = {}
        for name, row in found:
            insort(self.start.setdefault((name, _kinds(row)), []), row)
        self.infos = _demangled({name for _, row in found for name, _ in row})

    def describe(self, writer: Writer, entry: Any) -> Operator:
        """Put an operator of the library into the game's words."""
        action, *args = entry.name.split()
        wording = self.grammar.actions[action]
        # Normalising may append inner variables to the parameters; the arguments have none.
        pairs = list(zip(self.translation.parameters[action], args, strict=False))
        context = Context(
            {hole[0]: self.infos[arg] for hole, arg in pairs},
            {hole: (arg, hole[1]) for hole, arg in pairs},
        )
        command = writer.write(wording.command, context) if self.constant[action] else None
        return Operator(
            entry.id, command, wording.command, wording.feedback, context, entry.nb_effect_atoms
        )

    def effect(self, text: str) -> Effect:
        """Read an effect as TextWorld does: a fact replaces its own negation."""
        negated, name, row = self._parse_atom(text)
        positive, negative = (name, _kinds(row)), (f"not_{name}", _kinds(row))
        return (negative, positive, row) if negated else (positive, negative, row)

    def _parse_atom(self, text: str) -> tuple[bool, str, Arguments]:
        sign, rest = text.split(" ", 1)
        name, args = rest.rstrip(")").split("(", 1)
        objects = self.translation.objects
        return (
            sign == "NegatedAtom",
            name,
            tuple((arg, objects[arg]) for arg in args.split(", ") if arg),
        )


def prepare_game(path: Path, cache: Path | None) -> Game:
    """Read, parse and translate a game file.

    Raises:
        RpmsError: the file is missing, damaged or no ALFWorld game.
    """
    data = _read_json(path)
    _require_engine()
    try:
        grammar = _parse_texts(data["grammar"])
        translation = memo.translate(data["pddl_domain"], data["pddl_problem"], cache)
        unspoken = sorted(set(translation.parameters) - set(grammar.actions))
        if unspoken:
            raise ValueError(f"the grammar has no words for the action {unspoken[0]}")
    except ValueError as error:
        raise RpmsError(f"{path}: unplayable game: {error}; skip it, or {_ADVICE}") from error
    fluents = translation.fluents()
    steps = data.get("walkthrough")
    return Game(
        path=path,
        walkthrough=[str(step) for step in steps] if isinstance(steps, list) else None,
        grammar=grammar,
        translation=translation,
        sas=translation.sas.encode(),
        types=TypeTable(translation.types),
        constant={
            name: fluents.isdisjoint(consulted(grammar, wording.command))
            for name, wording in grammar.actions.items()
        },
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RpmsError(f"{path}: cannot read the game ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise RpmsError(f"{path}: not an ALFWorld game: not JSON ({error}); {_ADVICE}") from error
    if not isinstance(data, dict):
        raise RpmsError(f"{path}: not an ALFWorld game: no JSON object; {_ADVICE}")
    for key in ("pddl_domain", "pddl_problem", "grammar"):
        if not isinstance(data.get(key), str):
            raise RpmsError(f"{path}: not an ALFWorld game: no text {key!r} in it; {_ADVICE}")
    return data


def _require_engine() -> None:
    try:
        for module in ("fast_downward", "textworld.envs.pddl.logic", "alfworld.agents.utils.misc"):
            import_module(module)
    except ImportError as error:
        raise RpmsError(
            f"the ALFWorld engine is not fully installed ({error}); install alfworld and textworld"
        ) from error


def _parse_texts(source: str) -> Grammar:
    try:
        grammar = parse_grammar(source)
    except Exception as error:  # Three parsers and JSON in a row, each with errors of its own.
        reason = " ".join(str(error).split())
        raise ValueError(f"the grammar does not parse ({reason[:160]})") from error
    if "intro" not in grammar.rules:
        raise ValueError("the grammar has no rule 'intro'")
    return grammar


def _kinds(row: Arguments) -> tuple[str, ...]:
    return tuple(kind for _, kind in row)


def _demangled(names: set[str]) -> dict[str, Any]:
    """Name the entities as ALFWorld does ("mug 1"), with its own numbering."""
    from alfworld.agents.utils.misc import Demangler
    from textworld.generator.game import EntityInfo

    infos = {name: EntityInfo(name, "") for name in names}
    demangler = Demangler(game_infos=infos)
    for name, info in infos.items():
        info.name = demangler.demangle_alfred_name(name)
        info.definite, info.indefinite = "the", "a"
    return infos
