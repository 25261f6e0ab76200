"""The usual ways to play, by name; they are data (``protocols.yaml``), each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field

from rpms.nodes.context import RunContext, refuse_unknown
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import Strict, offer

FILE = Path(__file__).with_name("protocols.yaml")


class NamedProtocol(Strict, BaseModel):
    """How somebody plays, and what of it we do not re-make."""

    about: str
    source: str
    differs: str
    env: str = ""
    split: str = ""
    tasks: int = Field(default=0, ge=0)
    trials: int = Field(default=1, ge=1)
    repeats: int = Field(default=1, ge=1)
    set: dict[str, Any] = {}


@dataclass(frozen=True)
class Applied:
    """A protocol over the settings of a run.

    Attributes:
        context: the settings of the run with those of the protocol.
        split: the list of tasks it is played on; empty where it names none.
        tasks: how many tasks that list has; 0 where it does not say.
        trials: how often each task may be tried, with what was learned before.
        repeats: how often each task is played independently.
    """

    context: RunContext
    split: str
    tasks: int
    trials: int
    repeats: int


@cache
def load_protocols() -> dict[str, NamedProtocol]:
    """All protocols of the data file, checked."""
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    found = {str(name): NamedProtocol.model_validate(one) for name, one in data.items()}
    for one in found.values():
        refuse_unknown(one.set)
    return found


def apply_protocol(name: str, base: RunContext, env: str = "") -> Applied:
    """Play as this protocol does, with the run's other settings.

    Args:
        name: one of ``protocols.yaml``.
        base: the settings of the run; what it changes itself must not contradict the protocol.
        env: the world of the run, to refuse a protocol of another one.
    """
    protocols = load_protocols()
    if name not in protocols:
        raise RpmsError(f"unknown protocol '{name}'; {offer(name, protocols)}")
    one = protocols[name]
    if env and one.env and env != one.env:
        raise RpmsError(f"--protocol {name} is for {one.env}, not for {env}")
    usual = RunContext().plain
    for setting, value in one.set.items():
        given = base.plain[setting]
        if given not in (usual[setting], value):
            raise RpmsError(
                f"--protocol {name} is played with {setting}={value}, not {given}; leave one out"
            )
    return Applied(base.with_(**one.set), one.split, one.tasks, one.trials, one.repeats)
