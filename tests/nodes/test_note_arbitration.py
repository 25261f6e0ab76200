"""Rules first, over other people's memories: what a text advises is held against the rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rpms.memory_store import Note
from rpms.nodes.arbitration import arbitration
from rpms.nodes.memories.note_method import candidate
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall
from tests.nodes.memories.samples import ENV, request

HEAT = "put a hot mug in cabinet."


def note(text: str, **fields: Any) -> Note:
    return Note(id="n", kind="insight", text=text, **fields)


def judged(given: Note, goal: str = HEAT, *, here: bool = False, mode: str = "hard+soft") -> Recall:
    asked = request(goal)
    state = EpisodeState(
        env="alfworld", goal=asked.now.goal, belief=asked.now.belief,
        sub_goal=asked.now.sub_goal, recalls=[candidate(given, asked, here=here)],
    )  # fmt: skip
    runtime: Any = SimpleNamespace(context=RunContext(arbitration=mode))  # type: ignore[arg-type]
    return arbitration(state, runtime)["recalls"][0]


def test_advice_that_a_rule_forbids_is_dropped_by_name_and_by_kind() -> None:
    for text in ("Put the mug in the microwave.", "put mug 1 in/on microwave 1", "Put it in a "
                 "microwave and close the door"):  # fmt: skip
        one = judged(note(text))
        assert (one["dropped_by"], one["rule"]) == ("arbitration", "D-HEAT-001"), text
        assert "is forbidden for this goal" in one["reason"]


def test_the_same_advice_is_fine_for_another_goal_and_when_it_warns() -> None:
    text = "Put the mug in the microwave."
    assert not judged(note(text), "put a mug in microwave.")["dropped_by"]
    assert not judged(note("Do not put the mug in the microwave."))["dropped_by"]


def test_what_can_never_work_with_such_things_is_dropped() -> None:
    one = judged(note("heat the mug with the fridge"))
    assert (one["dropped_by"], one["rule"]) == ("arbitration", "O-ACT-006")
    # This home has no toaster: nothing is said about it.
    assert not judged(note("heat the mug with the toaster"))["dropped_by"]


def test_a_trajectory_is_judged_as_it_would_be_done_here() -> None:
    steps = ["take egg 1 from desk 1", "put egg 1 in/on microwave 1"]
    given = note("a story", goal="put a hot egg in shelf.", actions=steps)
    one = judged(given)
    assert one["dropped_by"] == "arbitration" and "'put mug 1 in/on microwave 1'" in one["reason"]


def test_the_moment_is_only_warned_about_and_only_in_this_home() -> None:
    text = "heat mug 1 with microwave 1"
    assert judged(note(text))["warning"] == ""
    one = judged(note(text), here=True)
    assert one["dropped_by"] == "" and one["rule"] == "O-ACT-006"
    assert one["warning"].startswith("'heat mug 1 with microwave 1' needs now: ")


@pytest.mark.parametrize(("mode", "dropped", "warned"), [("hard", True, False),
                         ("soft", False, True), ("hard+soft", True, False)])  # fmt: skip
def test_modes(mode: str, dropped: bool, warned: bool) -> None:
    one = judged(note("Put the mug in the microwave."), mode=mode)
    assert (bool(one["dropped_by"]), bool(one["warning"])) == (dropped, warned)


def test_the_state_filter_judges_notes_that_tell_of_a_state() -> None:
    asked = request()
    full = ENV.update_belief(
        ENV.update_belief(asked.now.belief, "go to desk 1", "On the desk 1, you see a mug 1."),
        "take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.",
    )  # fmt: skip
    notes = [note("a"), note("b", state_signature="holding=none"),
             note("c", state_signature="holding=mug 1")]  # fmt: skip
    state = EpisodeState(
        env="alfworld", belief=full, recalls=[candidate(one, asked) for one in notes]
    )
    runtime: Any = SimpleNamespace(context=RunContext())
    checked = scf(state, runtime)["recalls"]
    assert [one["dropped_by"] for one in checked] == ["", "scf", ""]
