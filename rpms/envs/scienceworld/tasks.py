"""The task lists: which variations make up train, dev and test, and what each one asks.

All of it is data kept beside this file, so that listing tasks starts no JVM. The sentences were
recorded from the simulator (tools/record_scienceworld.py), which also says them at the start of
each episode.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rpms.envs.base import Task
from rpms.vocabulary.errors import RpmsError

SPLITS = ("test", "dev", "train", "dev_mini", "train_mini")
FOLDER = Path(__file__).parent
SENTENCES = FOLDER / "descriptions.json"


class Science(NamedTuple):
    """One of the benchmark's tasks, with the variations of each split that we play."""

    family: str
    train: range
    dev: range
    test: range
    variations: int

    def split(self, name: str) -> range:
        """The variations of one split."""
        parts: dict[str, range] = {"train": self.train, "dev": self.dev, "test": self.test}
        whole, _, mini = name.partition("_")
        return parts[whole][: _data()[name]] if mini else parts[whole]


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((FOLDER / "tasks.yaml").read_text(encoding="utf-8"))
    return data


@cache
def catalogue() -> dict[str, Science]:
    """The 26 tasks by name, in the order of the benchmark."""
    played = _data()["test_episodes"]
    sciences = {}
    for name, row in _data()["tasks"].items():
        dev, test = row["train"], row["train"] + row["dev"]
        sciences[name] = Science(
            family=row["family"],
            train=range(dev),
            dev=range(dev, test),
            test=range(test, test + min(played, row["test"])),
            variations=test + row["test"],
        )
    return sciences


def simplifications() -> list[str]:
    """The simplifications that every task is played with."""
    listed: list[str] = _data()["simplifications"]
    return listed


def command_verbs() -> list[str]:
    """First words of the simulator's commands."""
    return sorted({command.split()[0] for command in _data()["commands"]})


@cache
def _sentences() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(SENTENCES.read_text(encoding="utf-8"))
    return recorded


def description(name: str, variation: int) -> str:
    """What the simulator says the task is."""
    recorded = _sentences()[name]
    row = recorded["rows"][recorded["variations"][variation]]
    sentence: str = recorded["sentence"].format(*row)
    return sentence


def sentences() -> dict[str, str]:
    """A description of every task of the benchmark; empty for those that are not played."""
    played = {name: description(name, 0) for name in catalogue()}
    return {**played, **dict.fromkeys(_data()["not_played"], "")}


def list_tasks(split: str, count: int | None = None) -> list[Task]:
    """A split's episodes: task by task, each in the order of its variations."""
    if split not in SPLITS:
        known = ", ".join(SPLITS)
        raise RpmsError(f"unknown ScienceWorld split '{split}'; known splits: {known}")
    pairs = (
        (name, variation)
        for name, science in catalogue().items()
        for variation in science.split(split)
    )
    return [
        Task(
            env="scienceworld",
            split=split,
            index=index,
            id=f"{name}/{variation}",
            goal=description(name, variation),
            source=f"{name}/{variation}",
        )
        for index, (name, variation) in enumerate(islice(pairs, count))
    ]


def read_source(source: str) -> tuple[str, int]:
    """The task and variation that ``boil/21`` names.

    The simulator itself accepts any number and fails later, so the range is checked here.
    """
    name, _, number = source.rpartition("/")
    science = catalogue().get(name)
    if science is None or not number.isdecimal():
        raise RpmsError(
            f"'{source}' names no ScienceWorld task; it has to look like 'boil/21', with one of "
            f"these tasks: {', '.join(catalogue())}"
        )
    if int(number) >= science.variations:
        raise RpmsError(
            f"ScienceWorld task '{name}' has variations 0 to {science.variations - 1}; there is "
            f"no variation {number}"
        )
    return name, int(number)
