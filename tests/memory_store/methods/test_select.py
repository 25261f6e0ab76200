"""What is printed of the memories that filter and arbiter left: nothing twice."""

from __future__ import annotations

from typing import Any

from rpms.memory_store.methods.rpms import merged
from rpms.vocabulary.recall import Recall, new_advice, new_recall

GO, TAKE, HEAT = "go to desk 1", "take mug 1 from desk 1", "heat mug 1 with microwave 1"


def success(name: str, *steps: str, score: float = 1.0, **more: Any) -> Recall:
    entry = {"id": name, "type": "success", "solves": False, **more}
    return new_recall(entry, score, 1, new_advice([*steps]))


def lesson(name: str, action: str, *violated: str, needs: tuple[str, ...] = ()) -> Recall:
    entry = {"id": name, "type": "failure", "failed_action": action, "violated": [*violated]}
    return new_recall(entry, 1.0, 1, new_advice([action], needs=[*needs]))


def fatal(name: str, action: str, score: float = 2.0) -> Recall:
    entry = {"id": name, "type": "critical_failure", "failed_action": action,
             "retrieval_weight": 2.0}  # fmt: skip
    return new_recall(entry, score, 1, new_advice([action]))


def outcomes(recalls: list[Recall]) -> dict[str, str]:
    return {r["entry"]["id"]: r["dropped_by"] for r in recalls}


def test_of_ways_to_one_end_the_shortest_is_told() -> None:
    told = [
        success("long", GO, TAKE, GO, HEAT),
        success("more", GO, "open desk 1", TAKE, HEAT),
        success("short", GO, TAKE, HEAT),
        success("begins", GO, TAKE),
        success("same", GO, TAKE, HEAT),
        success("other end", GO, TAKE, "look"),
        success("other order", TAKE, GO, "inventory", HEAT),
    ]
    judged = {r["entry"]["id"]: r for r in merged(told)}
    assert {name: r["reason"] for name, r in judged.items()} == {
        "long": "is short with steps repeated",
        "more": "",  # a step of its own may be needed
        "short": "",
        "begins": "is the beginning of long",
        "same": "says the same as short",
        "other end": "",
        "other order": "",
    }
    assert judged["short"]["count"] == 2
    assert all(r["dropped_by"] == ("duplicate" if r["reason"] else "") for r in judged.values())


def test_a_memory_without_a_printed_step_upsets_nothing() -> None:
    """A person may put back what could not be said here."""
    told = [success("empty"), success("way", GO, HEAT), lesson("mute", HEAT), fatal("odd", HEAT)]
    told[2]["advice"]["printed"] = told[3]["advice"]["printed"] = []
    assert outcomes(merged(told)) == dict.fromkeys(("empty", "way", "mute", "odd"), "")


def test_a_lesson_adds_nothing_to_one_that_says_more_of_the_same_action() -> None:
    recalls = [
        lesson("part", "open door 1", needs=("a key",)),
        lesson("whole", "open door 1", needs=("you at door 1", "a key")),
        lesson("other action", "close door 1", needs=("a key",)),
        lesson("unexplained", "open door 1"),
    ]
    assert outcomes(merged(recalls)) == {
        "part": "duplicate", "whole": "", "other action": "", "unexplained": "",
    }  # fmt: skip
