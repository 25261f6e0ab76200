"""A manual corrected by what was played with it.

An accepted action that a rule called impossible is a counterexample: the literal goes, or the table
behind it gets another kind. A refusal that a rule called possible wants one condition more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rpms.rule_learning.induction import cover, survivors
from rpms.rule_learning.templates import Literal, doubting_world
from rpms.rule_learning.transitions import Evidence, Experience, Snapshot, Transition
from rpms.rules.audit import text_of
from rpms.rules.manual import Manual
from rpms.rules.predicates import PREDICATES, evaluate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.semantics import can_work, match_action
from rpms.vocabulary.belief import Belief, kind_of

# A refusal may have a reason that is no rule's fault; as many make a case.
CASE = 2


def revise(manual: Manual, played: Sequence[Transition]) -> tuple[dict[str, Any], list[str]]:
    """Tier 3 as plain data after all corrections, and what was corrected, in words."""
    tier = manual.environment.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    tier = {"tier": "environment", **tier, "replaces": True}
    corrections: list[str] = []
    for one in played:
        if one.worked and (matched := match_action(manual, one.action)):
            corrections += _repair(manual, tier, matched[0], matched[1], one)
    corrections += _tighten(manual, tier, played)
    return tier, list(dict.fromkeys(corrections))


def _repair(
    manual: Manual,
    tier: dict[str, Any],
    rule: ActionRule,
    names: Mapping[str, str],
    one: Transition,
) -> Iterable[str]:
    """Whatever stood against an action that worked gives way."""
    written = next(action for action in tier["actions"] if action["id"] == rule.id)
    for text in list(written["preconditions"]):
        predicate = parse_predicate(text)
        if evaluate(predicate, one.before, manual.world, names) is not False:
            continue
        kinds = [kind_of(names.get(name, name)) for name in predicate.arguments]
        if predicate.positive and predicate.name in manual.world.affordances:
            if _list(tier, "affordances", predicate.name, "ruled_out", kinds[0]):
                yield f"{rule.id}: {kinds[0]} is {predicate.name}: '{one.action}' worked"
        elif predicate.positive and predicate.name == "can_contain":
            if _list(tier, "contains", kinds[0], "cannot_contain", kinds[1]):
                yield f"{rule.id}: {kinds[0]} takes {kinds[1]}: '{one.action}' worked"
        elif _undecided(text, one.before, names):
            together = sorted({kind_of(one.before["location"] or ""), *kinds})
            if together not in tier.setdefault("built_together", []):
                tier["built_together"].append(together)
                yield f"{rule.id}: {' and '.join(together)} may share a spot: '{one.action}' worked"
        else:
            written["preconditions"].remove(text)
            written["source"] = "revised"
            yield f"{rule.id}: no longer needs '{text}': '{one.action}' worked"


def _undecided(text: str, belief: Belief, names: Mapping[str, str]) -> bool:
    """Whether only what the manual says of kinds made the literal false."""
    predicate = parse_predicate(text)
    if predicate.name not in PREDICATES:
        return False
    return evaluate(predicate, belief, doubting_world(belief), names) is None


def _list(tier: dict[str, Any], table: str, key: str, opposite: str, kind: str) -> bool:
    """Add a kind to a table, and strike it from the table that denies it; False if it was there."""
    listed = tier.setdefault(table, {}).setdefault(key, [])
    if kind in tier.get(opposite, {}).get(key, []):
        tier[opposite][key].remove(kind)
    if kind in listed:
        return False
    listed.append(kind)
    return True


def _tighten(manual: Manual, tier: dict[str, Any], played: Sequence[Transition]) -> Iterable[str]:
    """One condition more for refusals that a rule called possible."""
    experience = Experience([rule.syntax for rule in manual.actions])
    surprises = Experience([rule.syntax for rule in manual.actions])
    experience.doubts = surprises.doubts = True
    for one in played:
        if one.worked:
            experience.note(one.action, Snapshot(one.before), one.after, True)
        elif can_work(manual, one.action, one.before):
            surprises.note(one.action, Snapshot(one.before), one.after, False)
    for rule, written in zip(manual.actions, tier["actions"], strict=True):
        accepted, refused = experience.evidence[rule.syntax], surprises.evidence[rule.syntax]
        for literal in _reasons(accepted, refused):
            text = text_of(accepted.template.predicate(literal))
            written["preconditions"].append(text)
            written["source"] = "revised"
            yield f"{rule.id}: now needs '{text}': refused where it did not hold"


def _reasons(accepted: Evidence, refused: Evidence) -> list[Literal]:
    """Literals that no accepted use contradicts and that account for the refusals."""
    if not accepted.uses:
        return []
    alive = [one for one in survivors(accepted) if accepted.template.is_general(one)]
    found = cover(refused, alive)
    counts = {one: sum(n for u, n in refused.uses.items() if u.denies(one)) for one in found}
    return [one for one in found if counts[one] >= CASE]
