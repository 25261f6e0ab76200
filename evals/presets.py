"""Conditions by letter or by the name of a sweep; the sweeps are data (``presets.yaml``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from rpms.evals.labels import true_label
from rpms.models.opening import CONTROLS
from rpms.nodes.context import CONDITIONS, RunContext
from rpms.vocabulary.errors import RpmsError

FILE = Path(__file__).with_name("presets.yaml")


class PresetCondition(BaseModel):
    """One line of a sweep."""

    model_config = ConfigDict(extra="forbid")

    label: str
    condition: str
    set: dict[str, Any] = {}
    memory_round: int = Field(default=0, ge=0)


class Preset(BaseModel):
    """A named sweep."""

    model_config = ConfigDict(extra="forbid")

    about: str
    conditions: list[PresetCondition]


@cache
def load_presets() -> dict[str, Preset]:
    """All sweeps of the data file, checked."""
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {str(name): Preset.model_validate(preset) for name, preset in data.items()}


def letters(conditions: Sequence[str], base: RunContext) -> dict[str, RunContext]:
    """The conditions by letter, with the run's other settings; the labels tell what departs."""
    found: dict[str, RunContext] = {}
    for letter in conditions:
        if letter not in CONDITIONS:
            raise RpmsError(f"unknown condition '{letter}'; choose from {', '.join(CONDITIONS)}")
        context = base.under(letter)
        found[true_label(context, letter)] = context
    return _with_controls(found)


def preset_contexts(name: str, base: RunContext) -> dict[str, RunContext]:
    """The conditions of a sweep with the run's other settings."""
    presets = load_presets()
    if name not in presets:
        raise RpmsError(f"unknown preset '{name}'; choose from {', '.join(presets)}")
    found: dict[str, RunContext] = {}
    for one in presets[name].conditions:
        context = _context(one, base)
        # What the whole run was given besides is not in the sweep's own label.
        label = true_label(context, one.condition, label=one.label, told=one.set)
        found[label] = context
    return _with_controls(found)


def _with_controls(contexts: dict[str, RunContext]) -> dict[str, RunContext]:
    """Each constrained condition with its control: else nobody could tell what the model adds."""
    found: dict[str, RunContext] = {}
    for label, context in contexts.items():
        found[label] = context
        if context.guard == "constrain" and context.model not in CONTROLS:
            found[f"{label} control (random)"] = context.with_(model="random")
    return found


def _context(one: PresetCondition, base: RunContext) -> RunContext:
    changes = dict(one.set)
    if one.memory_round:
        changes["memory_file"] = str(round_file(base.memory_file, one.memory_round))
    return base.under(one.condition).with_(**changes)


def round_file(memory: str, number: int) -> Path:
    """The snapshot after a round: of a pattern with ``{round}``, or beside ``learn``'s output."""
    if not memory:
        raise RpmsError(
            "the learning curve needs the snapshots of each round: give --memory FILE as written "
            "by 'rpms learn --rounds 3 --out FILE', or a pattern such as 'm.round{round}.jsonl'"
        )
    if "{round}" in memory:
        file = Path(memory.replace("{round}", str(number)))
    else:
        file = Path(memory).with_suffix(f".round{number}.jsonl")
    if not file.is_file():
        raise RpmsError(f"no memory of round {number}: {file} is missing")
    return file
