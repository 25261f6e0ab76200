from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import (
    SPLITS,
    catalogue,
    command_verbs,
    description,
    list_tasks,
    read_source,
    simplifications,
)
from tests.refusal import refused


def test_families_hold_4_3_7_and_12_tasks_and_241_test_episodes() -> None:
    counts = Counter(science.family for science in catalogue().values())
    assert counts == {"F1": 4, "F2": 3, "F3": 7, "F4": 12}
    episodes = Counter(catalogue()[task["id"].split("/")[0]].family for task in list_tasks("test"))
    assert episodes == {"F1": 40, "F2": 30, "F3": 62, "F4": 109}
    assert not [name for name in catalogue() if "power" in name or "conductivity" in name]


@pytest.mark.parametrize(("split", "count"), [("train", 2822), ("dev", 1411), ("test", 241)])
def test_tasks_are_complete_and_in_order(split: str, count: int) -> None:
    tasks = list_tasks(split)
    assert [task["index"] for task in tasks] == list(range(count))
    assert len({task["id"] for task in tasks}) == count
    others = {task["id"] for other in ("train", "dev", "test") if other != split
              for task in list_tasks(other)}  # fmt: skip
    assert others.isdisjoint(task["id"] for task in tasks)
    assert all(task["split"] == split and task["env"] == "scienceworld" for task in tasks)
    assert all(task["goal"].startswith("Your task is to ") for task in tasks)
    assert not any("{" in task["goal"] for task in tasks)
    assert list_tasks(split, 5) == tasks[:5]


@pytest.mark.parametrize(("whole", "each"), [("train", 3), ("dev", 1)])
def test_mini_splits_hold_the_first_variations_of_every_task(whole: str, each: int) -> None:
    mini = list_tasks(f"{whole}_mini")
    assert [task["index"] for task in mini] == list(range(26 * each))
    assert {task["id"] for task in mini} <= {task["id"] for task in list_tasks(whole)}
    assert set(Counter(task["id"].split("/")[0] for task in mini).values()) == {each}


def test_a_task_names_its_variation() -> None:
    first = list_tasks("test", 1)[0]
    assert first["id"] == first["source"] == "boil/21"
    assert read_source("boil/21") == ("boil", 21)
    assert first["goal"].startswith("Your task is to boil lead.")


def test_sentences_tell_the_families_apart() -> None:
    families_of: dict[str, set[str]] = {}
    for split in SPLITS:
        for task in list_tasks(split):
            family = catalogue()[read_source(task["source"])[0]].family
            families_of.setdefault(task["goal"], set()).add(family)
    assert all(len(families) == 1 for families in families_of.values())


def test_an_unknown_split_lists_the_known_ones() -> None:
    with refused("valid_seen", *SPLITS):
        list_tasks("valid_seen")


# Variations beyond the last of a task, and what names none.
@pytest.mark.parametrize(
    "source",
    [
        "boil/30", "boil/999", "identify-life-stages-2/10",
        "", "boil", "boil/", "boil/-1", "boil/x", "cook/1", "power-component/1",
    ],
)  # fmt: skip
def test_other_sources_are_refused(source: str) -> None:
    with refused(*source.rpartition("/")[::2]):
        read_source(source)


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_lists_sentences_and_commands_are_the_simulators_own(simulator: Simulator) -> None:
    """All split borders, and a sentence of each task."""
    server = simulator._server

    def texts(listed: Any) -> list[str]:
        return simulator.call(lambda: [str(item) for item in listed()])

    for name, science in catalogue().items():
        variation = science.dev[-1]
        simulator.load(name, variation, simplifications())
        assert simulator.description() == description(name, variation)
        train, dev, test = (
            [int(number) for number in texts(listed)]
            for listed in (
                server.getVariationsTrain, server.getVariationsDev, server.getVariationsTest
            )
        )  # fmt: skip
        assert (train, dev, test[:10]) == tuple(
            list(science.split(split)) for split in ("train", "dev", "test")
        )
        assert test[-1] + 1 == science.variations
    verbs = {command.split()[0] for command in texts(server.getPossibleActions)}
    # Its list leaves out the electrical commands, which our simplifications switch off.
    assert verbs == set(command_verbs()) - {"connect", "disconnect"}
