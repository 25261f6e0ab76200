"""Reading printed lines back: patterns for each kind of line, and what must be true of it.

A world's checks are a list of ``Kind``: where such a line stands, what it looks like, and a
function that says what is false about it. Every printed line must be of some kind: a line that
nobody can hold against the truth is a fault of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from rpms.guard.procedure import applicable_actions
from rpms.rules import Manual, match_action
from rpms.rules.predicates import Predicate, reading
from rpms.rules.wording import need, statement
from tests.truth.playing import Moment

Check = Callable[[Moment, re.Match[str]], Iterable[str]]


class Kind(NamedTuple):
    """One kind of printed line: its blocks, its form, and what is false about one of them."""

    blocks: str
    pattern: re.Pattern[str]
    check: Check


def kind(blocks: str, pattern: str) -> Callable[[Check], Kind]:
    """Declares how a kind of line is read: ``blocks`` by space."""

    def declare(check: Check) -> Kind:
        return Kind(blocks, re.compile(pattern), check)

    return declare


def false_lines(moment: Moment, kinds: Sequence[Kind]) -> Iterator[str]:
    """Everything that is false in the lines of a moment, and every line that nobody can read."""
    for block, line in moment.lines():
        text = line.strip()
        fitting = [
            (each, match)
            for each in kinds
            if block in each.blocks.split() and (match := each.pattern.fullmatch(text))
        ]
        if not fitting:
            yield f"{moment.where}: nobody can check this line of {block}: {text}"
        for each, match in fitting[:1]:
            for fault in each.check(moment, match):
                yield f"{moment.where}: {fault}: {text}"


def is_so(condition: bool, fault: str) -> Iterator[str]:
    if not condition:
        yield fault


def true_always(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    """For sentences that claim nothing about this state: principles, sequences, the goal."""
    return ()


# What every world prints.

REJECTED = re.compile(
    r"'(?P<action>.+)' was rejected(?P<times> twice| \d+ times)?: (?P<reason>.+)\."
)
NEEDED = re.compile(r"it needs (?P<need>.+?)(?:, and (?P<fact>.+?))?(?=; it needs |$)")
OTHER_KIND = re.compile(r"an? (\w+) in place of (.+)")
UNKNOWN_NEED = re.compile(r"it needs (.+), and whether that is so is not known")


def rejection_faults(
    moment: Moment,
    action: str,
    reason: str,
    holds: Callable[[Predicate, Mapping[str, str]], bool | None],
    fact_fault: Callable[[Moment, str], str],
    other: Mapping[str, Check] | None = None,
) -> Iterator[str]:
    """What is false in the reason for a rejection or a veto.

    A need must be one that the action has, and unmet by the truth (``holds``); a fact must be so.
    """
    matched = match_action(moment.manual, action)
    if reason == "it is not one of the available actions":
        if matched is not None:
            yield "it is an action"
        return
    if reason == "the reason is not known":
        return
    if quoted := re.fullmatch(r"the answer was '(.+)'", reason):
        if quoted[1] not in moment.state["history"][-1]["observation"]:
            yield "that was not the answer"
        return
    for pattern, check in (other or {}).items():
        if match := re.fullmatch(pattern, reason):
            yield from check(moment, match)
            return
    if matched is None:
        yield "no rule speaks of this action"
        return
    needs = {need(p, matched[1], moment.manual.facts): p for p in matched[0].needs}
    if unsure := UNKNOWN_NEED.fullmatch(reason):
        unknown = [words for words in unsure[1].split("; ") if words not in needs]
        yield from (f"'{words}' is no need of it" for words in unknown)
        return
    parts = list(NEEDED.finditer(reason))
    if not parts:  # a bare statement is a claim about the state
        yield from filter(None, (fact_fault(moment, fact) for fact in reason.split("; ")))
    for part in parts:
        predicate = needs.get(part["need"])
        if predicate is None:
            yield f"'{part['need']}' is no need of it"
        elif holds(predicate, matched[1]) is not False:
            yield f"'{part['need']}' is met in truth"
        if part["fact"] and (fault := fact_fault(moment, part["fact"])):
            yield fault


def learned_faults(
    manual: Manual, action: str, needs: str | None, then: str | None, follows: Collection[str]
) -> Iterator[str]:
    """What memory noticed of an action must be so by the rules, or follow from them."""
    matched = match_action(manual, action)
    if matched is None:
        yield "no such action"
        return
    rule, names = matched
    for words, as_need in ((needs, True), (then, False)):
        taught = [p.bind(names) for p in (rule.needs if as_need else rule.outcomes)]
        taught_words = {(need if as_need else statement)(p, {}, manual.facts) for p in taught}
        for part in words.split("; ") if words else []:
            if part.removesuffix(" still") in taught_words:
                continue
            if other := OTHER_KIND.fullmatch(part):
                if Predicate(True, "kind", (other[2], other[1])) not in taught:
                    yield f"'{part}' is not so by the rules of the game"
                continue
            meant = said(part.removesuffix(" still"), [*names.values()], manual, as_need)
            if not any(p in taught or p.name in follows for p in meant):
                yield f"'{part}' is not so by the rules of the game"


def times_faults(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """What is false about which action was rejected, and how often since anything changed."""
    history = moment.state["history"]
    if not (history[-1]["failed"] and history[-1]["action"] == match["action"]):
        yield "it was not the last action, or it was carried out"
    turns = history[len(history) - len(moment.state["ineffective"]) :]
    times = sum(turn["failed"] and turn["action"] == match["action"] for turn in turns)
    words = {None: 1, " twice": 2}
    printed = words.get(match["times"]) or int(re.findall(r"\d+", match["times"])[0])
    if max(times, 1) != printed:  # a menu before it changed what is known
        yield f"it was rejected {times} times"


def named_predicates(names: Sequence[str], manual: Manual) -> Iterator[Predicate]:
    """Every predicate that can be said of some names, to find what a line says."""
    own = {
        **dict.fromkeys(manual.facts.affordances, 1),
        **dict.fromkeys(manual.facts.predicates, 1),
    }
    arities = {**{each.name: each.arity or 0 for each in reading("things")}, **own}
    for (name, arity), positive in product(arities.items(), (True, False)):
        for chosen in product(names, repeat=arity):
            yield Predicate(positive, name, chosen)


def said(words: str, names: Sequence[str], manual: Manual, as_need: bool) -> list[Predicate]:
    """The predicates that read like this."""
    form = need if as_need else statement
    return [p for p in named_predicates(names, manual) if form(p, {}, manual.facts) == words]


def one_voice_faults(moment: Moment) -> Iterator[str]:
    """What no prompt may hold: two voices about one action, warnings that miss, empty blanks."""
    shown = [recall for recall in moment.state["recalls"] if not recall["dropped_by"]]
    memory = moment.blocks.memory
    advised = {a for r in shown if r["entry"]["type"] == "success" for a in r["advice"]["printed"]}
    against = (r"AVOID[^:]*: (.+)", r"Danger: .*, '(.+)' was wrong",
               r"In a similar task '(.+)' was rejected")  # fmt: skip
    avoided = {action for pattern in against for action in re.findall(pattern, memory)}
    if moment.context.rules and moment.context.arbitration_extras:
        yield from (f"for and against '{action}'" for action in sorted(advised & avoided))
    if moment.context.rules and moment.context.arbitration == "hard+soft":
        demanded = {choice["action"] for choice in applicable_actions(moment.now)}
        if moment.context.memory_form == "grounded":
            yield from (f"against what is demanded: '{a}'" for a in sorted(demanded & avoided))
    for recall in shown:
        printed = set(recall["advice"]["printed"])
        for action in re.findall(r"'([^']+)'", recall["warning"]):
            if action not in printed:
                yield f"a warning about '{action}' on an entry that prints {sorted(printed)}"
        steps = recall["advice"]["printed"]
        if recall["entry"]["type"] == "success" and moment.context.memory_form == "grounded":
            yield from (f"'{a}' twice in a row" for a, b in pairwise(steps) if a == b)
        told = recall["advice"]["needs"] or recall["advice"]["then"]
        if recall["entry"]["type"] == "schema" and not told:
            yield f"a schema that says nothing: {steps}"
    lines = [line.strip() for _, line in moment.lines()]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.endswith(":") and below.startswith("1. "):
            continue  # the head of a list
        line = re.sub(r"^Rejected here \(.+\): ", "", line)  # the environment's own words
        if re.search(r"\{\w*\}|\bNone\b|: *$| {3,}\S|\(\s*\)|''|, ,|\?$", line):
            yield f"an empty blank: {line}"
