from __future__ import annotations

from collections import Counter

import pytest

from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import (
    SPLITS,
    catalogue,
    command_verbs,
    description,
    families,
    family_of,
    list_tasks,
    read_source,
    simplifications,
)
from rpms.vocabulary.errors import RpmsError


def test_the_test_split_has_241_episodes_in_four_families() -> None:
    tasks = list_tasks("test")
    counts = Counter(family_of(task["source"]) for task in tasks)
    assert len(tasks) == 241
    assert counts == {"F1": 40, "F2": 30, "F3": 62, "F4": 109}
    assert list(families()) == sorted(counts)


def test_families_hold_4_3_7_and_12_tasks() -> None:
    counts = Counter(science.family for science in catalogue().values())
    assert counts == {"F1": 4, "F2": 3, "F3": 7, "F4": 12}


def test_electric_tasks_are_left_out() -> None:
    assert not [name for name in catalogue() if "power" in name or "conductivity" in name]


@pytest.mark.parametrize(("split", "count"), [("train", 2822), ("dev", 1411), ("test", 241)])
def test_tasks_are_complete_and_in_order(split: str, count: int) -> None:
    tasks = list_tasks(split)
    assert [task["index"] for task in tasks] == list(range(count))
    assert len({task["id"] for task in tasks}) == count
    assert all(task["split"] == split and task["env"] == "scienceworld" for task in tasks)
    assert all(task["goal"].startswith("Your task is to ") for task in tasks)
    assert not any("{" in task["goal"] for task in tasks)
    assert list_tasks(split, 5) == tasks[:5]


def test_splits_do_not_overlap() -> None:
    ids = [task["id"] for split in ("train", "dev", "test") for task in list_tasks(split)]
    assert len(ids) == len(set(ids))


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
    seen: dict[str, set[str]] = {}
    for split in SPLITS:
        for task in list_tasks(split):
            seen.setdefault(task["goal"], set()).add(family_of(task["source"]))
    assert all(len(found) == 1 for found in seen.values())


def test_an_unknown_split_lists_the_known_ones() -> None:
    with pytest.raises(RpmsError, match="known splits: test, dev, train"):
        list_tasks("valid_seen")


@pytest.mark.parametrize("source", ["boil/30", "boil/999", "identify-life-stages-2/10"])
def test_variations_out_of_range_are_refused(source: str) -> None:
    with pytest.raises(RpmsError, match="there is no variation"):
        read_source(source)


@pytest.mark.parametrize(
    "source", ["", "boil", "boil/", "boil/-1", "boil/x", "cook/1", "power-component/1"]
)
def test_other_sources_are_refused(source: str) -> None:
    with pytest.raises(RpmsError, match="names no ScienceWorld task"):
        read_source(source)


@pytest.mark.engine
def test_commands_are_the_simulators_own(simulator: Simulator) -> None:
    simulator.load("boil", 0, simplifications())
    said = {command.split()[0] for command in simulator.commands()}
    # Its list leaves out the electrical commands, which our simplifications switch off.
    assert said == set(command_verbs()) - {"connect", "disconnect"}


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_lists_and_sentences_are_the_simulators_own(simulator: Simulator) -> None:
    """All split borders, and sentences from each split of each task."""
    played = 0
    for name, science in catalogue().items():
        for variation in (science.train[len(science.train) // 2], science.dev[-1]):
            simulator.load(name, variation, simplifications())
            assert simulator.description() == description(name, variation)
        assert simulator.variations("train") == list(science.train)
        assert simulator.variations("dev") == list(science.dev)
        official = simulator.variations("test")
        assert official[:10] == list(science.test)
        assert official[-1] + 1 == science.variations
        played += len(science.test)
    assert played == 241
