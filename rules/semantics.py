"""What Tier 3 says about one action: is it feasible, why not, and what would follow.

The same reading of the YAML serves the diagnosis of failed actions, the SCF's precondition
check, the arbiter's simulation and the audit against the real engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from rules.manual import Manual
from rules.predicates import evaluate, parse_predicate, phrase
from rules.schema import ActionRule
from vocabulary.belief import Belief, copy_belief, kind_of
from vocabulary.goal import GoalSpec

Verdict = Literal["holds", "fails", "unknown", "no_such_action"]


class Diagnosis(NamedTuple):
    """Whether an action's preconditions hold in a belief, and which do not.

    Attributes:
        verdict: ``holds`` only if all hold; ``fails`` if one definitely does not.
        rule: id of the Tier-3 rule, empty when the text is no known action.
        violated: the definite failures, in words with the actual names.
        unsure: what the belief does not tell.
        violated_predicates: the same failures as written in the YAML.
    """

    verdict: Verdict
    rule: str
    violated: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    violated_predicates: tuple[str, ...] = ()


def match_action(manual: Manual, action: str) -> tuple[ActionRule, Mapping[str, str]] | None:
    """The Tier-3 rule an action text belongs to, with its parameters."""
    for rule in manual.actions:
        if found := rule.pattern.match(action):
            return rule, found.groupdict()
    return None


def check_action(manual: Manual, action: str, belief: Belief) -> Diagnosis:
    """Evaluate every precondition of an action against the belief."""
    matched = match_action(manual, action)
    if matched is None:
        return Diagnosis("no_such_action", "", (f"'{action}' is not an available action",))
    rule, bindings = matched
    violated: list[str] = []
    unsure: list[str] = []
    predicates: list[str] = []
    for text in rule.preconditions:
        predicate = parse_predicate(text)
        truth = evaluate(predicate, belief, manual.world, bindings)
        if truth is False:
            violated.append(phrase(predicate, bindings))
            predicates.append(text)
        elif truth is None:
            unsure.append(phrase(predicate, bindings))
    verdict: Verdict = "fails" if violated else "unknown" if unsure else "holds"
    return Diagnosis(verdict, rule.id, tuple(violated), tuple(unsure), tuple(predicates))


def explain_refusal(manual: Manual, action: str, belief: Belief) -> tuple[str, ...]:
    """Why an action was refused, in words: what was violated, else what may have been."""
    diagnosis = check_action(manual, action, belief)
    if diagnosis.violated:
        return diagnosis.violated
    matched = match_action(manual, action)
    if matched and matched[0].if_refused:
        return (matched[0].if_refused.format(**matched[1]),)
    return diagnosis.unsure or ("reason unknown",)


def simulate(manual: Manual, action: str, belief: Belief) -> Belief:
    """The belief after an action that succeeds, by the action's effects alone."""
    matched = match_action(manual, action)
    after = copy_belief(belief)
    if matched is None:
        return after
    rule, bindings = matched
    for text in rule.effects:
        predicate = parse_predicate(text)
        names = [bindings.get(name, name) for name in predicate.arguments]
        _apply(after, predicate.name, predicate.positive, names)
    return after


def _apply(belief: Belief, name: str, positive: bool, names: list[str]) -> None:
    if name == "at":
        belief["location"] = names[0]
        belief["reachable"] = []
    elif name in ("open", "closed"):
        belief["containers"][names[0]] = "open" if name == "open" else "closed"
    elif name in ("holding", "in_inventory"):
        if positive:
            belief["holding"].append(names[0])
            belief["last_seen"].pop(names[0], None)
        elif names[0] in belief["holding"]:
            belief["holding"].remove(names[0])
    elif name == "in":
        if positive:
            belief["last_seen"][names[0]] = names[1]
        elif belief["last_seen"].get(names[0]) == names[1]:
            del belief["last_seen"][names[0]]
    elif name == "state":
        belief["flags"][names[0]] = names[1]


def forbidden_by(manual: Manual, action: str, goal: GoalSpec) -> str | None:
    """The id of the rule whose forbidden pattern the action matches under this goal."""
    matched = match_action(manual, action)
    if matched is None:
        return None
    rule, bindings = matched
    for pattern in manual.forbidden:
        if pattern.action != rule.name or goal["type"] not in pattern.goal_types:
            continue
        kinds = {p: goal["object"] if k == "$object" else k for p, k in pattern.where.items()}
        if goal["destination"] in kinds.values():
            continue
        if all(kind_of(bindings.get(p, "")) == kind for p, kind in kinds.items()):
            return pattern.id
    return None
