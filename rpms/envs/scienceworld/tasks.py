"""The task lists: the variations of train, dev and test, and the sentence of each.

They are data files beside this one, so listing tasks starts no JVM. The sentences were recorded
from the simulator (tools/record_scienceworld.py), which repeats them at the start of each episode.
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


class TaskVariations(NamedTuple):
    """One of the benchmark's tasks, with the variations that we run of each split."""

    family: str
    train: range
    dev: range
    test: range
    variations: int

    def split(self, name: str) -> range:
        parts: dict[str, range] = {"train": self.train, "dev": self.dev, "test": self.test}
        whole, _, mini = name.partition("_")
        return parts[whole][: _data()[name]] if mini else parts[whole]


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((FOLDER / "tasks.yaml").read_text(encoding="utf-8"))
    return data


@cache
def catalogue() -> dict[str, TaskVariations]:
    """The 26 tasks by name, in the order of the benchmark."""
    test_episodes = _data()["test_episodes"]
    tasks = {}
    for name, row in _data()["tasks"].items():
        dev, test = row["train"], row["train"] + row["dev"]
        tasks[name] = TaskVariations(
            family=row["family"],
            train=range(dev),
            dev=range(dev, test),
            test=range(test, test + min(test_episodes, row["test"])),
            variations=test + row["test"],
        )
    return tasks


def simplifications() -> list[str]:
    listed: list[str] = _data()["simplifications"]
    return listed


def command_verbs() -> list[str]:
    # Recorded from the simulator, so that no JVM starts.
    return sorted({command.split()[0] for command in _data()["commands"]})


@cache
def _sentences() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(SENTENCES.read_text(encoding="utf-8"))
    return recorded


def description(name: str, variation: int) -> str:
    recorded = _sentences()[name]
    row = recorded["rows"][recorded["variations"][variation]]
    sentence: str = recorded["sentence"].format(*row)
    return sentence


def sentences() -> dict[str, str]:
    """A description of every task of the benchmark; empty for those that we leave out."""
    described = {name: description(name, 0) for name in catalogue()}
    return {**described, **dict.fromkeys(_data()["not_played"], "")}


def list_tasks(split: str, count: int | None = None) -> list[Task]:
    """A split's episodes: task by task, each in the order of its variations."""
    if split not in SPLITS:
        splits = ", ".join(SPLITS)
        raise RpmsError(f"unknown ScienceWorld split '{split}'; known splits: {splits}")
    pairs = (
        (name, variation) for name, task in catalogue().items() for variation in task.split(split)
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
    """The task and the variation of a source such as ``boil/21``.

    The simulator accepts any number and fails later, so this function checks the range.
    """
    name, _, number = source.rpartition("/")
    task = catalogue().get(name)
    if task is None or not number.isdecimal():
        raise RpmsError(
            f"'{source}' names no ScienceWorld task; it has to look like 'boil/21', with one of "
            f"these tasks: {', '.join(catalogue())}"
        )
    if int(number) >= task.variations:
        raise RpmsError(
            f"ScienceWorld task '{name}' has variations 0 to {task.variations - 1}; there is "
            f"no variation {number}"
        )
    return name, int(number)
