from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.scienceworld.goals import FAMILIES, parse_goal, plan_for, read_details
from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import SENTENCES, catalogue, description, simplifications
from rpms.rules import load_manual
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

STATE = (
    "First, focus on the substance. Then, take actions that will cause it to change its state of "
    "matter."
)
MEASURE = (
    "Your task is to measure the {what} of {it}, which is located around the kitchen. First, focus "
    "on the thermometer. Next, focus on the {it}. If the {it} temperature is above -50.0 degrees "
    "celsius, place it in the yellow box. If the {it} temperature is below -50.0 degrees celsius, "
    "place it in the purple box. The boxes are located around the living room."
)
MELTING = (
    "Your task is to measure the melting point of tin, which is located around the kitchen. First, "
    "focus on the thermometer. Next, focus on the tin. If the melting point of tin is above 50.0 "
    "degrees celsius, focus on the red box. If the melting point of tin is below 50.0 degrees "
    "celsius, focus on the green box. The boxes are located around the kitchen."
)
TEMPERATURE = MEASURE.format(what="temperature", it="unknown substance B")
FIND = (
    "Your task is to find a(n) non-living thing. First, focus on the thing. Then, move it to the "
    "orange box in the living room."
)
LIFE_SPANS = (
    "Your task is to find the animal with the longest life span, then the shortest life span. "
    "First, focus on the animal with the longest life span.  Then, focus on the animal with the "
    "shortest life span. The animals are in the 'outside' location."
)
PAINT = (
    "Your task is to use chemistry to create green-blue paint. When you are part-way done, focus "
    "on the intermediate (secondary color) paint you created.  When you are completely done, focus "
    "on the green paint."
)

# description, signature, destination
WORDINGS = [
    (FIND, "F1:find:non-living thing", "orange box"),
    (TEMPERATURE, "F2:measure-temperature:unknown substance b", ""),
    (MELTING, "F2:measure-melting-point:tin", ""),
    ("Your task is to boil orange juice. For compounds without a boiling point, combusting the "
     f"substance is also acceptable. {STATE}", "F3:boil:orange juice", ""),
    (f"Your task is to melt water. {STATE}", "F3:melt:water", ""),
    (f"Your task is to freeze mercury. {STATE}", "F3:freeze:mercury", ""),
    (f"Your task is to change the state of matter of ice cream. {STATE}",
     "F3:change-state:ice cream", ""),
    ("Your task is to use chemistry to create the substance 'salt water'. A recipe and some of the "
     "ingredients might be found near the kitchen. When you are done, focus on the salt water.",
     "F3:mix:salt water", ""),
    ("Your task is to use chemistry to create violet paint. When you are done, focus on the violet "
     "paint.", "F3:mix-paint:violet paint", ""),
    (PAINT, "F3:mix-paint:green-blue paint", ""),
    ("Your task is to grow a orange plant from seed. Seeds can be found in the bathroom. First, "
     "focus on a seed. Then, make changes to the environment that grow the plant until it reaches "
     "the reproduction life stage.", "F4:grow:orange plant", ""),
    ("Your task is to grow a avocado. This will require growing several plants, and them being "
     "crosspollinated to produce fruit.  Seeds can be found in the foundry. To complete the task, "
     "focus on the grown avocado.", "F4:grow-fruit:avocado", ""),
    ("Your task is to find the animal with the longest life span.  The animals are in the "
     "'outside' location.  Focus on the animal with the longest life span.",
     "F4:lifespan-longest:animal", ""),
    ("Your task is to find the animal with the shortest life span.  The animals are in the "
     "'outside' location.  Focus on the animal with the shortest life span.",
     "F4:lifespan-shortest:animal", ""),
    (LIFE_SPANS, "F4:lifespan-longest-shortest:animal", ""),
    ("Your task is to focus on the 3 life stages of the blue jay, starting from earliest to "
     "latest.", "F4:life-stages:blue jay", ""),
    ("Your task is to focus on the life stages of the apple plant, starting from earliest to "
     "latest. The plants are located outside.", "F4:life-stages:apple plant", ""),
    ("Your task is to determine which of the two inclined planes (B, H) has the steepest angle. "
     "After completing your experiment, focus on the inclined plane with the steepest angle.",
     "F4:inclined-plane-angle:inclined plane", ""),
    ("Your task is to determine which of the two inclined planes (unknown material C, unknown "
     "material H) has the most friction. After completing your experiment, focus on the inclined "
     "plane with the most friction.", "F4:inclined-plane-friction:inclined plane", ""),
    ("Your task is to determine whether blue seed color is a dominant or recessive trait in the "
     "unknown E plant. If the trait is dominant, focus on the red box. If the trait is recessive, "
     "focus on the green box.", "F4:genetics:unknown e plant", ""),
]  # fmt: skip
BY_SIGNATURE = {signature: sentence for sentence, signature, _ in WORDINGS}


@pytest.mark.parametrize(("sentence", "signature", "destination"), WORDINGS)
def test_every_wording(sentence: str, signature: str, destination: str) -> None:
    family, verb, target = signature.split(":")
    assert parse_goal(sentence) == GoalSpec(
        sentence=sentence,
        type=family,
        object=target,
        state=verb,
        count=1,
        destination=destination,
        signature=signature,
    )


def check(name: str, sentence: str) -> str:
    """That the description parses, to the right family and with all its parts; returns the verb."""
    goal, read = parse_goal(sentence), read_details(sentence)
    assert goal["type"] == catalogue()[name].family, sentence
    assert goal["object"] == goal["object"].lower() != "", sentence
    assert f" {goal['object']}" in f" {sentence.lower()}".replace("'", " "), sentence
    assert len(read["boxes"]) == sentence.count(" box") - sentence.count(" boxes"), sentence
    assert ("thermometer" in sentence) == (read["instrument"] == "thermometer"), sentence
    assert read["focus"] or goal["state"] == "genetics", sentence
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


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_the_kept_wordings_are_those_of_the_simulator(simulator: Simulator) -> None:
    found = unplayed()
    for name, science in catalogue().items():
        more = range(science.test.stop, science.variations)
        assert (name in found) == bool(more)
        for variation in (*more[:1], *more[-1:]):
            simulator.load(name, variation, simplifications())
            assert simulator.description() in found[name]


def test_the_families_are_those_of_the_manual() -> None:
    assert load_manual("scienceworld").domain.procedures.keys() == set(FAMILIES)


def details(signature: str, **fields: Any) -> None:
    read = read_details(BY_SIGNATURE[signature])
    empty: dict[str, Any] = {
        "instrument": "", "room": "", "boxes": [], "focus": [signature.split(":")[2]],
    }  # fmt: skip
    assert read == {**empty, **fields}


def test_what_the_description_says_beyond_the_goal() -> None:
    details("F1:find:non-living thing", boxes=[("orange box", "always")])
    details(
        "F2:measure-temperature:unknown substance b",
        instrument="thermometer",
        room="kitchen",
        focus=["thermometer", "unknown substance b"],
        boxes=[
            ("yellow box", "above -50.0 degrees celsius"),
            ("purple box", "below -50.0 degrees celsius"),
        ],
    )
    details("F3:melt:water")
    details("F3:mix:salt water", room="kitchen")
    details("F4:grow:orange plant", room="bathroom", focus=["seed"])
    details("F4:grow-fruit:avocado", room="foundry")
    details(
        "F4:lifespan-longest-shortest:animal",
        room="outside",
        focus=["animal with the longest life span", "animal with the shortest life span"],
    )
    stages = [f"blue jay in life stage {number}" for number in (1, 2, 3)]
    details("F4:life-stages:blue jay", focus=stages)
    details(
        "F4:inclined-plane-friction:inclined plane",
        focus=["inclined plane with the most friction"],
    )
    details(
        "F4:genetics:unknown e plant",
        focus=[],
        boxes=[
            ("red box", "dominant"),
            ("green box", "recessive"),
        ],
    )


def test_a_tertiary_paint_is_focused_on_itself_whatever_the_description_says() -> None:
    """Its last sentence names the intermediate colour, but the simulator wants the product."""
    assert read_details(PAINT)["focus"] == ["intermediate paint", "green-blue paint"]


@pytest.mark.parametrize(
    "sentence", ["", "put a mug in cabinet.", "Your task is to test if tin conducts electricity."]
)
def test_a_foreign_sentence_is_refused_in_one_line(sentence: str) -> None:
    with pytest.raises(RpmsError, match="cannot read the goal") as error:
        parse_goal(sentence)
    assert "\n" not in str(error.value)


@given(st.sampled_from(WORDINGS), st.sampled_from(["", "Task description:\n", "  "]))
def test_what_is_around_the_sentence_does_not_matter(
    wording: tuple[str, str, str], before: str
) -> None:
    sentence, signature, _ = wording
    assert parse_goal(f"{before}{sentence}\n")["signature"] == signature
