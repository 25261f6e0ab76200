"""``rpms rules check``: mistakes in a manual that the schema alone cannot see."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rpms.rules.conditions import ABOUT_CONDITIONS, WORDS
from rpms.rules.leaving_out import ids_of
from rpms.rules.loader import line_of
from rpms.rules.manual import RULES_FOLDER, Manual, read_manual
from rpms.rules.overlay import overlay, rule_files
from rpms.rules.predicates import ARGUMENT, PREDICATES, SITUATIONAL, Predicate, parse_predicate
from rpms.rules.semantics import match_action
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_yaml

# Pairs that cannot both hold of the same arguments.
_OPPOSITES = {("open", "closed"), ("hand_empty", "holding")}
# Their second argument is a word of its own, as in kind(place, microwave).
_ABOUT_ONE = {"kind", "state"}


class Finding(NamedTuple):
    """One problem: where it stands and what it is."""

    file: Path
    line: int
    rule: str
    problem: str

    def __str__(self) -> str:
        """``file:line: rule: problem``, the form editors can jump to."""
        return f"{self.file}:{self.line}: {self.rule}: {self.problem}"


def audit(
    own: Path,
    goal_types: Collection[str] = (),
    actions: Collection[str] = (),
    shared: Path = RULES_FOLDER,
    over: Path | None = None,
) -> list[Finding]:
    """Everything wrong with a world's manual.

    Args:
        own: the folder with the world's Tiers 2 and 3.
        goal_types: the types the environment really has.
        actions: the first words of the commands the environment really has.
        shared: the folder with Tier 1.
        over: a folder of the user's own that is laid over them.
    """
    manual = read_manual(own, shared)
    if over:
        manual = overlay(manual, over)
    problems = [
        *_duplicates(manual),
        *_goal_types(manual, goal_types),
        *_predicates(manual),
        *_contradictions(manual),
        *_coverage(manual, actions),
        *_conditions(manual),
        *_guard(manual),
    ]
    return [
        Finding(*_where(tier, rule, own, shared, over), rule, text) for tier, rule, text in problems
    ]


def refuse_unreadable(manual: Manual, own: Path, over: Path) -> None:
    """A word that means nothing would end an episode, so a folder laid over a manual has none."""
    for tier, rule, text in chain(_predicates(manual), _conditions(manual)):
        raise RpmsError(str(Finding(*_where(tier, rule, own, RULES_FOLDER, over), rule, text)))


Problem = tuple[str, str, str]


def _ids(manual: Manual) -> Iterator[tuple[str, str]]:
    for tier, rules in ids_of(manual).items():
        yield from ((tier, rule) for rule in rules)


def _duplicates(manual: Manual) -> Iterator[Problem]:
    counts = Counter(rule for _, rule in _ids(manual))
    for tier, rule in dict.fromkeys(_ids(manual)):
        if counts[rule] > 1:
            yield tier, rule, f"the id is used {counts[rule]} times"
    known = set(counts)
    for pattern in manual.forbidden:
        if pattern.id not in known:
            yield "environment", pattern.id, "a forbidden pattern names a rule that does not exist"


def _goal_types(manual: Manual, real: Collection[str]) -> Iterator[Problem]:
    if not real:
        return
    for tier, rules in manual.tiers:
        for rule in rules:
            for name in rule.goal_types:
                if name != "all" and name not in real:
                    yield tier, rule.id, f"unknown goal type '{name}'"
    for pattern in manual.forbidden:
        for name in pattern.goal_types:
            if name not in real:
                yield "environment", pattern.id, f"unknown goal type '{name}'"
    for name in real:
        if name not in manual.domain.procedures:
            yield "domain", "procedures", f"goal type '{name}' has no procedure"
    for name in manual.domain.procedures:
        if name not in real:
            yield "domain", "procedures", f"unknown goal type '{name}'"


def _arities(manual: Manual) -> dict[str, int]:
    """Every predicate a manual can use, with how many arguments it takes."""
    known = {name: arity for name, (arity, _) in PREDICATES.items()}
    known |= dict.fromkeys(manual.environment.affordances, 1)
    for name, choices in manual.environment.predicates.items():
        known[name] = _takes_argument(choices)
    return known


def _takes_argument(choices: Collection[Collection[str]]) -> int:
    return int(any(ARGUMENT in parse_predicate(t).arguments for c in choices for t in c))


def _predicates(manual: Manual) -> Iterator[Problem]:
    known = _arities(manual)
    for name, choices in manual.environment.predicates.items():
        if name in PREDICATES or name in manual.environment.affordances:
            yield "environment", "predicates", f"'{name}' is a predicate already"
        for text in (text for choice in choices for text in choice):
            inner = parse_predicate(text)
            # One that is built on another of its kind could be built on itself.
            if inner.name not in known or inner.name in manual.environment.predicates:
                yield "environment", "predicates", f"'{name}' cannot be built on '{inner.name}'"
            elif len(inner.arguments) != known[inner.name]:
                yield (
                    "environment",
                    "predicates",
                    f"'{text}' of '{name}' should have {known[inner.name]} argument(s)",
                )
    for rule in manual.actions:
        for text in (*rule.preconditions, *rule.effects):
            predicate = parse_predicate(text)
            arity = known.get(predicate.name)
            if arity is None:
                yield "environment", rule.id, f"unknown predicate '{predicate.name}' in '{text}'"
                continue
            spoken_of = predicate.arguments[: 1 if predicate.name in _ABOUT_ONE else arity]
            if len(predicate.arguments) != arity:
                yield "environment", rule.id, f"'{text}' should have {arity} argument(s)"
            elif not set(spoken_of) <= set(rule.parameters):
                yield "environment", rule.id, f"'{text}' speaks of no parameter of '{rule.syntax}'"
    for situation in manual.environment.situations:
        for text in situation.when:
            name = parse_predicate(text).name
            if name not in known and name not in SITUATIONAL:
                yield "environment", situation.id, f"unknown predicate '{name}' in '{text}'"


def _contradictions(manual: Manual) -> Iterator[Problem]:
    """Rules that no situation can satisfy, or that forbid what a procedure demands."""
    for rule in manual.actions:
        for part, texts in (("preconditions", rule.preconditions), ("effects", rule.effects)):
            held = [parse_predicate(text) for text in texts]
            for one in held:
                for other in held:
                    same = one.arguments == other.arguments
                    denied = one.name == other.name and not other.positive and same
                    opposed = (one.name, other.name) in _OPPOSITES and other.positive
                    if one.positive and (denied or (opposed and (same or not one.arguments))):
                        yield (
                            "environment",
                            rule.id,
                            f"{part} contain '{text_of(one)}' and "
                            + (f"'{text_of(other)}', which exclude each other"),
                        )
    syntaxes = Counter(re.sub(r"\{\w+\}", "{}", rule.syntax) for rule in manual.actions)
    for rule in manual.actions:
        if syntaxes[re.sub(r"\{\w+\}", "{}", rule.syntax)] > 1:
            yield "environment", rule.id, f"another action has the same syntax '{rule.syntax}'"
    for pattern in manual.forbidden:
        if set(pattern.where.values()) == {"$object"} and pattern.action in ("take", "put"):
            yield "environment", pattern.id, f"forbids every '{pattern.action}' the goal demands"


def text_of(predicate: Predicate) -> str:
    """A predicate as it is written in the YAML."""
    arguments = f"({', '.join(predicate.arguments)})" if predicate.arguments else ""
    return f"{'' if predicate.positive else 'not '}{predicate.name}{arguments}"


def _coverage(manual: Manual, real: Collection[str]) -> Iterator[Problem]:
    """Every command of the engine has a rule or a stated reason for having none."""
    taught = {rule.syntax.split()[0] for rule in manual.actions}
    for name in real:
        if name not in taught and name not in manual.environment.not_taught:
            yield "environment", "actions", f"the environment's action '{name}' has no rule"
    names = {rule.name for rule in manual.actions}
    for step, action in manual.domain.advances.items():
        if action not in names:
            yield "domain", "advances", f"'{step}' is advanced by the unknown action '{action}'"
    for step, services in manual.domain.patterns.items():
        for service in services:
            if service.action not in names:
                yield "domain", "serves", f"'{step}' names the unknown action '{service.action}'"
    for pattern in manual.forbidden:
        if pattern.action not in names:
            yield "environment", pattern.id, f"forbids the unknown action '{pattern.action}'"


def _conditions(manual: Manual) -> Iterator[Problem]:
    """What `serves` and its terms say must mean something: a typo would never hold, or crash."""
    domain = manual.domain
    known = _arities(manual) | {name: arity for name, (arity, _) in WORDS.items()}
    for term, choices in domain.terms.items():
        if term in known:
            yield "domain", "terms", f"'{term}' is a condition already"
        known[term] = _takes_argument(choices)
    texts = [(term, t) for term, choices in domain.terms.items() for c in choices for t in c]
    for step, services in domain.patterns.items():
        texts += [(step, text) for service in services for text in service.when]
    for where, text in dict.fromkeys(texts):
        section = "terms" if where in domain.terms else "serves"
        try:
            predicate = parse_predicate(text)
        except ValueError as error:
            yield "domain", section, f"'{where}': {error}"
            continue
        last = predicate.arguments[-1:] if predicate.name in ABOUT_CONDITIONS else ()
        for name in (predicate.name, *last):
            if name not in known:
                yield (
                    "domain",
                    section,
                    f"'{where}' uses the unknown condition '{name}' in '{text}'",
                )
        if known.get(predicate.name, len(predicate.arguments)) != len(predicate.arguments):
            yield (
                "domain",
                section,
                f"'{text}' of '{where}' should have {known[predicate.name]} argument(s)",
            )


def _guard(manual: Manual) -> Iterator[Problem]:
    """What the guard plays by must be there: it would have nothing to offer or to fall back on."""
    domain = manual.domain
    if not domain.idle or match_action(manual, domain.idle) is None:
        what = f"'{domain.idle}' is no action of the manual" if domain.idle else "missing"
        yield "domain", "idle", f"{what}; name one that can always be done, such as 'idle: look'"
    steps = dict.fromkeys(step for steps in domain.procedures.values() for step in steps)
    if unserved := [step for step in steps if step not in domain.serves]:
        advice = "list under each what does, or the guard has nothing to offer"
        yield "domain", "serves", f"nothing serves {', '.join(unserved)}; {advice}"


def _where(tier: str, rule: str, own: Path, shared: Path, over: Path | None) -> tuple[Path, int]:
    """The file and line where an id stands, or a section begins: the user's own files first."""
    shipped = (shared if tier == "universal" else own) / f"{tier}.yaml"
    files = [*(rule_files(over) if over else []), *([shipped] if shipped.is_file() else [])]
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if re.match(rf"[\s{{-]*id:\s*{re.escape(rule)}\s*(,|#|$)", line):
                return file, number
    for file in files:
        node, data = read_yaml(file)
        if file.stem == tier and isinstance(data, dict) and rule in data:
            return file, line_of(node, [rule])
    return files[-1], 1
