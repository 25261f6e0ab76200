"""Which names a memory may print: the task's, what was seen, and what stands in every house."""

from __future__ import annotations

import pytest

from rpms.envs import get_environment
from rpms.envs.scienceworld.names import furniture, is_known
from rpms.envs.scienceworld.simulator import ScienceWorldGame
from rpms.envs.scienceworld.tasks import catalogue, description, simplifications
from rpms.prompts.blocks import render
from rpms.vocabulary.belief import Event
from tests.envs.playing import believing
from tools.record_scienceworld import things_by_room

WORLD = get_environment("scienceworld")
SEEN = believing(
    location="greenhouse", places=["greenhouse"], holding=["thermometer"],
    visible=["flower pot 4", "seed jar", "round green pea seed", "blue jay egg", "liquid tin"],
    last_seen={"round green pea seed": "seed jar", "liquid tin": "flower pot 4"},
)  # fmt: skip
FIND = "Your task is to find a(n) animal. First, focus on the thing. Then, move it to the red box "
FIND += "in the kitchen."
BOIL = "Your task is to boil apple juice. First, focus on the substance."


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("red box", True),
        ("blue box", False),
        ("stove", True),  # every kitchen has one
        ("large cupboard", True),
        ("book shelf", False),  # in half of the living rooms
        ("round green pea seed in seed jar", True),
        ("wrinkly green pea seed in seed jar", False),
        ("round green pea seed in glass bottle", False),
        ("flower pot 4 containing liquid tin in inventory", True),
        ("flower pot 4 in greenhouse", True),
        ("flower pot 1 in greenhouse", False),
        ("blue jay", True),  # it has another name once it is taken
        ("tin", True),  # in any phase
        ("gaseous tin", True),
        ("substance in flower pot 4", True),
        ("substance in red apple", False),
        ("inclined plane with a steel surface", False),
        ("animal", False),  # the task asks for one, and none is called so
    ],
)
def test_what_is_known_to_be_in_this_house(name: str, known: bool) -> None:
    assert is_known(name, WORLD.parse_goal(FIND), SEEN) == known


def test_a_verb_of_the_task_belongs_to_no_name() -> None:
    goal = WORLD.parse_goal(BOIL)
    assert is_known("apple juice", goal, SEEN) and not is_known("boil apple juice", goal, SEEN)


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_the_furniture_stands_in_a_house_of_every_task(game: ScienceWorldGame) -> None:
    """It was recorded over all train variations; here the last of each of the 26 tasks."""
    game.reset(WORLD.tasks("train_mini", 1)[0])
    simulator = game._running()
    for name, task in catalogue().items():
        simulator.load(name, task.train[-1], simplifications())
        simulator.step("look around")
        rooms = things_by_room(simulator)
        assert furniture() <= {*rooms}.union(*rooms.values()), name


FOCUSED = believing(
    flags={"task": description("measure-melting-point-known-substance", 0)},
    events=[Event(kind="focus", thing="thermometer"), Event(kind="focus", thing="apple tree")],
)


@pytest.mark.parametrize(
    ("steps", "done"),
    [
        (["teleport to kitchen", "focus on thermometer", "focus on {the object}"], {1}),
        (["focus on apple tree in the adult stage"], set()),  # it may be the seedling
        (["pick up thermometer"], set()),
    ],
)
def test_nothing_is_focused_on_twice(steps: list[str], done: set[int]) -> None:
    assert WORLD.steps_done({"lifted": steps}, FOCUSED) == done
    chosen = [Event(kind="focus", thing="liquid chocolate")]
    with_target = {**FOCUSED, "events": [*FOCUSED["events"], *chosen]}
    after = WORLD.steps_done({"lifted": ["focus on {the object}"]}, with_target)
    assert after == {0}


def test_the_target_is_printed_as_the_task_spells_it() -> None:
    """Names that differ in a capital letter alone are names of two substances."""
    sentence = description("measure-melting-point-unknown-substance", 0)
    goal = WORLD.parse_goal(sentence)
    sub_goal = WORLD.sub_goal(goal, believing(), [])
    text = render(WORLD.prompts, "goal.j2", goal=goal, sub_goal=sub_goal, pointer="")
    target = next(line for line in text.splitlines() if "Target: " in line).partition(": ")[2]
    assert target != goal["object"] and target.lower() == goal["object"] and target in sentence
