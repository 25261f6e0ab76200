"""Reads rule files, reports mistakes with their line, and overlays one manual with another.

A custom folder may hold any of ``universal.yaml``, ``domain.yaml`` and ``environment.yaml``, with
only the sections that change: a rule replaces the one with its id, a new one comes last, and a
table is changed key by key. A file with ``replaces: true`` replaces the whole tier. Any other YAML
file in the folder is an additional tier.

PyYAML does not keep the line of a parsed value, so the document is also kept as nodes, to find the
line of a value that the schema rejects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rpms.rules.manual import RULES_FOLDER, SITUATION, TIERS, Manual
from rpms.rules.schema import (
    DomainTier,
    EnvironmentTier,
    ExtraTier,
    Rule,
    UniversalTier,
)
from rpms.vocabulary.categories import CATEGORIES, read_categories
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_folder, read_yaml, stamp_of

Tier = TypeVar("Tier", bound=BaseModel)
Built = TypeVar("Built")

# Sections whose items have ids.
BY_ID = {"rules", "likely_places", "here", "actions", "forbidden", "policy", "situations"}
# Sections that a whole tier requires and an overlay does not.
_REQUIRED: Mapping[str, dict[str, Any]] = {
    "domain": {"procedures": {}},
    "environment": {"actions": []},
}


def read_manual(folder: Path, shared: Path = RULES_FOLDER) -> Manual:
    """Read and validate the manual of a world; errors name the file, the rule id and the line.

    Tiers 2 and 3 are in the world's folder. All worlds share Tier 1; a ``universal.yaml`` in the
    world's folder overlays it, as custom rules do. Rules may be about the categories of the
    environment (``categories.yaml`` beside the folder) as well as those of Tier 2. A file that was
    edited is read again.
    """
    files = [shared / "universal.yaml", *(folder / f"{tier}.yaml" for tier in TIERS)]
    files.append(folder.parent / CATEGORIES)
    return _read(folder, shared, tuple(stamp_of(file) for file in files if file.is_file()))


@lru_cache(maxsize=64)
def _read(folder: Path, shared: Path, _content: tuple[Any, ...]) -> Manual:
    universal = folder / "universal.yaml"
    domain = load_tier(folder / "domain.yaml", DomainTier)
    categories = {**read_categories(folder.parent), **domain.categories}
    return Manual(
        _overlaid(
            load_tier(shared / "universal.yaml", UniversalTier),
            universal if universal.is_file() and folder != shared else None,
        ),
        domain.model_copy(update={"categories": categories}),
        load_tier(folder / "environment.yaml", EnvironmentTier),
    )


def load_tier(file: Path, model: type[Tier]) -> Tier:
    """Validate one tier file; the first mistake is reported as ``file:line: rule: what``."""
    return checked(file, *read_yaml(file), model.model_validate)


def rule_files(folder: Path) -> list[Path]:
    """The rule files of a folder, by name; raises an error if there are none."""
    files = sorted(folder.glob("*.yaml")) if is_folder(folder) else []
    if not files:
        what = "holds no rule files" if is_folder(folder) else "is no folder"
        raise RpmsError(
            f"rules: {folder} {what}; give a folder with any of "
            f"{', '.join(f'{name}.yaml' for name in TIERS)}, or additional tiers"
        )
    return files


def overlay(manual: Manual, folder: Path) -> Manual:
    """Overlay a manual with a folder; a mistake is reported as ``file:line: rule: what``."""
    files = {file.stem: file for file in rule_files(folder)}
    extra: dict[str, list[Rule]] = {}
    for name, file in files.items():
        if name not in TIERS:
            tier = _extra(file, extra)
            extra[tier.tier] = tier.rules
    return Manual(
        _overlaid(manual.universal, files.get("universal")),
        _overlaid(manual.domain, files.get("domain")),
        _overlaid(manual.environment, files.get("environment")),
        extra=extra,
    )


def _overlaid(shipped: Tier, file: Path | None) -> Tier:
    if file is None:
        return shipped
    node, data = read_yaml(file)
    if not isinstance(data, dict):
        raise RpmsError(f"{file}:1: no sections; write for example 'rules:' and a list below it")
    replaces = data.pop("replaces", False)
    if not isinstance(replaces, bool):
        line = line_of(node, ["replaces"])
        raise RpmsError(f"{file}:{line}: replaces: should be true or false")
    whole = data if replaces else {**_REQUIRED.get(file.stem, {}), **data}
    tier = checked(file, node, whole, type(shipped).model_validate)
    return tier if replaces else merged(shipped, tier)


def merged(shipped: Tier, over: Tier) -> Tier:
    """A tier, or a part of one, changed by everything that ``over`` sets."""
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
    """Each new rule replaces the old one with its id, or comes last.

    Several forbidden patterns may have the id of one rule: they are replaced together.
    """
    by_id: dict[str, list[Any]] = {}
    for rule in new:
        by_id.setdefault(rule.id, []).append(rule)
    for rule in old:
        if rule.id not in by_id:
            yield rule
        elif by_id[rule.id]:
            yield by_id[rule.id].pop(0)
    yield from (rule for rules in by_id.values() for rule in rules)


def _extra(file: Path, others: Collection[str]) -> ExtraTier:
    node, data = read_yaml(file)
    tier = checked(file, node, data, ExtraTier.model_validate)
    if tier.tier in (*TIERS, SITUATION, *others):
        where = f"its file is {tier.tier}.yaml" if tier.tier in TIERS else "choose another name"
        line = line_of(node, ["tier"])
        raise RpmsError(f"{file}:{line}: the tier '{tier.tier}' is there already; {where}")
    return tier


def checked(
    file: Path, node: yaml.Node | None, data: object, build: Callable[[object], Built]
) -> Built:
    """Build an object from a document; the first mistake is reported with its line."""
    _refuse_repeated_keys(file, node)
    try:
        return build(data)
    except ValidationError as error:
        # A mistyped key is reported twice, as missing and as unknown; the second shows the typo.
        mistakes = error.errors()
        typos = [mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"]
        first = (typos or mistakes)[0]
        what = first["msg"].removeprefix("Value error, ")
        place = [part for part in first["loc"] if isinstance(part, str | int)]
        where = f"{file}:{line_of(node, place)}: {_rule_id(data, place)}"
        path = ".".join(map(str, place[:-1] if typos else place))
        raise RpmsError(f"{where}{path}{': ' if path else ''}{what}") from error


def _refuse_repeated_keys(file: Path, node: yaml.Node | None) -> None:
    """YAML keeps the last of two equal keys, so a forgotten dash would swallow a whole rule."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(file, item)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                raise RpmsError(f"{file}:{line}: a key must be a word")
            if key.value in seen:
                line = key.start_mark.line + 1
                raise RpmsError(f"{file}:{line}: the key '{key.value}' is given a second time")
            seen.add(key.value)
            _refuse_repeated_keys(file, value)


def line_of(node: yaml.Node | None, path: list[str | int]) -> int:
    """The line of the deepest part of ``path`` that exists in the document."""
    line = 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == part:
                    line, node = key.start_mark.line + 1, value
                    break
            else:
                return line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            if part >= len(node.value):
                return line
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def _rule_id(data: object, path: list[str | int]) -> str:
    """``U-SEARCH-001: `` when the path leads into a rule that has an id."""
    rule = ""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        if isinstance(data, dict) and isinstance(data.get("id"), str):
            rule = f"{data['id']}: "
    return rule
