"""A manual without some of its rules or tiers, for ablations.

A rule that is left out is left out of everything: it is not printed, nothing is checked by it,
forbidden by it or ranked by it. Of an action the form stays, because replies and memories could not
be read without it; what it needs and does is then unknown. What a tier leaves behind is what the
stages need to run at all: the names of sub-goals and kinds of things.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TypeVar

from rpms.rules.manual import TIERS, Manual
from rpms.rules.schema import ActionRule, DomainTier, EnvironmentTier, Named, UniversalTier
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import nearest

NEAREST = 3
"""How many names come with one that does not exist."""


T = TypeVar("T", bound=Named)


def names_in(text: str) -> list[str]:
    """The ids and tiers of a list by comma, each once, in an order that does not matter."""
    return sorted({name.strip() for name in text.split(",")} - {""})


def leave_out(manual: Manual, names: Collection[str]) -> Manual:
    """The manual without these rules and tiers; a name that it does not have is refused."""
    by_tier = ids_of(manual)
    patterns = {pattern.id for pattern in manual.forbidden}
    known = [*by_tier, *(rule for rules in by_tier.values() for rule in rules), *sorted(patterns)]
    for name in names:
        if name not in known:
            numbered = {f"tier {number}": tier for number, tier in enumerate(TIERS, start=1)}
            near = [numbered.get(word, word) for word in nearest(name, [*known, *numbered])]
            raise RpmsError(
                f"without_rules: the manual has no rule or tier '{name}'; the nearest names are "
                f"{', '.join([*dict.fromkeys(near)][:NEAREST])}"
            )
    gone = frozenset(names).union(*(by_tier[name] for name in names if name in by_tier))

    def remaining(rules: Collection[T]) -> list[T]:
        return [rule for rule in rules if rule.id not in gone]

    domain, env = manual.domain, manual.environment
    served = "domain" not in gone
    disambiguation = env.disambiguation
    if disambiguation.rule in gone:
        disambiguation = disambiguation.model_copy(update={"rule": ""})
    return Manual(
        manual.universal.model_copy(update={"rules": remaining(manual.universal.rules)}),
        domain.model_copy(
            update={
                "rules": remaining(domain.rules),
                "likely_places": remaining(domain.likely_places),
                "here": remaining(domain.here),
                "urgent": domain.urgent if served else [],
                "applicable": domain.applicable if served else {},
            }
        ),
        env.model_copy(
            update={
                "rules": remaining(env.rules),
                "situations": remaining(env.situations),
                "forbidden": remaining(env.forbidden) if "environment" not in gone else [],
                "disambiguation": disambiguation,
            }
        ),
        extra={name: remaining(rules) for name, rules in manual.extra.items()},
        without=manual.without | gone,
        # A tier that is left out takes its own lines along, and adds none to another tier.
        needed={name: manual.needed_for(name) for name in domain.procedures},
    )


@lru_cache(maxsize=64)
def without_knowledge(manual: Manual) -> Manual:
    """The commands and nothing about them: what the system prompt shows under every condition.

    How predicates are worded stays, so that memory can speak of what it noticed by itself.
    """
    forms = [
        ActionRule(id=rule.id, name=rule.name, syntax=rule.syntax, preconditions=[], effects=[])
        for rule in manual.actions
    ]
    return Manual(
        UniversalTier(tier="universal", rules=[]),
        DomainTier(tier="domain", procedures={}, rules=[]),
        EnvironmentTier(tier="environment", actions=forms, wording=manual.environment.wording),
        without=frozenset((*TIERS, *(rule.id for rule in forms))),
    )


def ids_of(manual: Manual) -> dict[str, list[str]]:
    """The ids of each tier. A forbidden pattern has the id of the rule it belongs to."""
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
