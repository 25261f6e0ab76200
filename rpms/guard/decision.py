"""The decision about one tool call: may it be carried out, and if not, why and what would help.

A call is data. Its tool and its arguments are matched by name with the manual, and the rule's
conditions are evaluated over the values themselves; nothing is turned into text and read back.

Three kinds of rules speak about a call: what the tool needs (``actions``), what a policy demands
(``policy``), and what is forbidden under a goal (``forbidden``). Of those that are violated the
strictest decides: ``refuse`` before ``ask`` before ``warn``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from rpms.guard.repair import repair_call
from rpms.rules import Manual
from rpms.rules.predicates import (
    Predicate,
    StaticFacts,
    evaluate,
    is_undecided,
    may_hold,
    parse_predicate,
)
from rpms.rules.schema import ActionRule, OnViolation
from rpms.rules.semantics import apply_effects, check_needs, forbidden_patterns
from rpms.rules.values import ABSENT, plain
from rpms.vocabulary.belief import Belief, PastCall, copy_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.spelling import offer

CallVerdict = Literal["allow", "warn", "ask", "refuse"]
UNKNOWN_TOOL, UNKNOWN_ARGUMENT, GUARD_FAILED = "unknown tool", "unknown argument", "guard"
"""In the place of a rule's id, where no rule of the manual is the reason."""


class Judgement(NamedTuple):
    """What the manual makes of a call.

    Attributes:
        verdict: what is to be done with it.
        rule: the id of the rule that decided; empty if none speaks against the call.
        reason: why, as a clause about "it".
        repair: what would make the call possible, in words; empty if nothing is known to.
        uninformed: nothing known contradicts the rule; only the evidence for it is missing.
    """

    verdict: CallVerdict
    rule: str = ""
    reason: str = ""
    repair: str = ""
    uninformed: bool = False

    def words(self, call: Call) -> str:
        """The line that answers a refused call in the tool's place."""
        advice = f" {self.repair[:1].upper()}{self.repair[1:]}." if self.repair else ""
        stop = "" if self.reason.endswith("?") else "."
        return f"{call} was not carried out [{self.rule}]: {self.reason}{stop}{advice}"


def stricter(one: Judgement, other: Judgement) -> Judgement:
    """Of two judgements the one that lets less pass; the first where they are equal."""
    order: tuple[CallVerdict, ...] = ("refuse", "ask", "warn", "allow")
    return min(one, other, key=lambda judgement: order.index(judgement.verdict))


class Violation(NamedTuple):
    """A rule that a call is against, and the conditions that are not met."""

    rule: str
    on_violation: OnViolation
    reason: str
    lacking: tuple[Predicate, ...] = ()
    uninformed: bool = False


def judge(
    manual: Manual,
    call: Call,
    belief: Belief,
    goal: GoalSpec | None = None,
    possible: Mapping[str, Belief] = MappingProxyType({}),
    allowed: Collection[str] = (),
) -> Judgement:
    """Decide about a call.

    Args:
        manual: the rules.
        call: the tool and its arguments.
        belief: what the tools' answers have shown so far.
        goal: what the user wants, for rules that hold under some goals.
        possible: what may be so besides, each under the words that say when. The call must be right
            in every one of these beliefs, too.
        allowed: ids of rules that a person has allowed this very call to violate.
    """
    rule = manual.by_name.get(call.tool)
    if rule is None:
        known = offer(call.tool, [*manual.by_name]) if manual.by_name else "they have none"
        return Judgement("refuse", UNKNOWN_TOOL, f"the rules have no tool '{call.tool}'; {known}")
    if strange := [name for name in call.arguments if name not in rule.called]:
        near = offer(strange[0], [*rule.called]) if rule.called else "it takes none"
        reason = f"the rules have no argument '{strange[0]}' of '{call.tool}'; {near}"
        return Judgement("refuse", UNKNOWN_ARGUMENT, reason)
    found: list[tuple[dict[str, Any], Violation, Belief]] = []
    for when, state in {"": belief, **possible}.items():
        for reading in readings(rule, call, state):
            for violation in violations(manual, rule, reading, state, goal):
                if violation.rule in allowed:
                    continue
                if when:
                    violation = violation._replace(reason=f"{violation.reason}, {when}")
                if violation.on_violation == "refuse":
                    return _against(manual, rule, reading, violation, state, goal)
                found.append((reading, violation, state))
    if not found:
        return Judgement("allow")
    reading, worst, state = min(found, key=lambda each: each[1].on_violation)  # ask before warn
    return _against(manual, rule, reading, worst, state, goal)


def _against(
    manual: Manual,
    rule: ActionRule,
    bindings: Mapping[str, Any],
    violation: Violation,
    belief: Belief,
    goal: GoalSpec | None,
) -> Judgement:
    repair = repair_call(manual, rule, bindings, violation.lacking, belief, goal)
    return Judgement(
        violation.on_violation, violation.rule, violation.reason, repair, violation.uninformed
    )


def readings(rule: ActionRule, call: Call, belief: Belief) -> list[dict[str, Any]]:
    """The values of a rule's parameters, in every way in which the call may be meant.

    The first reading takes every text as it is written. One that differs from a known name only by
    case, blanks or the form of its letters may mean that name, and to many tools it does: the call
    has to be right in that reading, too, so that no rule is passed by writing ``o1 `` for ``O1``.
    """
    values = {
        parameter: call.arguments.get(name, ABSENT) for name, parameter in rule.called.items()
    }
    texts = {parameter: text for parameter, text in values.items() if isinstance(text, str)}
    alike = _spellings(*map(tuple, _named(belief))) if texts else {}
    others: list[tuple[str, str]] = []
    for parameter, text in texts.items():
        others += [(parameter, name) for name in alike.get(plain(text), ()) if name != text]
    return [values, *({**values, parameter: name} for parameter, name in others)]


def bind(rule: ActionRule, call: Call, belief: Belief) -> dict[str, Any]:
    """The first reading of a call."""
    return readings(rule, call, belief)[0]


def _named(belief: Belief) -> tuple[Iterable[str], ...]:
    return (
        belief["last_seen"].values(), belief["last_seen"], belief["flags"], belief["records"],
    )  # fmt: skip


@lru_cache(maxsize=256)
def _spellings(*names: tuple[str, ...]) -> dict[str, list[str]]:
    """The names that are known, by what they have in common however they are written."""
    alike: dict[str, dict[str, None]] = {}
    for name in chain(*names):
        alike.setdefault(plain(name), {})[name] = None
    return {key: list(found) for key, found in alike.items()}


def violations(
    manual: Manual,
    rule: ActionRule,
    bindings: Mapping[str, Any],
    belief: Belief,
    goal: GoalSpec | None,
) -> Iterator[Violation]:
    """Every rule that an action or a call is against in this belief.

    This is the decision: our own graph asks it about the actions that a model writes, ``judge``
    about tool calls.
    """
    if manual.knows(rule) and not _met(rule.needs, belief, manual.facts, bindings):
        yield from _unmet(manual, rule.id, rule.on_violation, rule.needs, bindings, belief)
    for demand in manual.policy.get(rule.name, ()):
        applies = not demand.conditions or all(
            may_hold(each, belief, manual.facts, bindings) for each in demand.conditions
        )
        if applies and not _met(demand.demands, belief, manual.facts, bindings):
            needs, said = demand.demands, demand.text.rstrip(".")
            for found in _unmet(manual, demand.id, demand.on_violation, needs, bindings, belief):
                yield found._replace(reason=f"{found.reason} ({said})") if said else found
    if goal is not None:
        for pattern, hit in forbidden_patterns(manual, rule, bindings, goal, belief):
            if hit and pattern.id not in manual.without:
                yield Violation(pattern.id, pattern.on_violation, "a rule forbids it for this goal")


def _met(
    needs: Sequence[Predicate], belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Whether all are known to hold, as is usual: nothing has to be put into words then."""
    for each in needs:  # noqa: SIM110 (a generator costs as much as a comparison)
        if evaluate(each, belief, facts, bindings) is not True:
            return False
    return True


def _unmet(
    manual: Manual,
    rule: str,
    on_violation: OnViolation,
    needs: Sequence[Predicate],
    bindings: Mapping[str, Any],
    belief: Belief,
) -> Iterator[Violation]:
    diagnosis = check_needs(manual, rule, needs, bindings, belief)
    if diagnosis.violated:
        lacking = tuple(map(parse_predicate, diagnosis.violated_predicates))
        uninformed = not any(_undone(manual, each) for each in lacking) and all(
            is_undecided(each, belief, manual.facts, bindings) for each in lacking
        )
        yield Violation(rule, on_violation, diagnosis.reason, lacking, uninformed)


def _undone(manual: Manual, need: Predicate) -> bool:
    """Whether a call was to bring it about, as a verification: without it, it is not so."""
    return need.name == "seen" and need.positive and need.arguments[1] in manual.brought_about


def assume(manual: Manual, calls: Sequence[Call], belief: Belief) -> Belief:
    """The belief once these calls have been carried out, by the rules' effects alone."""
    later = copy_belief(belief)
    for call in calls:
        carry_out(manual, call, later)
    return later


def carry_out(manual: Manual, call: Call, belief: Belief) -> None:
    """Change a belief as a call does that is carried out."""
    if rule := manual.by_name.get(call.tool):
        if manual.knows(rule):
            apply_effects(manual, rule.outcomes, bind(rule, call, belief), belief)
        note_call(call, belief)


def note_call(call: Call, belief: Belief) -> None:
    """Keep that a call was carried out, for rules that count calls."""
    belief["calls"] = [*belief["calls"], PastCall(tool=call.tool, arguments=dict(call.arguments))]
