"""``arbitration_extras`` removes what a printed rule repeats and what another memory denies."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.nodes.arbitration import repeated_rule, settle
from rpms.rules import ActiveRules, Manual
from rpms.vocabulary.recall import Recall, new_advice, new_recall
from tests.memory_store.methods.test_select import GO, HEAT, TAKE, fatal, lesson, outcomes, success

MANUAL = load_manual("alfworld")
PRINTED = frozenset({"O-ACT-004", "O-ACT-006"})


def printing(*ids: str) -> ActiveRules:
    return {"environment": [{"id": name, "text": "..."} for name in ids]}


def schema(kind: str, needs: list[str], effects: list[str]) -> Recall:
    entry = {"id": kind, "type": "schema", "action_type": kind, "preconditions": needs,
             "effects": effects}  # fmt: skip
    return new_recall(entry, 1.0, 1, new_advice([HEAT], needs=needs, then=effects))


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
def test_what_a_printed_rule_says_already_is_redundant(recall: Recall, rule: str) -> None:
    assert repeated_rule(recall, MANUAL, PRINTED) == rule
    (judged,) = settle([recall], MANUAL, printing(*PRINTED), "grounded")
    if rule:
        assert (judged["dropped_by"], judged["conflict"]) == ("arbitration", "redundant")
        assert (judged["rule"], judged["reason"]) == (rule, f"[{rule}] says so already")
    else:
        assert judged == recall
    gone: Any = {**recall, "dropped_by": "scf", "reason": "hand"}
    assert settle([gone], MANUAL, printing(*PRINTED), "grounded") == [gone]
    assert settle([recall], MANUAL, printing(), "grounded") == [recall], "no rule is printed"


def test_a_lesson_that_a_rule_states_of_all_actions_is_redundant() -> None:
    """ScienceWorld's O-SEM-001: name only what is in view or carried."""
    manual: Manual = load_manual("scienceworld")
    told = lesson("a", "read soap", "visible(thing)")
    assert repeated_rule(told, manual, frozenset({"O-SEM-001"})) == "O-SEM-001"
    assert not repeated_rule(told, manual, frozenset({"U-FAIL-001"}))
    mixed = lesson("a", "read soap", "visible(thing)", "unclosed(thing)")
    assert not repeated_rule(mixed, manual, frozenset({"O-SEM-001"}))


def one_voice(recalls: list[Recall], form: Any = "grounded") -> list[Recall]:
    return settle(recalls, MANUAL, printing(), form)


def test_of_a_right_and_a_fatal_answer_the_nearer_goal_counts() -> None:
    """Weights do not count: a danger weighs double and is no nearer for it."""
    for near, loser in ((2.0, "good"), (1.4, "bad"), (1.6, "good")):
        told = [success("good", GO, HEAT, score=0.8), fatal("bad", HEAT, score=near)]
        (out,) = [recall for recall in one_voice(told) if recall["dropped_by"]]
        winner = "good" if loser == "bad" else "bad"
        assert (out["entry"]["id"], out["conflict"]) == (loser, "contradicted by another memory")
        assert out["reason"] == f"{winner} says otherwise of '{HEAT}'"
    apart = [success("good", GO, TAKE), fatal("bad", HEAT)]
    assert one_voice(apart) == apart


@pytest.mark.parametrize(
    ("form", "needs", "loses"),
    [
        # One that says what is needed speaks against nothing, unless it is printed as AVOID.
        ("grounded", ("you to be at microwave 1",), False),
        ("roles", ("you to be at microwave 1",), False),
        ("recorded", ("you to be at microwave 1",), True),
        ("grounded", (), True),
        ("roles", (), True),
        ("recorded", (), True),
    ],
)
def test_no_lesson_warns_of_what_a_snippet_advises(
    form: Any, needs: tuple[str, ...], loses: bool
) -> None:
    told = [success("good", GO, HEAT), lesson("bad", HEAT, needs=needs)]
    judged = one_voice(told, form)
    assert outcomes(judged) == {"good": "", "bad": "arbitration" if loses else ""}
    assert judged[1]["conflict"] == ("contradicted by another memory" if loses else "")
    # A snippet that is not shown advises nothing.
    told[0] = {**told[0], "dropped_by": "scf", "reason": "hand"}
    assert one_voice(told, form)[1]["dropped_by"] == ""


def test_a_memory_without_a_printed_step_upsets_nothing() -> None:
    """A person may put back what could not be said here."""
    told = [success("empty"), success("way", GO, HEAT), lesson("mute", HEAT), fatal("odd", HEAT)]
    told[2]["advice"]["printed"] = told[3]["advice"]["printed"] = []
    assert one_voice(told) == told
