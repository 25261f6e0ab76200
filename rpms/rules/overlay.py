"""Rule files of the user's own, laid over the manual that is shipped, or put in its place.

A folder may hold any of ``universal.yaml``, ``domain.yaml`` and ``environment.yaml``, with only the
sections that change: a rule takes the place of the one with its id, a new one comes last, and a
table is changed key by key. A file that says ``replaces: true`` takes the place of the whole tier.
Any other YAML file there is a tier of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from rpms.rules.loader import line_of, validate
from rpms.rules.manual import SITUATION, TIERS, Manual
from rpms.rules.schema import DomainTier, EnvironmentTier, ExtraTier, UniversalTier
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_folder, read_yaml

Tier = TypeVar("Tier", bound=BaseModel)

# Sections whose items are known by their ids.
BY_ID = {"rules", "likely_places", "here", "actions", "forbidden", "situations"}
# What a whole tier must have and a change of it need not.
_REQUIRED: Mapping[type[BaseModel], Mapping[str, Any]] = {
    UniversalTier: {"tier": "universal", "rules": []},
    DomainTier: {"tier": "domain", "procedures": {}, "rules": []},
    EnvironmentTier: {"tier": "environment", "actions": []},
}


def rule_files(folder: Path) -> list[Path]:
    """The rule files of a folder, by name; a folder without any is a mistake."""
    files = sorted(folder.glob("*.yaml")) if is_folder(folder) else []
    if not files:
        what = "holds no rule files" if is_folder(folder) else "is no folder"
        raise RpmsError(
            f"rules: {folder} {what}; give a folder with any of "
            f"{', '.join(f'{name}.yaml' for name in TIERS)}, or tiers of your own"
        )
    return files


def overlay(manual: Manual, folder: Path) -> Manual:
    """The manual with a folder laid over it; a mistake is told as ``file:line: rule: what``."""
    files = {file.stem: file for file in rule_files(folder)}
    extra = [(files[name], _extra(files[name])) for name in files if name not in TIERS]
    return Manual(
        _laid_over(manual.universal, files.get("universal")),
        _laid_over(manual.domain, files.get("domain")),
        _laid_over(manual.environment, files.get("environment")),
        extra={tier.tier: tier.rules for _, tier in extra},
        order=_ordered(extra),
    )


def _laid_over(shipped: Tier, file: Path | None) -> Tier:
    if file is None:
        return shipped
    node, data = read_yaml(file)
    if not isinstance(data, dict):
        raise RpmsError(f"{file}:1: no sections; write for example 'rules:' and a list below it")
    replaces = data.pop("replaces", False)
    if not isinstance(replaces, bool):
        line = line_of(node, ["replaces"])
        raise RpmsError(f"{file}:{line}: replaces: should be true or false")
    model = type(shipped)
    if replaces:
        return validate(file, node, {"tier": file.stem, **data}, model)
    return merged(shipped, validate(file, node, {**_REQUIRED[model], **data}, model))


def merged(shipped: Tier, over: Tier) -> Tier:
    """A tier, or a part of one, with everything that the other one says."""
    changes: dict[str, Any] = {}
    for name in over.model_fields_set:
        old, new = getattr(shipped, name), getattr(over, name)
        if name in BY_ID:
            changes[name] = list(_by_id(old, new))
        elif isinstance(old, dict):
            changes[name] = {**old, **new}
        elif isinstance(old, BaseModel):
            changes[name] = merged(old, new)
        else:
            changes[name] = new
    return shipped.model_copy(update=changes)


def _by_id(old: Sequence[Any], new: Sequence[Any]) -> Iterator[Any]:
    """Each new one in the place of the old one with its id, or at the end.

    Several forbidden patterns may have one id, that of their rule: they are replaced together.
    """
    left: dict[str, list[Any]] = {}
    for rule in new:
        left.setdefault(rule.id, []).append(rule)
    for rule in old:
        if rule.id not in left:
            yield rule
        elif left[rule.id]:
            yield left[rule.id].pop(0)
    yield from (rule for rules in left.values() for rule in rules)


def _extra(file: Path) -> ExtraTier:
    node, data = read_yaml(file)
    tier = validate(file, node, data, ExtraTier)
    if tier.tier in (*TIERS, SITUATION):
        where = f"its file is {tier.tier}.yaml" if tier.tier in TIERS else "choose another name"
        line = line_of(node, ["tier"])
        raise RpmsError(f"{file}:{line}: the tier '{tier.tier}' is there already; {where}")
    return tier


def _ordered(extra: Sequence[tuple[Path, ExtraTier]]) -> list[str]:
    """The names of all tiers: those of the user's own where ``after`` says, else at the end."""
    tiers = [tier for _, tier in extra]

    def with_followers(name: str) -> Iterator[str]:
        yield name
        for tier in tiers:
            if tier.after == name:
                yield from with_followers(tier.tier)

    first = [*TIERS, *(tier.tier for tier in tiers if not tier.after)]
    order = [name for one in first for name in with_followers(one)]
    for file, tier in extra:
        node, _ = read_yaml(file)
        if order.count(tier.tier) > 1:
            line = line_of(node, ["tier"])
            raise RpmsError(f"{file}:{line}: another file here is the tier '{tier.tier}' too")
        if tier.tier not in order:
            line = line_of(node, ["after"])
            raise RpmsError(
                f"{file}:{line}: after: no tier '{tier.after}' before it; "
                f"the others are {', '.join(order)}"
            )
    return order
