"""Checks of a manual that its schema cannot make.

``rpms rules check`` lists all problems. A manual with unknown words is not loaded: a rule that
silently never applies would be worse than none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

from rpms.rules import Manual, match_action, read_manual
from rpms.rules.ablate import ids_of
from rpms.rules.loader import overlay, rule_files
from rpms.rules.manual import RULES_FOLDER
from rpms.rules.predicates import (
    ARGUMENT,
    CONDITIONS,
    SITUATIONAL,
    Condition,
    Predicate,
    parse_predicate,
    reading,
)
from rpms.rules.scalars import FORMS, INVALID, as_number, typed
from rpms.rules.schema import ActionRule
from rpms.rules.terms import ANSWER, CONTEXT, ITEM, NOW, Term, all_terms, parse_term
from rpms.rules.values import FUNCTIONS, is_function
from rpms.rules.wording import of_items
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import ALIKE, nearest, offer

# Their second argument is a plain word, as in kind(place, microwave).
_ONE_THING = {"kind", "state", "seen"}

Problem = tuple[str, str, str]
"""The tier, the rule id or section, and what is wrong."""


@lru_cache(maxsize=64)
def sound_manual(manual: Manual, folder: Path, over: Path | None = None) -> Manual:
    """Return the manual if every word in it is known; else raise its first problem."""
    for problem in find_places(_unknown_words(manual), folder, over=over):
        raise RpmsError(str(problem))
    return manual


class Finding(NamedTuple):
    """One problem and its place."""

    file: Path
    line: int
    rule: str
    problem: str

    def __str__(self) -> str:
        """``file:line: rule: problem``, the form editors can jump to."""
        return f"{self.file}:{self.line}: {self.rule}: {self.problem}"


def check_manual(
    folder: Path,
    goal_types: Collection[str] = (),
    actions: Collection[str] = (),
    shared: Path = RULES_FOLDER,
    over: Path | None = None,
    played: bool = True,
) -> list[Finding]:
    """All problems of a world's manual.

    Args:
        folder: the folder with the world's Tiers 2 and 3.
        goal_types: the goal types of the environment.
        actions: the first words of the environment's commands.
        shared: the folder with Tier 1.
        over: a custom folder that overlays them.
        played: the guard may have to choose an action by the manual.
    """
    manual = read_manual(folder, shared)
    if over:
        manual = overlay(manual, over)
    problems = chain(
        _duplicates(manual),
        _goal_types(manual, goal_types) if goal_types else (),
        _unknown_words(manual),
        _coverage(manual, actions),
        _missing_fallbacks(manual) if played else (),
    )
    return find_places(problems, folder, shared, over)


def find_places(
    problems: Iterable[Problem], folder: Path, shared: Path = RULES_FOLDER, over: Path | None = None
) -> list[Finding]:
    """Add the file and the line to each problem."""
    return [
        Finding(*locate(tier, rule, folder, shared, over), rule, text)
        for tier, rule, text in problems
    ]


def _duplicates(manual: Manual) -> Iterator[Problem]:
    ids = [(tier, rule) for tier, rules in ids_of(manual).items() for rule in rules]
    counts = Counter(rule for _, rule in ids)
    for tier, rule in dict.fromkeys(ids):
        if counts[rule] > 1:
            yield tier, rule, f"the id is used {counts[rule]} times"
    for pattern in manual.forbidden:
        if pattern.id not in counts:
            yield "environment", pattern.id, "a forbidden pattern names a rule that does not exist"


def _goal_types(manual: Manual, environment_types: Collection[str]) -> Iterator[Problem]:
    mentions = [(tier, rule.id, rule.goal_types) for tier, rules in manual.tiers for rule in rules]
    mentions += [("environment", pattern.id, pattern.goal_types) for pattern in manual.forbidden]
    mentions += [("domain", "procedures", list(manual.domain.procedures))]
    for tier, rule, goal_types in mentions:
        for name in goal_types:
            if name not in (*environment_types, "all"):
                yield tier, rule, f"unknown goal type '{name}'"
    for name in environment_types:
        if name not in manual.domain.procedures:
            yield "domain", "procedures", f"goal type '{name}' has no procedure"


class Place(NamedTuple):
    """A condition of a manual, where it stands, and what it may name there.

    ``entry`` is the entry of a section that it belongs to. ``action`` is the rule whose parameters
    it may name; a situation and the procedure have none. ``vocabulary`` has the conditions that it
    may use, with the number of their arguments, and ``names`` what it may name besides: the thing
    of a composed predicate, the item of a list.
    """

    tier: str
    id: str
    condition: Predicate
    vocabulary: Mapping[str, int | None]
    action: ActionRule | None = None
    names: frozenset[str] = frozenset()
    entry: str = ""


def places(manual: Manual) -> Iterator[Place]:
    """Every condition of a manual. A composed predicate may use those that come before it."""
    env, domain = manual.environment, manual.domain
    words = {each.name: each.arity for each in reading("things", "values")}
    words |= dict.fromkeys(env.affordances, 1)
    for name, choices in env.predicates.items():
        for text in chain(*choices):
            yield Place("environment", "predicates", parse_predicate(text), words, entry=name)
        words = {**words, name: _takes_argument(choices)}
    for rule in manual.actions:
        for condition in (*rule.needs, *rule.outcomes, *map(parse_predicate, rule.verified_when)):
            yield Place("environment", rule.id, condition, words, rule)
    limits = [(p.id, [p.action], [*map(parse_predicate, p.when)]) for p in env.forbidden]
    limits += [(each.id, each.action, [*each.conditions, *each.demands]) for each in env.policy]
    for rule_id, actions, conditions in limits:
        for name, condition in product(actions, conditions):
            if action := manual.by_name.get(name):
                yield Place("environment", rule_id, condition, words, action)
    for situation in env.situations:
        for text in situation.when:
            yield Place(
                "environment", situation.id, parse_predicate(text), {**words, **SITUATIONAL}
            )
    words = {**words, **{each.name: each.arity for each in reading("decision")}}
    words |= {term: _takes_argument(choices) for term, choices in domain.terms.items()}
    for term, choices in domain.terms.items():
        for text in dict.fromkeys(chain(*choices)):
            yield Place("domain", "terms", parse_predicate(text), words, entry=term)
    for step, patterns in domain.patterns.items():
        for text in dict.fromkeys(text for pattern in patterns for text in pattern.when):
            yield Place("domain", "applicable", parse_predicate(text), words, entry=step)


def _takes_argument(choices: Collection[Collection[str]]) -> int:
    terms = (
        parse_term(term) for text in chain(*choices) for term in parse_predicate(text).arguments
    )
    return int(any(inner.head == ARGUMENT for term in terms for inner in all_terms(term)))


def _unknown_words(manual: Manual) -> Iterator[Problem]:
    """Unknown words: an episode would fail at one, or a rule would never apply."""
    if circular := [*_late_definitions(manual.environment.definitions)]:
        yield from circular
        return
    yield from _names_taken(manual)
    yield from _unknown_actions(manual)
    for place in places(manual):
        where = f"'{place.entry}': " if place.entry else ""
        for fault in faults(manual, place):
            yield place.tier, place.id, f"{where}{fault}"
    yield from _wording(manual)


def _names_taken(manual: Manual) -> Iterator[Problem]:
    """The world's own predicates and terms cannot have the names of other conditions."""
    env, domain = manual.environment, manual.domain
    taken = {*env.affordances, *(each.name for each in reading("things", "values"))}
    for name in env.predicates:
        if name in taken:
            yield "environment", "predicates", f"'{name}' is a predicate already"
    taken |= {*env.predicates, *(each.name for each in reading("decision"))}
    for term in domain.terms:
        if term in taken:
            yield "domain", "terms", f"'{term}' is a predicate already"


def _unknown_actions(manual: Manual) -> Iterator[Problem]:
    for pattern in manual.environment.forbidden:
        forbidden = manual.by_name.get(pattern.action)
        if forbidden is None:
            near = offer(pattern.action, [*manual.by_name])
            problem = f"forbids the unknown action '{pattern.action}'; {near}"
            yield "environment", pattern.id, problem
            continue
        for parameter in pattern.where:
            if parameter not in forbidden.parameters:
                advice = offer(parameter, forbidden.parameters)
                problem = f"'{pattern.action}' has no parameter '{parameter}'; {advice}"
                yield "environment", pattern.id, problem
    for demand in manual.environment.policy:
        for name in demand.action:
            if name not in manual.by_name:
                near = _near(name, manual.by_name)
                yield "environment", demand.id, f"speaks of the unknown action '{name}'{near}"


def faults(manual: Manual, place: Place) -> Iterator[str]:
    """Everything that is wrong with a condition."""
    condition, vocabulary, env = place.condition, place.vocabulary, manual.environment
    name, arguments = condition.name, condition.arguments
    declared = CONDITIONS.get(name)
    inner = arguments[-1:] if declared and declared.about_condition else ()
    if unknown := [word for word in (name, *inner) if word not in vocabulary]:
        near = _near(unknown[0], vocabulary)
        yield f"unknown predicate '{unknown[0]}' in '{condition}'{near}"
        return
    arity = vocabulary[name]
    if (len(arguments) < 2) if arity is None else len(arguments) != arity:
        yield f"'{condition}' should have {'two or more' if arity is None else arity} argument(s)"
        return
    if (rule := place.action) is None:
        return
    if name in env.predicates:
        for text in chain(*env.predicates[name]):
            part = parse_predicate(text)
            yield from faults(
                manual, place._replace(condition=part, names=place.names | {ARGUMENT})
            )
        terms = (a for a in arguments if _is_term(a) or a in env.definitions)
        arguments = () if any(terms) else arguments
    yield from _listed(manual, condition, rule)
    if declared and (
        declared.reads == "values"
        or declared.effect == "field"
        or (declared.effect == "thing" and _is_term(arguments[0]))
    ):
        yield from _term_faults(manual, place, rule, declared)
    # The parts of a composed predicate may speak of things that no call names.
    elif ARGUMENT not in place.names and not all(
        argument in {*env.things, *place.names} or rule.speaks_of(argument)
        for argument in arguments[: 1 if name in _ONE_THING else arity]
    ):
        problem = f"'{condition}' speaks of no parameter of '{rule.syntax}'"
        yield f"{problem}; a thing is named as there, or with a number (box 1)"


def _term_faults(
    manual: Manual, place: Place, rule: ActionRule, declared: Condition
) -> Iterator[str]:
    """What is wrong with the terms of a condition over values, or of an effect."""
    env, condition = manual.environment, place.condition
    heads = {*rule.parameters, *manual.by_name, *env.things, *env.tables, NOW, CONTEXT}
    heads |= place.names | ({ANSWER} if declared.effect == "field" else set())
    for number, text in enumerate(condition.arguments):
        if declared.quantifies and number:
            part = parse_predicate(text)
            yield from faults(manual, place._replace(condition=part, names=place.names | {ITEM}))
            continue
        term, kind = parse_term(text), declared.takes[min(number, len(declared.takes) - 1)]
        if not declared.quantifies:
            yield from _constants(manual, term, kind, heads, str(condition))
        if kind != "pattern":
            yield from _unknown_terms(manual, term, place, rule, heads, number == 0)
    if declared.effect == "field" and not parse_term(condition.arguments[0]).path:
        advice = f"{declared.name}(order.status, cancelled)"
        yield f"'{condition}' should name a field, such as '{advice}'"


def _wording(manual: Manual) -> Iterator[Problem]:
    """Statements from which no need can be made."""
    env = manual.environment
    used = {predicate.name for rule in manual.actions for predicate in rule.needs}
    needed = {n: w for n, w in env.wording.phrases.items() if n.removeprefix("not ") in used}
    for name, words in {**needed, **env.wording.facts}.items():
        if not re.search(r"\b(?:is|are)\b", words):
            advice = "write a statement with 'is' or 'are': what an action needs is made from it"
            yield "environment", "wording", f"'{name}' reads '{words}'; {advice}"


def _late_definitions(definitions: Mapping[str, str]) -> Iterator[Problem]:
    """Definitions that use one that does not come before them: it could be circular."""
    earlier = set[str]()
    for name, text in definitions.items():
        used = {inner.head for inner in all_terms(parse_term(text))}
        for other in used & (definitions.keys() - earlier):
            yield "environment", "definitions", f"'{name}' uses '{other}', so define that first"
        earlier.add(name)


def _constants(
    manual: Manual, term: Term, kind: str, heads: Collection[str], where: str
) -> Iterator[str]:
    """Constants that can never be what a condition compares."""
    if is_function(term):
        for inner in term.inner:
            function = FUNCTIONS[term.head]
            if not function.per_item:
                yield from _constants(manual, inner, function.takes, heads, where)
        return
    resolved = (
        kind != "pattern" and term.head in heads
    ) or term.head in manual.environment.definitions
    if not resolved and not term.path and not term.inner and (advice := misfit(term.text, kind)):
        yield f"'{term.text}' in '{where}' {advice}"


_UNITS = {"w": 168, "d": 24, "h": 1}


def misfit(text: str, kind: str) -> str:
    """Why a constant is not of a kind, and the nearest right form; empty if it is."""
    bare = text.strip("'\"")
    if kind == "pattern":
        if bare in FORMS or "*" in bare or "?" in bare:
            return ""
        return f"is no pattern with * or ?, and no form; {offer(bare, [*FORMS])}"
    if kind == "value":
        return f"would have to be written so in an answer; write {bare}" if bare != text else ""
    if typed(text, kind) is not INVALID:
        return ""
    if kind == "number":
        unit = re.fullmatch(r"(\d+)\s*([wdh])\w*", bare)
        digits = re.search(r"-?\d[\d,]*(\.\d+)?", bare)
        plain_number = digits[0].replace(",", "") if digits else ""
        if unit:
            return f"is no number; write {int(unit[1]) * _UNITS[unit[2]]}, in hours"
        return f"is no number; write {plain_number or 'one, such as 100'}"
    if time := re.fullmatch(r"(\d\d?):\d\d", bare):
        return f"is no date; compare the hour of the day: at_least(hour(now), {int(time[1])})"
    if day := re.fullmatch(r"(\d{4})-(\d\d?)-(\d\d?)", bare):
        return f"is no date; write {day[1]}-{int(day[2]):02}-{int(day[3]):02}"
    return "is no date; write one such as 2026-01-10, or now"


def _listed(manual: Manual, predicate: Predicate, rule: ActionRule) -> Iterator[str]:
    """Bare conditions on what is known to be a list: by a type, the manual, or the examples."""
    condition = CONDITIONS.get(predicate.name)
    if condition is not None and (condition.whole or condition.quantifies or condition.effect):
        return
    arguments = predicate.arguments[:1] if predicate.name == "one_of" else predicate.arguments
    for number, text in enumerate(arguments):
        term = parse_term(text)
        if term.inner:
            continue
        lengths = [n for n, field in enumerate(term.path, 1) if field in known_lists(manual)]
        if rule.types.get(term.head) == "list":
            lengths = [0, *lengths]
        if lengths:
            whole, right_form = of_items(predicate, number, lengths[0])
            yield f"'{whole}' in '{predicate}' is a list: say of which items, as in {right_form}"


@lru_cache(maxsize=64)
def known_lists(manual: Manual) -> frozenset[str]:
    """The fields that are lists: the manual says so, or every answer in its examples does."""
    environment = manual.environment
    seen: dict[str, set[bool]] = {}
    for rule in (*manual.actions, *environment.policy, *environment.forbidden):
        for example in (*rule.allowed, *rule.refused):
            for past in example.after:
                _note_fields(past.answer, seen)
    return frozenset({*environment.listed, *(name for name, lists in seen.items() if all(lists))})


def _note_fields(data: object, seen: dict[str, set[bool]]) -> None:
    if isinstance(data, Mapping):
        for name, part in data.items():
            seen.setdefault(str(name), set()).add(isinstance(part, list))
    for part in (
        data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    ):
        _note_fields(part, seen)


def _is_term(argument: str) -> bool:
    """Return whether an argument has fields or is a function of others."""
    return bool(parse_term(argument).path or parse_term(argument).inner)


def _near(word: str, names: Collection[str]) -> str:
    """Suggest the nearest name, if one is near enough."""
    matches = nearest(word, names, ALIKE)
    return f"; did you mean '{matches[0]}'?" if matches else ""


def _unknown_terms(
    manual: Manual,
    term: Term,
    place: Place,
    rule: ActionRule,
    heads: Collection[str],
    compared: bool,
) -> Iterator[str]:
    """Unknown heads of a term; the first term of a comparison cannot be a literal."""
    where = str(place.condition)
    if (text := manual.environment.definitions.get(term.head)) and not term.inner:
        yield from _unknown_terms(manual, parse_term(text), place, rule, heads, compared)
        return
    if is_function(term):
        labels = FUNCTIONS[term.head].labels
        for label in {each.label for each in term.inner} - {""} if labels is not None else ():
            if label not in (labels or ()):
                near = _near(label, labels or ())
                yield f"'{term.head}' in '{where}' has no option '{label}'{near}"
        for number, inner in enumerate(term.inner):
            of_item = FUNCTIONS[term.head].per_item and number > 0
            names = {*heads, ITEM} if of_item else heads
            if of_item and term.head == "matching":
                bound = frozenset(names) - {*rule.parameters}
                condition = parse_predicate(inner.text)
                yield from faults(manual, place._replace(condition=condition, names=bound))
            else:
                literal = number > 0 or as_number(inner.head) is not None
                yield from _unknown_terms(manual, inner, place, rule, names, not literal)
        return
    if term.head not in heads and term.inner:
        near = _near(term.head, [*manual.by_name, *FUNCTIONS])
        yield f"'{term.head}' in '{where}' is no tool and no function{near}"
    elif term.head not in heads and (compared or term.path):
        yield _no_parameter(term.head, rule, where, manual.environment.things)
    for inner in term.inner:
        if inner.label:
            yield from _unknown_terms(manual, inner, place, rule, heads, False)
        elif inner.head not in rule.parameters:
            yield _no_parameter(inner.head, rule, where)


def _no_parameter(
    name: str, rule: ActionRule, where: str, things: Sequence[str] | None = None
) -> str:
    """The fault and what to write; ``things`` are those declared, where one may stand."""
    near = _near(name, [*rule.parameters, *(things or ())])
    declared = "" if things is None else ", or to 'things' if no argument names it"
    advice = "" if near else f"; add it to the arguments of {rule.id}{declared}"
    return f"'{name}' in '{where}' is no parameter of '{rule.name}'{near}{advice}"


def _coverage(manual: Manual, commands: Collection[str]) -> Iterator[Problem]:
    """Every command of the environment has one rule, or a stated reason to have none."""
    covered = {rule.syntax.split()[0] for rule in manual.actions} | {*manual.environment.not_taught}
    for name in commands:
        if name not in covered:
            yield "environment", "actions", f"the environment's action '{name}' has no rule"
    forms = {rule.id: re.sub(r"\{\w+\}", "{}", rule.syntax) for rule in manual.actions}
    counts = Counter(forms.values())
    for rule in manual.actions:
        if counts[forms[rule.id]] > 1:
            yield "environment", rule.id, f"another action has the same syntax '{rule.syntax}'"
    names = {rule.name: rule for rule in manual.actions}
    for step, action in manual.domain.advances.items():
        if action not in names:
            yield "domain", "advances", f"'{step}' is advanced by the unknown action '{action}'"
    for step, patterns in manual.domain.patterns.items():
        for pattern in patterns:
            if pattern.action not in names:
                yield (
                    "domain",
                    "applicable",
                    f"'{step}' names the unknown action '{pattern.action}'",
                )
                continue
            texts = f"{pattern.because} {pattern.wording} {{{pattern.likely}}}".replace("{}", "")
            blanks = {*names[pattern.action].parameters, "readings", "usual"}
            for blank in {*re.findall(r"\{(\w+)\}", texts)} - blanks:
                problem = f"'{step}': '{pattern.action}' has no parameter '{blank}'"
                yield "domain", "applicable", problem


def _missing_fallbacks(manual: Manual) -> Iterator[Problem]:
    """The guard needs a fallback action, and patterns for every step."""
    domain = manual.domain
    if not domain.idle or match_action(manual, domain.idle) is None:
        what = f"'{domain.idle}' is no action of the manual" if domain.idle else "missing"
        advice = "name one that can always be done, for when nothing else is possible: 'idle: look'"
        yield "domain", "idle", f"{what}; {advice}"
    steps = dict.fromkeys(chain(*domain.procedures.values()))
    if uncovered := [step for step in steps if step not in domain.applicable]:
        advice = f"list actions, best first: '{uncovered[0]}: [{{action: NAME, because: WHY}}]'"
        yield "domain", "applicable", f"no pattern for {', '.join(uncovered)}; {advice}"


def locate(
    tier: str, rule: str, folder: Path, shared: Path = RULES_FOLDER, over: Path | None = None
) -> tuple[Path, int]:
    """The file and line of a rule id or a section; custom files come first."""
    shipped = (shared if tier == "universal" else folder) / f"{tier}.yaml"
    files = [*(rule_files(over) if over else []), *([shipped] if shipped.is_file() else [])]
    name = re.escape(rule)
    for pattern in (rf"[\s{{-]*id:\s*{name}\s*(,|#|$)", rf"{name}:"):
        for file in files:
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                if re.match(pattern, line):
                    return file, number
    return files[-1], 1
