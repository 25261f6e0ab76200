"""Where a belief stands in each kind of task, with observation texts of the simulator."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld import goals, things
from rpms.envs.scienceworld.goals import (
    FAMILIES,
    focus_order,
    parse_goal,
    plan_for,
    read_task,
    sub_goal,
)
from rpms.envs.scienceworld.tasks import SENTENCES, catalogue, description
from rpms.envs.scienceworld.things import note_reading
from rpms.guard.procedure import applicable_actions
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.belief import Belief, Event
from tests.envs.playing import believing
from tests.refusal import refused


def check(name: str, sentence: str) -> str:
    """That the description parses, to the right family and with all its parts; returns the verb."""
    goal, read = parse_goal(sentence), read_task(sentence)
    assert goal["type"] == catalogue()[name].family, sentence
    assert goal["object"] == goal["object"].lower() != "", sentence
    assert f" {goal['object']}" in f" {sentence.lower()}".replace("'", " "), sentence
    assert len(read.boxes) == sentence.count(" box") - sentence.count(" boxes"), sentence
    assert ("thermometer" in sentence) == (read.instrument == "thermometer"), sentence
    assert focus_order(sentence) or goal["state"] == "genetics", sentence
    assert plan_for(sentence)
    return goal["state"] or ""


@pytest.mark.parametrize("name", catalogue())
def test_all_variations_we_play_parse_to_their_family(name: str) -> None:
    science = catalogue()[name]
    played = [*science.train, *science.dev, *science.test]
    verbs = {check(name, description(name, variation)) for variation in played}
    assert len(verbs) == 1


def unplayed() -> dict[str, list[str]]:
    """What the official test variations after the first ten of a task say, each wording once.

    Only the words that differ are kept beside this file, the sentence they go into is the task's.
    """
    sentences = json.loads(SENTENCES.read_text(encoding="utf-8"))
    kept = json.loads(Path(__file__).with_name("unplayed.json").read_text(encoding="utf-8"))
    return {
        name: [sentences[name]["sentence"].format(*words) for words in rows]
        for name, rows in kept.items()
    }


def test_all_other_official_test_variations_parse_to_their_family() -> None:
    found = unplayed()
    assert sum(len(sentences) for sentences in found.values()) == 599
    for name, sentences in found.items():
        assert len({check(name, sentence) for sentence in sentences}) == 1


def test_the_families_are_those_of_the_manual() -> None:
    assert load_manual("scienceworld").domain.procedures.keys() == set(FAMILIES)


# The first variation of every task.
FIRST = {name: description(name, 0) for name in catalogue()}


def steps_of(name: str) -> list[str]:
    return [step.name for step in plan_for(FIRST[name])]


def test_procedures_follow_the_manual() -> None:
    manual = load_manual("scienceworld").domain
    for name, science in catalogue().items():
        known = {*manual.procedures[science.family], *manual.advances}
        assert set(steps_of(name)) <= known, name
    assert steps_of("find-plant") == manual.procedures["F1"]
    assert steps_of("measure-melting-point-known-substance") == manual.procedures["F2"]
    assert steps_of("boil") == manual.procedures["F3"]
    # Placing the thing itself is the answer to a temperature.
    assert steps_of("use-thermometer")[-1] == "place_answer"


@pytest.mark.parametrize(("row", "names"), [
    ("{name: a, words: w, done: [gone]}", "boil.0 'gone' of_kind"),
    ("{name: a, words: w, place: '{rooom}', done: [known]}", "'{rooom}'"),
    ("{name: a, words: w, don: [known]}", "boil.0.don 'don' 'done'"),
    ("{name: a, words: w, done: [known]}", "tests 'answered'"),
    ("{name: a, words: w, done: []}", "boil.0.done"),
    ("{name: a, done: [known]}", "boil.0.words"),
])  # fmt: skip
def test_a_mistake_in_a_step_is_told_when_it_is_loaded(
    row: str, names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goals, "STEPS", tmp_path / "steps.yaml")
    goals.STEPS.write_text(f"boil: [{row}]", encoding="utf-8")
    with refused(f"{goals.STEPS}: ", *names.split()):
        goals.read_steps.__wrapped__()


@pytest.mark.parametrize(("substance", "degrees", "decided"), [
    ("mercury", "5", True), ("mercury", "20", False), ("tin", "20", True), ("tin", "5", False),
])  # fmt: skip
def test_a_plain_name_tells_the_phase_too(substance: str, degrees: str, decided: bool) -> None:
    """Liquid below the limit of 10 degrees, or solid above it: its melting point is decided."""
    sentence = FIRST["measure-melting-point-known-substance"].replace("chocolate", substance)
    sentence = re.sub(r"-?\d+\.\d", "10.0", sentence)
    belief = having_focused("thermometer", substance)
    note_reading(belief, substance, f"{degrees} degrees celsius")
    step = sub_goal(parse_goal(sentence), belief, [])
    assert (step["name"] == "answer_box") == decided


@pytest.mark.parametrize(
    ("readings", "decided"),
    [
        ([("unknown substance C", 5)], False),
        ([("solid unknown substance C", 20)], True),
        # A command may spell it in lower case; its name tells the phase.
        ([("solid unknown substance C", 5), ("liquid unknown substance c", 8)], True),
        # It was solid above the limit, so it melts above it whatever comes after on that side.
        ([("solid unknown substance C", 20), ("liquid unknown substance C", 90)], True),
        ([("solid unknown substance C", 20), ("solid unknown substance C", 5)], False),
        ([("solid unknown substance C", 5), ("liquid unknown substance C", 90)], False),
    ],
)
def test_what_was_read_before_decides_with_the_last_reading(
    readings: list[tuple[str, int]], decided: bool
) -> None:
    """The limit is 10 degrees."""
    sentence = FIRST["measure-melting-point-known-substance"]
    sentence = sentence.replace("chocolate", "solid unknown substance C")
    sentence = re.sub(r"-?\d+\.\d", "10.0", sentence)
    belief = having_focused("thermometer", "solid unknown substance C")
    for name, degrees in readings:
        note_reading(belief, name, f"{degrees} degrees celsius")
    step = sub_goal(parse_goal(sentence), belief, [])
    assert (step["name"] == "answer_box") == decided


def having_focused(*things: str, **fields: Any) -> Belief:
    return believing(events=[Event(kind="focus", thing=thing) for thing in things], **fields)


@pytest.mark.parametrize(
    ("degrees", "box"), [("101", "red box"), ("99", "green box"), ("-5", "green box")]
)
def test_the_reading_is_said_and_which_box_it_calls_for_is_not(degrees: str, box: str) -> None:
    """The comparison is the agent's part; only the guard, which is a policy, makes it."""
    belief = having_focused(
        "thermometer", "unknown substance B", holding=["unknown substance B"],
        flags={"unknown substance B": f"{degrees} degrees celsius"}, location="bathroom",
        visible=["red box", "green box"],
    )  # fmt: skip
    goal = parse_goal(FIRST["use-thermometer"])
    assert sub_goal(goal, belief, [])["name"] == "measure_object", "it was not measured here"
    belief["events"].append(Event(kind="read", thing="bathroom"))
    found = sub_goal(goal, belief, [])
    told = ("red box", "green box", f"{degrees} degrees celsius")
    assert all(words in found["words"] for words in told)
    manual = load_manual("scienceworld")
    [choice] = applicable_actions(DecisionPoint(manual, goal, found, belief))
    assert choice["action"] == f"move unknown substance B to {box}"
    assert all(words in choice["reason"] for words in (degrees, "100", box))


@pytest.mark.parametrize("phase", [{"water": "solid", "water was": "water"}, {}])
def test_the_phase_is_said_beside_the_one_that_is_wanted(phase: dict[str, str]) -> None:
    """What was frozen only to be melted is to be heated next: "look at water" does not say that."""
    belief = having_focused("water", flags={**phase, "freezer": "activated"},
                            last_seen={"water": "jug", "jug": "freezer"})  # fmt: skip
    step = sub_goal(parse_goal("Your task is to melt water. First, focus on it."), belief, [])
    assert step["name"] == "verify_object" and "liquid" in step["words"]
    assert ("solid" in step["words"]) == bool(phase)


@pytest.mark.parametrize(("seen", "step"), [
    ("bee hive", "find_object"), ("bee", "focus_object"), ("butterfly egg", "focus_object"),
    ("baby wolf", "focus_object"),
])  # fmt: skip
def test_an_animal_shows_in_its_name(seen: str, step: str) -> None:
    goal = parse_goal(FIRST["find-animal"])
    assert sub_goal(goal, believing(visible=[seen]), [])["name"] == step


# Names of goals and sub-goals, and what is left of an empty blank.
NO_ENGLISH = re.compile(
    r"\w_\w|[{}]|  |\ba [aeiou]|\ban [^aeiou]|\b(?:the|a|an|in|on|to|of|into) (?=[,;:]|$)|"
    r"\b(?:change-state|mix-paint|grow-fruit|life-stages)\b"
)


@pytest.mark.parametrize("name", catalogue())
def test_no_step_of_a_task_prints_a_key_of_ours_or_a_gap(name: str) -> None:
    science = catalogue()[name]
    for variation in (*science.train, *science.dev):
        for step in plan_for(description(name, variation)):
            assert step.words and not NO_ENGLISH.search(step.words), step.words


def test_what_the_belief_reads_by_is_what_the_manual_knows() -> None:
    """Two tables of one name would otherwise come to differ; the belief reads none of the manual's.

    What a user leaves out of the manual, or changes in it, does not change what is seen.
    """
    manual = load_manual("scienceworld")
    tables = {**manual.domain.categories, **manual.environment.affordances}
    shared = tables.keys() & things.tables().keys()
    assert len(shared) >= 10
    for name in shared:
        assert things.tables()[name] == frozenset(tables[name]), name
    assert things.renamed() == manual.environment.renamed
