"""Reading a YAML file of the user's so that every mistake can be pointed at.

PyYAML forgets where a value stood once it is built, so the document is kept as nodes long
enough to find the line of whatever the schema refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from rpms.rules.predicates import parse_predicate
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_yaml

Tier = TypeVar("Tier", bound=BaseModel)
Built = TypeVar("Built")


def load_tier(file: Path, model: type[Tier]) -> Tier:
    """Validate one tier file; the first mistake is reported as ``file:line: rule: what``."""
    return validate(file, *read_yaml(file), model)


def validate(file: Path, node: yaml.Node | None, data: object, model: type[Tier]) -> Tier:
    """The same for a document that was read already; ``node`` knows where everything stands."""
    tier = checked(file, node, data, model.model_validate)
    _check_predicates(file, node, data)
    return tier


def checked(
    file: Path, node: yaml.Node | None, data: object, build: Callable[[object], Built]
) -> Built:
    """What ``build`` makes of a document; its first mistake is told with its line."""
    _refuse_repeated_keys(file, node)
    try:
        return build(data)
    except ValidationError as error:
        # A mistyped key is refused twice, as missing and as unknown; the second shows the typo.
        mistakes = error.errors()
        typos = [mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"]
        first = (typos or mistakes)[0]
        what = first["msg"].removeprefix("Value error, ")
        place = [part for part in first["loc"] if isinstance(part, str | int)]
        where = f"{file}:{line_of(node, place)}: {_rule_id(data, place)}"
        named = ".".join(map(str, place[:-1] if typos else place))
        raise RpmsError(f"{where}{named}{': ' if named else ''}{what}") from error


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
    found = ""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        if isinstance(data, dict) and isinstance(data.get("id"), str):
            found = f"{data['id']}: "
    return found


def _check_predicates(file: Path, node: yaml.Node | None, data: object) -> None:
    """Preconditions, effects and conditions must at least read as predicates."""
    if not isinstance(data, dict):
        return
    for where, path, text in _predicates_of(data):
        try:
            parse_predicate(text)
        except ValueError as error:
            raise RpmsError(f"{file}:{line_of(node, path)}: {where}: {error}") from error


def _predicates_of(data: dict[str, Any]) -> Iterator[tuple[str, list[str | int], str]]:
    """Every predicate of a tier, with what it belongs to and the way there."""
    for section, keys in (("actions", ("preconditions", "effects")), ("situations", ("when",))):
        for index, rule in enumerate(data.get(section) or []):
            for key in keys:
                for position, text in enumerate(rule.get(key) or []):
                    yield f"{rule['id']}: {key}", [section, index, key, position], text
    for section in ("predicates", "terms"):
        for name, choices in (data.get(section) or {}).items():
            for index, choice in enumerate(choices):
                for position, text in enumerate(choice):
                    yield f"{section}: {name}", [section, name, index, position], text
