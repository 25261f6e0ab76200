"""The decision about one tool call: a verdict, its reason, and a repair.

A call is data. Its tool and arguments are matched with the manual by name, and the rule's
conditions are evaluated over the values themselves, without a detour through text.

Three kinds of rules apply to a call: preconditions of the tool (``actions``), demands of a policy
(``policy``), and actions forbidden under a goal (``forbidden``). Of several violated rules the
strictest decides: ``refuse`` before ``ask`` before ``warn``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from rpms.guard.repair import repair_call
from rpms.rules import Manual
from rpms.rules.calls import readings
from rpms.rules.predicates import Predicate, evaluate
from rpms.rules.scalars import UNKNOWN
from rpms.rules.schema import ActionRule, EnforcedRule, OnViolation
from rpms.rules.terms import CONTEXT, all_terms, parse_term
from rpms.rules.verdicts import Violation, check_needs, violations
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.spelling import offer

CallVerdict = Literal["allow", "warn", "ask", "refuse"]
UNKNOWN_TOOL, UNKNOWN_ARGUMENT, GUARD_FAILED = "unknown tool", "unknown argument", "guard"
"""Instead of a rule's id, if no rule of the manual is the reason."""


class Judgement(NamedTuple):
    """The manual's judgement of a call.

    Attributes:
        verdict: what to do with the call.
        rule: the id of the rule that decided; empty if the call violates none.
        reason: why, as a clause about "it".
        repair: what would make the call possible, in words; empty if nothing is known to.
        uninformed: nothing known contradicts the rule; only its evidence is missing.
        also: the other rules that refuse the call, each with its reason.
        fruitless: look-ups that were made and did not show what they should.
    """

    verdict: CallVerdict
    rule: str = ""
    reason: str = ""
    repair: str = ""
    uninformed: bool = False
    also: tuple[tuple[str, str], ...] = ()
    fruitless: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of all rules that refuse the call."""
        return (self.rule, *(rule for rule, _ in self.also))

    def words(self, call: Call) -> str:
        """The answer to a refused call, on one line: every rule that refuses it, what helps."""
        begins = self.repair[:1] if self.fruitless else self.repair[:1].upper()  # a tool's name
        advice = f" {begins}{self.repair[1:]}." if self.repair else ""
        reasons = [(self.rule, self.reason), *self.also]
        stops = ("" if reason.endswith("?") else "." for _, reason in reasons)
        texts = [f"[{rule}]: {why}{stop}" for (rule, why), stop in zip(reasons, stops, strict=True)]
        return f"{call} was not carried out {' '.join(texts)}{advice}"


def stricter(one: Judgement, other: Judgement) -> Judgement:
    """The stricter of two judgements; the first if they are equal."""
    order: tuple[CallVerdict, ...] = ("refuse", "ask", "warn", "allow")
    return min(one, other, key=lambda judgement: order.index(judgement.verdict))


def judge(
    manual: Manual,
    call: Call,
    belief: Belief,
    goal: GoalSpec | None = None,
    possible: Mapping[str, Belief] = MappingProxyType({}),
    allowed: Collection[str] = (),
    context: Mapping[str, Any] | None = None,
) -> Judgement:
    """Decide about a call.

    Args:
        manual: the rules.
        call: the tool and its arguments.
        belief: what the tools' answers have shown so far.
        goal: what the user wants, for rules that hold under some goals.
        possible: beliefs that may hold instead, keyed by the words that say when. The call must be
            right in each of them as well.
        allowed: ids of rules that a person has allowed this call to violate.
        context: the runtime context, such as who is logged in; None where it is not known.
    """
    rule = manual.by_name.get(call.tool)
    if rule is None:
        advice = offer(call.tool, [*manual.by_name]) if manual.by_name else "they have none"
        return Judgement("refuse", UNKNOWN_TOOL, f"the rules have no tool '{call.tool}'; {advice}")
    if unknown := [name for name in call.arguments if name not in rule.called]:
        near = offer(unknown[0], [*rule.called]) if rule.called else "it takes none"
        reason = f"the rules have no argument '{unknown[0]}' of '{call.tool}'; {near}"
        return Judgement("refuse", UNKNOWN_ARGUMENT, reason)
    found: dict[str, tuple[dict[str, Any], Violation, Belief]] = {}
    for when, state in {"": belief, **possible}.items():
        for reading in readings(rule, call, state):
            reading[CONTEXT] = UNKNOWN if context is None else context
            for violation in violations(manual, rule, reading, state, goal):
                if violation.rule in allowed or violation.rule in found:
                    continue
                if when:
                    violation = violation._replace(reason=f"{violation.reason}, {when}")
                found[violation.rule] = (reading, violation, state)
    if not found:
        return Judgement("allow")
    strictness: tuple[OnViolation, ...] = ("refuse", "ask", "warn")
    verdict = min((each.on_violation for _, each, _ in found.values()), key=strictness.index)
    broken = [entry for entry in found.values() if entry[1].on_violation == verdict]
    broken.sort(key=lambda entry: entry[1].state == "open")  # what no look-up repairs tells most
    if verdict != "refuse":  # a person decides about one rule after the other
        broken = broken[:1]
    repair = repair_call(
        manual, rule, [(reading, each.unmet, state) for reading, each, state in broken], goal
    )
    first = broken[0][1]
    return Judgement(
        verdict, first.rule, first.reason, repair.words, first.state == "open",
        tuple((each.rule, each.reason) for _, each, _ in broken[1:]), repair.fruitless,
    )  # fmt: skip


def ruled_out(
    manual: Manual, tool: str, belief: Belief, context: Mapping[str, Any]
) -> tuple[str, str]:
    """The rule that refuses every call of a tool now, whatever its arguments, and the reason.

    Both are empty if some arguments may be right.
    """
    rule, bindings = manual.by_name.get(tool), {CONTEXT: context}
    if rule is None:
        return "", ""
    demands: list[tuple[EnforcedRule, Sequence[Predicate], Sequence[Predicate]]] = [
        (each, each.conditions, each.demands) for each in manual.policy.get(tool, ())
    ]
    if manual.knows(rule):
        demands.append((rule, (), rule.needs))
    for enforced, when, needs in demands:
        if enforced.on_violation != "refuse" or any(_reads(rule, each, manual) for each in when):
            continue
        if not all(evaluate(each, belief, manual.facts, bindings) for each in when):
            continue
        for each in needs:
            if not _reads(rule, each, manual):
                diagnosis = check_needs(manual, enforced.id, [each], bindings, belief)
                if diagnosis.reason:
                    return enforced.id, diagnosis.reason
    return "", ""


def _reads(rule: ActionRule, condition: Predicate, manual: Manual) -> bool:
    """Return whether the truth of a condition may depend on an argument of the call."""
    names: set[str] = set()
    terms = [*map(parse_term, condition.arguments)]
    while terms:
        for term in all_terms(terms.pop()):
            names.add(term.head)
            if text := manual.environment.definitions.get(term.head):
                terms.append(parse_term(text))
    composed = names & {*manual.environment.predicates} | {condition.name} & {
        *manual.facts.predicates
    }
    return bool(composed or names & {*rule.parameters, "not"})
