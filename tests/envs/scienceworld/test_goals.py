"""Where a belief stands in each kind of task, with observation texts of the simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.scienceworld import goals
from rpms.envs.scienceworld.belief import first_belief, update_belief
from rpms.envs.scienceworld.goals import (
    FAMILIES,
    parse_goal,
    plan_for,
    read_details,
    sub_goal,
)
from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import SENTENCES, catalogue, description, simplifications
from rpms.nodes.manual import load_manual
from rpms.policy import DecisionPoint, serving_actions
from rpms.vocabulary.belief import Belief, Event, empty_belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec, printed_sub_goal
from tests.envs.playing import believing

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


@pytest.mark.parametrize(("row", "problem"), [
    ("{name: a, done: [gone]}", "boil.0: unknown test 'gone'; known: of_kind, "),
    ("{name: a, place: '{rooom}', done: [known]}", "nothing fills the blank '{rooom}'"),
    ("{name: a, don: [known]}", "boil.0.don: unknown key 'don'; did you mean 'done'?"),
    ("{name: a, done: []}", "boil.0.done: List should have at least 1 item"),
])  # fmt: skip
def test_a_mistake_in_a_step_is_told_when_it_is_loaded(
    row: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goals, "STEPS", tmp_path / "steps.yaml")
    goals.STEPS.write_text(f"boil: [{row}]", encoding="utf-8")
    with pytest.raises(RpmsError) as error:
        goals.step_rows.__wrapped__()
    assert str(error.value).startswith(f"{goals.STEPS}: ") and problem in str(error.value)


def having_focused(*things: str, **fields: Any) -> Belief:
    return believing(events=[Event(kind="focus", thing=thing) for thing in things], **fields)


def kitchen(*lines: str) -> tuple[str, str]:
    listed = "".join(f"\n\t{line}" for line in lines)
    return (
        "look around",
        f"This room is called the kitchen. In it, you see: \n\tthe agent{listed}",
    )


def moved(thing: str, place: str) -> tuple[str, str]:
    return f"move {thing} to {place}", f"You move the {thing} to the {place}."


def focus(thing: str) -> tuple[str, str]:
    return f"focus on {thing}", f"You focus on the {thing}."


POT = "a metal pot (containing a substance called tin)"
TAKEN = ("pick up metal pot", "You move the metal pot to the inventory.")
READING = "the thermometer measures a temperature of 64 degrees celsius"
# Task, turns, and the steps that the pointer goes through, which counts them as it does.
WAYS: dict[str, tuple[str, list[tuple[str, str]], list[tuple[str, int]]]] = {
    "a search": (FIRST["find-living-thing"], [
        kitchen("a stove, which is turned off. On the stove is: nothing.", "a dove egg"),
        focus("dove egg"),
        ("pick up dove egg", "You move the dove to the inventory."),
        ("go to living room", "You move to the living room."),
        ("move dove egg in inventory to red box", "You move the dove to the red box."),
    ], [("find_object", 0), ("focus_object", 1), ("take_object", 2), ("place_object", 3),
        ("place_object", 3), ("place_object", 4)]),
    "a plant travels in its pot": (FIRST["find-plant"], [
        kitchen("a flower pot 3 (containing a peach tree in the adult stage, soil)"),
        focus("peach tree"),
        ("pick up flower pot 3", "You move the flower pot 3 to the inventory."),
        moved("flower pot 3", "red box"),
    ], [("find_object", 0), ("focus_object", 1), ("take_object", 2), ("place_object", 3),
        ("place_object", 4)]),
    "a measurement": (FIRST["use-thermometer"], [
        kitchen("a thermometer, currently reading a temperature of 10 degrees celsius"),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        focus("thermometer"),
        kitchen("unknown substance B"),
        focus("unknown substance B"),
        ("use thermometer on unknown substance B", READING),
        moved("unknown substance B", "green box"),
    ], [("find_instrument", 0), ("take_instrument", 1), ("focus_instrument", 2),
        ("find_object", 3), ("focus_object", 4), ("measure_object", 5), ("place_answer", 6),
        ("place_answer", 7)]),
    "a transformation": (FIRST["melt"].replace("water", "tin"), [
        kitchen(POT), focus("tin"), TAKEN, moved("metal pot", "stove"),
        ("activate stove", "The stove is now activated."),
        ("examine tin", "a substance called tin"),
        ("examine liquid tin", "a substance called liquid tin"),
    ], [("find_object", 0), ("focus_object", 1), ("take_object", 2), ("prepare_object", 3),
        ("transform_object", 4), ("verify_object", 5), ("verify_object", 5),
        ("verify_object", 6)]),
    "a focus cannot be left out, but a taking can": (FIRST["melt"], [
        kitchen("a stove, which is turned on. On the stove is: a metal pot (containing a substance "
                "called water)."),
        focus("water"),
    ], [("find_object", 0), ("focus_object", 1), ("verify_object", 5)]),
    "a mixture": (FIRST["chemistry-mix"], [
        ("read recipe", "The recipe reads:\nTo make salt water, you need to mix sodium chloride, "
         "water."),
        kitchen("a jug (containing a substance called sodium chloride, a substance called water)"),
        ("mix jug", "Sodium chloride and water mix to produce salt water."),
        focus("salt water"),
    ], [("read_recipe", 0), ("prepare_object", 1), ("mix_substances", 2), ("focus_object", 3),
        ("focus_object", 4)]),
    # The simulator announces as "blue green" what it then lists as green-blue.
    "a tertiary paint": (FIRST["chemistry-mix-paint-tertiary-color"], [
        kitchen("a jug (containing blue paint, yellow paint)"),
        ("mix jug", "Blue and yellow paint mix to produce green paint."),
        focus("green paint"),
        ("mix jug", "Blue and green paint mix to produce blue green paint."),
        focus("green-blue paint"),
    ], [("find_object", 0), ("mix_substances", 1), ("focus_object", 2), ("mix_substances", 3),
        ("focus_object", 4), ("focus_object", 5)]),
    "two animals, one after the other": (FIRST["lifespan-longest-lived-then-shortest-lived"], [
        kitchen("a baby elephant", "a juvenile mouse"),
        focus("baby elephant"),
        focus("juvenile mouse"),
    ], [("find_object", 0), ("focus_object", 1), ("focus_object", 2), ("focus_object", 3)]),
    "an experiment with planes": (FIRST["inclined-plane-determine-angle"], [
        kitchen("an inclined plane B", "an inclined plane H", "a wood block"),
        ("move wood block to inclined plane B", "You move the wood block to the inclined plane."),
        ("activate stopwatch", "The stopwatch is now activated."),
        ("look at inclined plane b",
         "an inclined plane B, with: a wood block approximately 9% down the plane"),
        ("look at inclined plane h",
         "an inclined plane H, with: a wood block approximately 4% down the plane"),
        focus("inclined plane B"),
    ], [("find_object", 0), ("prepare_object", 1), ("run_experiment", 2), ("run_experiment", 2),
        ("observe_result", 3), ("focus_object", 4), ("focus_object", 5)]),
    "a grown plant": (FIRST["grow-plant"].replace("apple", "orange"), [
        kitchen("a seed jar (containing a orange seed, a orange seed)",
                "a flower pot 1 (containing soil)"),
        ("pick up seed jar", "You move the seed jar to the inventory."),
        focus("orange seed"),
        ("move orange seed in seed jar to flower pot 1",
         "You move the orange seed to the flower pot 1."),
        ("pour jug into flower pot 1", "You pour the contents of the jug into the flower pot 1."),
        kitchen("a flower pot 1 (containing a orange tree in the reproducing stage, soil)"),
    ], [("find_object", 0), ("take_object", 1), ("focus_object", 2), ("plant_seed", 3),
        ("water_plant", 4), ("observe_result", 5), ("observe_result", 6)]),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_the_way_through(way: str) -> None:
    """(Sub-goal, pointer) at the start and after each turn."""
    sentence, turns, expected = WAYS[way]
    goal = parse_goal(sentence)
    opening = "This room is called the kitchen. In it, you see: \n\tthe agent"
    belief = first_belief(f"{opening}\n\n{sentence}")
    pointed = [(sub_goal(goal, belief, [])["name"], belief["progress"])]
    for action, observation in turns:
        belief = update_belief(belief, action, observation)
        pointed.append((sub_goal(goal, belief, [])["name"], belief["progress"]))
    assert pointed == expected


@pytest.mark.parametrize(
    ("degrees", "box"), [("101", "red box"), ("99", "green box"), ("-5", "green box")]
)
def test_the_reading_is_said_and_which_box_it_calls_for_is_not(degrees: str, box: str) -> None:
    """The comparison is the agent's part; only the guard, which is a policy, makes it."""
    belief = having_focused(
        "thermometer", "unknown substance B", holding=["unknown substance B"],
        flags={"unknown substance B": f"{degrees} degrees celsius"},
        visible=["red box", "green box"],
    )  # fmt: skip
    goal = parse_goal(FIRST["use-thermometer"])
    found = sub_goal(goal, belief, [])
    assert found["target"] == (
        "unknown substance b to red box (above 100.0 degrees celsius) or green box (below 100.0 "
        f"degrees celsius); last reading: {degrees} degrees celsius"
    )
    manual = load_manual("scienceworld")
    [choice] = serving_actions(DecisionPoint(manual, goal, found, belief))
    assert choice["action"] == f"move unknown substance B to {box}"


BOXES = (
    "blue box (above -10.0 degrees celsius) or orange box (below -10.0 degrees celsius); "
    "last reading: "
)


@pytest.mark.parametrize(("state", "step", "target"), [
    ("liquid, -60 degrees celsius", "answer_box", f"{BOXES}-60 degrees celsius"),
    ("solid, 5 degrees celsius", "answer_box", f"{BOXES}5 degrees celsius"),
    ("liquid, 5 degrees celsius", "measure_object", "solid unknown substance c"),
    ("solid, -60 degrees celsius", "measure_object", "solid unknown substance c"),
])  # fmt: skip
def test_a_melting_point_is_settled_once_a_reading_leaves_one_box(
    state: str, step: str, target: str
) -> None:
    sentence = (
        "Your task is to measure the melting point of solid unknown substance C, which is located "
        "around the kitchen. First, focus on the thermometer. Next, focus on the solid unknown "
        "substance C. If the melting point of solid unknown substance C is above -10.0 degrees "
        "celsius, focus on the blue box. If the melting point of solid unknown substance C is "
        "below -10.0 degrees celsius, focus on the orange box. The boxes are located around the "
        "kitchen."
    )
    flags = {"unknown substance C": state}
    belief = having_focused("thermometer", "solid unknown substance C", flags=flags)
    found = sub_goal(parse_goal(sentence), belief, [])
    assert (found["name"], found["target"]) == (step, target)


def test_progress_is_a_percentage_of_the_procedure() -> None:
    goal = parse_goal(FIRST["melt"])
    beginner = sub_goal(goal, empty_belief(), [])
    assert printed_sub_goal(beginner) == {"name": "find_object", "target": "water", "progress": 0}
    assert beginner["about"] == {"object": "water", "place": "", "which": ""}
    assert sub_goal(goal, having_focused("water", visible=["water"]), [])["progress"] == 33
