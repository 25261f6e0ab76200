"""What is printed of the memories that filter and arbiter left: nothing twice, one voice."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.memory_store.methods.method import PrintedRules
from rpms.memory_store.methods.rpms import RpmsMemory, covered, merged, one_voice
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall, new_advice, new_recall

MANUAL = load_manual("alfworld")
PRINTED = PrintedRules(MANUAL, frozenset({"O-ACT-004", "O-ACT-006"}))
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


def schema(kind: str, needs: list[str], effects: list[str]) -> Recall:
    entry = {"id": kind, "type": "schema", "action_type": kind, "preconditions": needs,
             "effects": effects}  # fmt: skip
    return new_recall(entry, 1.0, 1, new_advice([HEAT], needs=needs, then=effects))


def outcomes(recalls: list[Recall]) -> dict[str, str]:
    return {r["entry"]["id"]: r["dropped_by"] for r in recalls}


@pytest.mark.parametrize(
    ("recall", "rule"),
    [
        # The line of the action says all of it, or what it follows from.
        (lesson("a", TAKE, "at(place)"), "O-ACT-004"),
        (lesson("a", TAKE, "at(place)", "hand_empty"), "O-ACT-004"),
        (lesson("a", TAKE, "at(place)", "here(object)"), "O-ACT-004"),
        (schema("heat", ["at(place)"], ["holding(object)"]), "O-ACT-006"),
        # More than the line has; no reason at all; a line that this prompt does not print.
        (lesson("a", TAKE, "at(place)", "closed(place)"), ""),
        (lesson("a", TAKE), ""),
        (lesson("a", "put mug 1 in/on desk 1", "at(place)"), ""),
        (lesson("a", "dance", "at(place)"), ""),
        (schema("heat", ["at(place)"], ["in(object, place)"]), ""),
        (schema("put", ["at(place)"], []), ""),
        # In words that somebody wrote there is nothing to compare.
        (schema("heat", ["be at the tool"], ["object heated"]), ""),
        (lesson("a", TAKE, "must be there"), ""),
        # Snippets and dangers tell more than a rule.
        (success("a", TAKE), ""),
        (fatal("a", TAKE), ""),
    ],
)
def test_what_a_printed_rule_says_already_is_left_out(recall: Recall, rule: str) -> None:
    judged = covered(recall, PRINTED)
    if rule:
        assert (judged["dropped_by"], judged["rule"]) == ("covered", rule)
        assert judged["reason"] == f"[{rule}] says so already"
    else:
        assert judged == recall
    gone = {**recall, "dropped_by": "scf", "reason": "hand"}
    assert covered(gone, PRINTED) == gone  # type: ignore[arg-type]


def test_without_printed_rules_nothing_is_covered() -> None:
    context, told = RunContext(), [lesson("a", TAKE, "at(place)", needs=("you to be there",))]
    select = RpmsMemory().select
    assert outcomes(select(told, context)) == {"a": ""}
    assert outcomes(select(told, context, PrintedRules(MANUAL, frozenset()))) == {"a": ""}
    assert outcomes(select(told, context, PRINTED)) == {"a": "covered"}


def test_of_a_right_and_a_fatal_answer_the_nearer_goal_counts() -> None:
    """Weights do not count: a danger weighs double and is no nearer for it."""
    for near, loser in ((2.0, "good"), (1.4, "bad"), (1.6, "good")):
        told = [success("good", GO, HEAT, score=0.8), fatal("bad", HEAT, score=near)]
        judged = one_voice(told, "grounded")
        assert {name for name, outcome in outcomes(judged).items() if outcome} == {loser}
        (out,) = [r for r in judged if r["dropped_by"]]
        winner = "good" if loser == "bad" else "bad"
        assert (out["dropped_by"], out["reason"]) == (
            "contradicted", f"{winner} says otherwise of '{HEAT}'",
        )  # fmt: skip
    apart = [success("good", GO, TAKE), fatal("bad", HEAT)]
    assert one_voice(apart, "grounded") == apart


@pytest.mark.parametrize(
    ("form", "needs", "outcome"),
    [
        # One that says what is needed speaks against nothing, unless it is printed as AVOID.
        ("grounded", ("you to be at microwave 1",), ""),
        ("roles", ("you to be at microwave 1",), ""),
        ("recorded", ("you to be at microwave 1",), "contradicted"),
        ("grounded", (), "contradicted"),
        ("roles", (), "contradicted"),
        ("recorded", (), "contradicted"),
    ],
)
def test_no_lesson_warns_of_what_a_snippet_advises(
    form: Any, needs: tuple[str, ...], outcome: str
) -> None:
    told = [success("good", GO, HEAT), lesson("bad", HEAT, needs=needs)]
    judged = one_voice(told, form)
    assert outcomes(judged) == {"good": "", "bad": outcome}
    assert judged[1]["reason"] == (f"good advises '{HEAT}'" if outcome else "")
    # A snippet that is not shown advises nothing.
    told[0] = {**told[0], "dropped_by": "scf", "reason": "hand"}
    assert one_voice(told, form)[1]["dropped_by"] == ""


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
    assert outcomes(merged(one_voice(told, "grounded"))) == dict.fromkeys(
        ("empty", "way", "mute", "odd"), ""
    )
