"""A manual without some of its rules or tiers, for ablations.

A rule that is left out has no effect: it is not printed, and it does not check, forbid or rank
anything. The syntax of an action stays, because replies and memories could not be parsed without
it; its needs and effects are unknown. Of a tier that is left out, the names of sub-goals and kinds
of things stay, because the stages need them to run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from rpms.rules.manual import TIERS, Manual
from rpms.rules.schema import ActionRule, DomainTier, EnvironmentTier, ManualEntry, UniversalTier
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import nearest

NEAREST = 3
"""How many names are suggested for an unknown one."""


T = TypeVar("T", bound=ManualEntry)


def names_in(text: str) -> list[str]:
    """The ids and tiers of a comma-separated list, sorted and unique."""
    return sorted({name.strip() for name in text.split(",")} - {""})


def leave_out(manual: Manual, names: Collection[str]) -> Manual:
    """The manual without these rules and tiers; an unknown name is an error."""
    by_tier = ids_of(manual)
    patterns = {pattern.id for pattern in manual.forbidden}
    valid = [
        *by_tier,
        *(rule for rules in by_tier.values() for rule in rules),
        *sorted(patterns),
    ]
    for name in names:
        if name not in valid:
            numbered = {f"tier {number}": tier for number, tier in enumerate(TIERS, start=1)}
            near = [numbered.get(word, word) for word in nearest(name, [*valid, *numbered])]
            raise RpmsError(
                f"without_rules: the manual has no rule or tier '{name}'; the nearest names are "
                f"{', '.join([*dict.fromkeys(near)][:NEAREST])}"
            )
    removed = frozenset(names).union(*(by_tier[name] for name in names if name in by_tier))

    def remaining(rules: Collection[T]) -> list[T]:
        return [rule for rule in rules if rule.id not in removed]

    domain, env = manual.domain, manual.environment
    has_domain = "domain" not in removed
    disambiguation = env.disambiguation
    if disambiguation.rule in removed:
        disambiguation = disambiguation.model_copy(update={"rule": ""})
    return Manual(
        manual.universal.model_copy(update={"rules": remaining(manual.universal.rules)}),
        domain.model_copy(
            update={
                "rules": remaining(domain.rules),
                "likely_places": remaining(domain.likely_places),
                "here": remaining(domain.here),
                "urgent": domain.urgent if has_domain else [],
                "applicable": domain.applicable if has_domain else {},
            }
        ),
        env.model_copy(
            update={
                "rules": remaining(env.rules),
                "situations": remaining(env.situations),
                "forbidden": remaining(env.forbidden) if "environment" not in removed else [],
                "disambiguation": disambiguation,
            }
        ),
        extra={name: remaining(rules) for name, rules in manual.extra.items()},
        without=manual.without | removed,
        # Not derived from what is left: without Tier 2 that would be every action.
        needed={name: manual.needed_for(name) for name in domain.procedures},
    )


@lru_cache(maxsize=64)
def without_knowledge(manual: Manual) -> Manual:
    """The syntax of the commands alone, which the system prompt shows under every condition.

    The wording of predicates stays, so that memories can be printed.
    """
    bare = with_results(manual, {})
    return Manual(
        bare.universal,
        bare.domain,
        bare.environment,
        without=bare.without | {rule.id for rule in bare.actions},
    )


def with_results(manual: Manual, results: Mapping[str, Sequence[str]]) -> Manual:
    """The syntax of the commands, with the environment's own ``results`` by template."""
    forms = [
        ActionRule(
            id=rule.id, name=rule.name, syntax=rule.syntax, effects=[*results.get(rule.syntax, ())]
        )
        for rule in manual.actions
    ]
    return Manual(
        UniversalTier(),
        DomainTier(procedures={}),
        EnvironmentTier(actions=forms, wording=manual.environment.wording),
        without=frozenset(TIERS),
    )


def ids_of(manual: Manual) -> dict[str, list[str]]:
    """The ids of each tier. A forbidden pattern has the id of its rule."""
    more = {
        "domain": [*manual.domain.likely_places, *manual.domain.here],
        "environment": [
            *manual.environment.actions,
            *manual.environment.policy,
            *manual.environment.situations,
        ],
    }
    return {
        name: [rule.id for rule in (*more.get(name, ()), *rules)] for name, rules in manual.tiers
    }
