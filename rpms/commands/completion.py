"""What the shell offers after an option: names, with as little loaded as they need.

A key press must not wait for LangGraph: names that stand in our data files are read from those,
and a world is only loaded for its own lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

import rpms
from rpms.vocabulary.context import CONDITIONS, declarations

PACKAGE = Path(rpms.__file__).parent
MODELS = ("sim", "random", "first", "last", "local:smollm2")
Offer = Callable[[typer.Context, str], list[str]]


def one_of(*names: str) -> Offer:
    """Some fixed names."""
    return lambda ctx, incomplete: list(names)


def condition(ctx: typer.Context, incomplete: str) -> list[str]:
    """One condition; what was typed in small letters stays so."""
    size = len(incomplete)
    free = [letter for letter, toggles in CONDITIONS.items() if toggles["guard"] == "off"]
    guards = [guard for guard in declarations()["guard"].choices if guard != "off"]
    return [
        incomplete + name[size:]
        for name in (*CONDITIONS, *(f"{letter}+{guard}" for letter in free for guard in guards))
        if name.lower().startswith(incomplete.lower())
    ]


def conditions(ctx: typer.Context, incomplete: str) -> list[str]:
    """The last of several by comma."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in condition(ctx, last)]


def worlds(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ours and the installed ones."""
    from rpms.envs import environment_names

    return environment_names()


def splits(ctx: typer.Context, incomplete: str) -> list[str]:
    """The task lists of the world that was named before, or else of the first."""
    return list(_world(ctx).splits())


def goal_types(ctx: typer.Context, incomplete: str) -> list[str]:
    """The goal types of that world, the last of several by comma."""
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _world(ctx).goal_types()]


def models(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ours, those to be pulled, and those whose price is known."""
    local = [f"local:{name}" for name in _data("models/weights.yaml")]
    return [*MODELS, *local, *_data("models/prices.yaml")["models"]]


def pullable(ctx: typer.Context, incomplete: str) -> list[str]:
    """Local models whose weights are fetched."""
    return list(_data("models/weights.yaml"))


def presets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Our sweeps."""
    return list(_data("evals/presets.yaml"))


def protocols(ctx: typer.Context, incomplete: str) -> list[str]:
    """Our protocols."""
    return list(_data("evals/protocols.yaml"))


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Run folders at this point of the path, or one below it."""
    typed = Path(incomplete)
    above, begin = (typed, "") if incomplete.endswith("/") or not incomplete else (
        typed.parent, typed.name)  # fmt: skip
    found: Iterable[Path] = (
        file.parent
        for pattern in (f"{begin}*/manifest.json", f"{begin}*/*/manifest.json")
        for file in above.glob(pattern)
    )
    return sorted(map(str, found))


def _world(ctx: typer.Context) -> Any:
    from rpms.envs import get_environment
    from rpms.envs.registry import FIRST_WORLD

    return get_environment(ctx.params.get("env") or FIRST_WORLD)


def _data(file: str) -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = yaml.safe_load((PACKAGE / file).read_text(encoding="utf-8"))
    return found
