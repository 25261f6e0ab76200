"""What is wrong with a manual that its schema alone cannot see.

``rpms rules check`` lists all of it. A manual with words that mean nothing is not loaded: a rule
that silently never applies would be worse than none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rpms.rules import Manual, match_action, read_manual
from rpms.rules.ablate import ids_of
from rpms.rules.conditions import ABOUT_CONDITIONS, WORDS
from rpms.rules.loader import overlay, rule_files
from rpms.rules.manual import RULES_FOLDER
from rpms.rules.predicates import ARGUMENT, PREDICATES, SITUATIONAL, Predicate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.values import ARITIES, FUNCTIONS, NOW, Term, parse_term
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import ALIKE, nearest, offer

# Their second argument is a word of its own, as in kind(place, microwave).
_ABOUT_ONE = {"kind", "state", "seen"}

Problem = tuple[str, str, str]
"""The tier, the id or the section that it is about, and what is wrong."""


@lru_cache(maxsize=64)
def sound_manual(manual: Manual, own: Path, over: Path | None = None) -> Manual:
    """The manual itself, if every word in it means something; else its first problem is raised."""
    for tier, rule, text in _unreadable(manual):
        file, line = locate(tier, rule, own, RULES_FOLDER, over)
        raise RpmsError(str(Finding(file, line, rule, text)))
    return manual


class Finding(NamedTuple):
    """One problem: where it stands and what it is."""

    file: Path
    line: int
    rule: str
    problem: str

    def __str__(self) -> str:
        """``file:line: rule: problem``, the form editors can jump to."""
        return f"{self.file}:{self.line}: {self.rule}: {self.problem}"


def check_manual(
    own: Path,
    goal_types: Collection[str] = (),
    actions: Collection[str] = (),
    shared: Path = RULES_FOLDER,
    over: Path | None = None,
    played: bool = True,
) -> list[Finding]:
    """Everything wrong with a world's manual.

    Args:
        own: the folder with the world's Tiers 2 and 3.
        goal_types: the types the environment really has.
        actions: the first words of the commands the environment really has.
        shared: the folder with Tier 1.
        over: a folder of the user's own that is laid over them.
        played: whether the guard may have to choose an action by it.
    """
    manual = read_manual(own, shared)
    if over:
        manual = overlay(manual, over)
    problems = chain(
        _duplicates(manual),
        _goal_types(manual, goal_types) if goal_types else (),
        _unreadable(manual),
        _coverage(manual, actions),
        _unplayable(manual) if played else (),
    )
    return find_places(problems, own, shared, over)


def find_places(
    problems: Iterable[Problem], own: Path, shared: Path = RULES_FOLDER, over: Path | None = None
) -> list[Finding]:
    """Problems with the file and the line of what they are about."""
    return [
        Finding(*locate(tier, rule, own, shared, over), rule, text) for tier, rule, text in problems
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


def _goal_types(manual: Manual, real: Collection[str]) -> Iterator[Problem]:
    named = [(tier, rule.id, rule.goal_types) for tier, rules in manual.tiers for rule in rules]
    named += [("environment", pattern.id, pattern.goal_types) for pattern in manual.forbidden]
    named += [("domain", "procedures", list(manual.domain.procedures))]
    for tier, rule, goal_types in named:
        for name in goal_types:
            if name not in (*real, "all"):
                yield tier, rule, f"unknown goal type '{name}'"
    for name in real:
        if name not in manual.domain.procedures:
            yield "domain", "procedures", f"goal type '{name}' has no procedure"


def _takes_argument(choices: Collection[Collection[str]]) -> int:
    return int(any(ARGUMENT in parse_predicate(text).arguments for text in chain(*choices)))


def _unreadable(manual: Manual) -> Iterator[Problem]:
    """Words that mean nothing: an episode would end at one, or a rule never apply."""
    env, domain = manual.environment, manual.domain
    known: dict[str, int | None] = {name: arity for name, (arity, _) in PREDICATES.items()}
    known |= ARITIES
    known |= dict.fromkeys(env.affordances, 1)
    for name, choices in env.predicates.items():
        if name in known:
            yield "environment", "predicates", f"'{name}' is a predicate already"
        for text in chain(*choices):
            inner = parse_predicate(text)
            # One that is built on another of its kind could be built on itself.
            if inner.name not in known or inner.name in env.predicates:
                yield "environment", "predicates", f"'{name}' cannot be built on '{inner.name}'"
            elif len(inner.arguments) != (known[inner.name] or len(inner.arguments)):
                problem = f"'{text}' of '{name}' should have {known[inner.name]} argument(s)"
                yield "environment", "predicates", problem
    known |= {name: _takes_argument(choices) for name, choices in env.predicates.items()}
    for rule in manual.actions:
        when = map(parse_predicate, rule.verified_when)
        for predicate in (*rule.needs, *rule.outcomes, *when):
            for problem in _meaningless(manual, predicate, rule, known):
                yield "environment", rule.id, problem
    for pattern in env.forbidden:
        if forbidden := manual.by_name.get(pattern.action):
            for parameter in pattern.where:
                if parameter not in forbidden.parameters:
                    advice = offer(parameter, forbidden.parameters)
                    problem = f"'{pattern.action}' has no parameter '{parameter}'; {advice}"
                    yield "environment", pattern.id, problem
            for predicate in map(parse_predicate, pattern.when):
                for problem in _meaningless(manual, predicate, forbidden, known):
                    yield "environment", pattern.id, problem
        else:
            advice = offer(pattern.action, [*manual.by_name])
            yield (
                "environment",
                pattern.id,
                f"forbids the unknown action '{pattern.action}'; {advice}",
            )
    for demand in env.policy:
        for name in demand.action:
            if restricted := manual.by_name.get(name):
                for predicate in (*demand.conditions, *demand.demands):
                    for problem in _meaningless(manual, predicate, restricted, known):
                        yield "environment", demand.id, problem
            else:
                near = _near(name, manual.by_name)
                yield "environment", demand.id, f"speaks of the unknown action '{name}'{near}"
    used = {predicate.name for rule in manual.actions for predicate in rule.needs}
    needed = {n: w for n, w in env.wording.phrases.items() if n.removeprefix("not ") in used}
    for name, words in {**needed, **env.wording.facts}.items():
        if not re.search(r"\b(?:is|are)\b", words):
            advice = "write a statement with 'is' or 'are': what an action needs is made from it"
            yield "environment", "wording", f"'{name}' reads '{words}'; {advice}"
    for situation in env.situations:
        for predicate in map(parse_predicate, situation.when):
            if predicate.name not in {*known, *SITUATIONAL}:
                problem = f"unknown predicate '{predicate.name}' in '{predicate}'"
                yield "environment", situation.id, problem
    known |= {name: arity for name, (arity, *_) in WORDS.items()}
    for term, choices in domain.terms.items():
        if term in known:
            yield "domain", "terms", f"'{term}' is a condition already"
        known[term] = _takes_argument(choices)
    texts = [("terms", term, text) for term, rows in domain.terms.items() for text in chain(*rows)]
    for step, services in domain.patterns.items():
        texts += [("applicable", step, text) for service in services for text in service.when]
    for section, where, text in dict.fromkeys(texts):
        predicate = parse_predicate(text)
        last = predicate.arguments[-1:] if predicate.name in ABOUT_CONDITIONS else ()
        for name in (predicate.name, *last):
            if name not in known:
                problem = f"'{where}' uses the unknown condition '{name}' in '{text}'"
                yield "domain", section, problem
        if len(predicate.arguments) != known.get(predicate.name, len(predicate.arguments)):
            problem = f"'{text}' of '{where}' should have {known[predicate.name]} argument(s)"
            yield "domain", section, problem


def _meaningless(
    manual: Manual, predicate: Predicate, rule: ActionRule, known: Mapping[str, int | None]
) -> Iterator[str]:
    """What keeps a predicate from meaning something in a rule about an action."""
    name, arguments, env = predicate.name, predicate.arguments, manual.environment
    if name not in known:
        yield f"unknown predicate '{name}' in '{predicate}'{_near(name, known)}"
        return
    arity = known[name]
    if (len(arguments) < 2) if arity is None else len(arguments) != arity:
        yield f"'{predicate}' should have {'two or more' if arity is None else arity} argument(s)"
        return
    if name in ARITIES or name == "becomes":
        for place, text in enumerate(arguments):
            yield from _unknown_terms(manual, parse_term(text), rule, place == 0, str(predicate))
        if name == "becomes" and not parse_term(arguments[0]).path:
            yield f"'{predicate}' should name a field, such as 'becomes(order.status, cancelled)'"
        return
    if not all(
        argument in env.things or rule.speaks_of(argument)
        for argument in arguments[: 1 if name in _ABOUT_ONE else arity]
    ):
        problem = f"'{predicate}' speaks of no parameter of '{rule.syntax}'"
        yield f"{problem}; a thing is named as there, or with a number (box 1)"


def _near(word: str, known: Collection[str]) -> str:
    """The word that was meant, where one is near enough."""
    found = nearest(word, known, ALIKE)
    return f"; did you mean '{found[0]}'?" if found else ""


def _unknown_terms(
    manual: Manual, term: Term, rule: ActionRule, compared: bool, where: str
) -> Iterator[str]:
    """Heads of a term that stand for nothing; one that is compared cannot stand for itself."""
    if term.head in FUNCTIONS and term.inner:
        for inner in term.inner:
            yield from _unknown_terms(manual, inner, rule, True, where)
        return
    heads = [*rule.parameters, *manual.by_name, *manual.environment.things, NOW]
    if term.head not in heads and term.inner:
        yield f"'{term.head}' in '{where}' is no tool{_near(term.head, manual.by_name)}"
    elif term.head not in heads and (compared or term.path):
        yield _no_parameter(term.head, rule, where, manual.environment.things)
    for inner in term.inner:
        if inner.head not in rule.parameters:
            yield _no_parameter(inner.head, rule, where)


def _no_parameter(name: str, rule: ActionRule, where: str, things: Sequence[str] = ()) -> str:
    near = _near(name, [*rule.parameters, *things])
    advice = "" if near else f"; add it to the arguments of {rule.id}"
    return f"'{name}' in '{where}' is no parameter of '{rule.name}'{near}{advice}"


def _coverage(manual: Manual, real: Collection[str]) -> Iterator[Problem]:
    """Every command of the engine has one rule, or a stated reason for having none."""
    known = {rule.syntax.split()[0] for rule in manual.actions} | {*manual.environment.not_taught}
    for name in real:
        if name not in known:
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
    for step, services in manual.domain.patterns.items():
        for service in services:
            if service.action not in names:
                yield (
                    "domain",
                    "applicable",
                    f"'{step}' names the unknown action '{service.action}'",
                )
                continue
            texts = f"{service.because} {service.wording} {{{service.likely}}}".replace("{}", "")
            filled = {*names[service.action].parameters, "readings", "usual"}
            for blank in {*re.findall(r"\{(\w+)\}", texts)} - filled:
                problem = f"'{step}': '{service.action}' has no parameter '{blank}'"
                yield "domain", "applicable", problem


def _unplayable(manual: Manual) -> Iterator[Problem]:
    """What the guard plays by must be there: it would have nothing to offer or to fall back on."""
    domain = manual.domain
    if not domain.idle or match_action(manual, domain.idle) is None:
        what = f"'{domain.idle}' is no action of the manual" if domain.idle else "missing"
        advice = "name one that can always be done, for when nothing else is possible: 'idle: look'"
        yield "domain", "idle", f"{what}; {advice}"
    steps = dict.fromkeys(chain(*domain.procedures.values()))
    if unserved := [step for step in steps if step not in domain.applicable]:
        advice = f"list actions, best first: '{unserved[0]}: [{{action: NAME, because: WHY}}]'"
        yield "domain", "applicable", f"nothing serves {', '.join(unserved)}; {advice}"


def locate(
    tier: str, rule: str, own: Path, shared: Path = RULES_FOLDER, over: Path | None = None
) -> tuple[Path, int]:
    """The file and line where an id stands, or a section begins: the user's own files first."""
    shipped = (shared if tier == "universal" else own) / f"{tier}.yaml"
    files = [*(rule_files(over) if over else []), *([shipped] if shipped.is_file() else [])]
    name = re.escape(rule)
    for pattern in (rf"[\s{{-]*id:\s*{name}\s*(,|#|$)", rf"{name}:"):
        for file in files:
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                if re.match(pattern, line):
                    return file, number
    return files[-1], 1
