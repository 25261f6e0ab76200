"""The manual of a run: where the rules, which know no world, meet the worlds and the settings.

``rpms rules check`` finds here what the schema alone cannot see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from rpms.envs import get_environment
from rpms.guard.policy import ABOUT_CONDITIONS, WORDS
from rpms.rules import Manual, match_action, read_manual
from rpms.rules.ablate import ids_of, leave_out, names_in, syntax_only
from rpms.rules.loader import overlay, rule_files
from rpms.rules.manual import RULES_FOLDER
from rpms.rules.predicates import ARGUMENT, PREDICATES, SITUATIONAL, parse_predicate
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import stamp_of

# Their second argument is a word of its own, as in kind(place, microwave).
_ABOUT_ONE = {"kind", "state", "seen", "at_most"}

Stamp = tuple[tuple[str, int, int], ...]
Problem = tuple[str, str, str]
"""The tier, the id or the section that it is about, and what is wrong."""


def manual_for(env: str, context: RunContext) -> Manual:
    """R as this run has it: every stage that asks the rules asks these."""
    return load_manual(env, context.rules_dir, context.without_rules)


def known_manual(env: str, context: RunContext) -> Manual:
    """What may be known where rules can be off: with them R, without the syntax of the commands.

    Memory asks this one, so that it is the same whatever the rules would say. The guard asks R: it
    lets the rules judge under any condition.
    """
    return manual_for(env, context) if context.rules else bare_manual(env)


def bare_manual(env: str) -> Manual:
    """The commands of a world, which its system prompt shows to everybody."""
    return syntax_only(read_manual(get_environment(env).rules))


def load_manual(env: str, rules_dir: str = "", without: str = "") -> Manual:
    """R of a world: its own Tiers 2 and 3 with the Tier 1 that all share.

    Args:
        env: the world.
        rules_dir: a folder of rule files to lay over them, or to put in their place.
        without: ids of rules and names of tiers to leave out, by comma.
    """
    if not (rules_dir or without):
        return read_manual(get_environment(env).rules)
    return _load(env, rules_dir, tuple(names_in(without)), _stamp(rules_dir))


def _stamp(rules_dir: str) -> Stamp:
    """What tells one content of a folder from another: people edit their rules between runs."""
    files = rule_files(Path(rules_dir)) if rules_dir else []
    return tuple((file.name, *stamp_of(file)) for file in files)


@lru_cache(maxsize=64)
def _load(env: str, rules_dir: str, without: tuple[str, ...], _content: Stamp) -> Manual:
    own = get_environment(env).rules
    manual = read_manual(own)
    if rules_dir:
        manual = overlay(manual, Path(rules_dir))
        for tier, rule, text in _unreadable(manual):
            file, line = locate(tier, rule, own, RULES_FOLDER, Path(rules_dir))
            raise RpmsError(str(Finding(file, line, rule, text)))
    return leave_out(manual, without) if without else manual


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
    known = {name: arity for name, (arity, _) in PREDICATES.items()}
    known |= dict.fromkeys(env.affordances, 1)
    for name, choices in env.predicates.items():
        if name in known:
            yield "environment", "predicates", f"'{name}' is a predicate already"
        for text in chain(*choices):
            inner = parse_predicate(text)
            # One that is built on another of its kind could be built on itself.
            if inner.name not in known or inner.name in env.predicates:
                yield "environment", "predicates", f"'{name}' cannot be built on '{inner.name}'"
            elif len(inner.arguments) != known[inner.name]:
                problem = f"'{text}' of '{name}' should have {known[inner.name]} argument(s)"
                yield "environment", "predicates", problem
    known |= {name: _takes_argument(choices) for name, choices in env.predicates.items()}
    for rule in manual.actions:
        when = map(parse_predicate, rule.verified_when)
        for predicate in (*rule.needs, *rule.outcomes, *when):
            name, arguments, arity = predicate.name, predicate.arguments, known.get(predicate.name)
            if arity is None:
                yield "environment", rule.id, f"unknown predicate '{name}' in '{predicate}'"
            elif len(arguments) != arity:
                yield "environment", rule.id, f"'{predicate}' should have {arity} argument(s)"
            elif not all(
                argument in env.things or rule.speaks_of(argument)
                for argument in arguments[: 1 if name in _ABOUT_ONE else arity]
            ):
                problem = f"'{predicate}' speaks of no parameter of '{rule.syntax}'"
                advice = "a thing is named as there, or with a number (box 1)"
                yield "environment", rule.id, f"{problem}; {advice}"
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
        texts += [("serves", step, text) for service in services for text in service.when]
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
                yield "domain", "serves", f"'{step}' names the unknown action '{service.action}'"
                continue
            texts = f"{service.because} {service.wording} {{{service.likely}}}".replace("{}", "")
            filled = {*names[service.action].parameters, "readings", "usual"}
            for blank in {*re.findall(r"\{(\w+)\}", texts)} - filled:
                problem = f"'{step}': '{service.action}' has no parameter '{blank}'"
                yield "domain", "serves", problem
    for pattern in manual.forbidden:
        if pattern.action not in names:
            yield "environment", pattern.id, f"forbids the unknown action '{pattern.action}'"


def _unplayable(manual: Manual) -> Iterator[Problem]:
    """What the guard plays by must be there: it would have nothing to offer or to fall back on."""
    domain = manual.domain
    if not domain.idle or match_action(manual, domain.idle) is None:
        what = f"'{domain.idle}' is no action of the manual" if domain.idle else "missing"
        advice = "name one that can always be done, for when nothing else is possible: 'idle: look'"
        yield "domain", "idle", f"{what}; {advice}"
    steps = dict.fromkeys(chain(*domain.procedures.values()))
    if unserved := [step for step in steps if step not in domain.serves]:
        advice = f"list actions, best first: '{unserved[0]}: [{{action: NAME, because: WHY}}]'"
        yield "domain", "serves", f"nothing serves {', '.join(unserved)}; {advice}"


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
