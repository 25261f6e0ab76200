"""The manual's tables as this world's own code reads them: kinds of things, procedures, names.

Heaters, coolers and procedures are written once, in the YAML of the rule manual. The rules reason
over it; the belief and the sub-goals need only a few of its tables, as plain data.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "rules" / "scienceworld"
# As safe, and ten times as fast, where PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def _tier(name: str) -> dict[str, Any]:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=_LOADER)
    return data


@cache
def kinds(*names: str) -> frozenset[str]:
    """The kinds of things under some affordances or categories of the manual."""
    listed = {**_tier("domain")["categories"], **_tier("environment")["affordances"]}
    return frozenset(kind for name in names for kind in listed[name])


@cache
def renamed() -> dict[str, str]:
    """What a substance is called by nature, by the name it goes by: ``ice``, ``solid water``."""
    return dict(_tier("environment")["renamed"])


def steps_of(verb: str) -> list[dict[str, Any]]:
    """The steps of a kind of task, as written; lists within the list stand for their items."""
    return list(_flat(_tier("domain")["steps"][verb]))


def _flat(steps: list[Any]) -> list[dict[str, Any]]:
    nested = (_flat(step) if isinstance(step, list) else [step] for step in steps)
    return [step for part in nested for step in part]
