"""What the belief claims after a command, where printed lines were false once."""

from __future__ import annotations

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.belief import describe_belief, rejection_reason
from rpms.envs.scienceworld.parse_view import room_of
from rpms.rules import check_action, explain_rejection
from rpms.vocabulary.naming import find
from tests.envs.playing import believing

WORLD = get_environment("scienceworld")
MANUAL = load_manual("scienceworld")


@pytest.mark.parametrize(("command", "open_still"), [("go to wood cup", False), ("99", True)])
def test_a_command_that_is_no_number_closes_the_menu(command: str, open_still: bool) -> None:
    asked = believing(location="hallway", disambiguation={"0": "focus on apple (in bowl)"})
    after = WORLD.update_belief(asked, command, "No known action matches that input.")
    assert bool(after["disambiguation"]) == open_still


def test_what_is_in_a_vessel_is_in_the_room_that_the_vessel_is_taken_to() -> None:
    belief = believing(
        location="foundry", places=["kitchen", "foundry"], holding=["glass cup"],
        last_seen={"water": "glass cup", "blast furnace": "foundry"}, visible=["blast furnace"],
        spots={"kitchen": ["glass cup", "water"], "foundry": ["blast furnace"]},
    )  # fmt: skip
    answer = "You move the glass cup to the blast furnace."
    after = WORLD.update_belief(belief, "move glass cup to blast furnace", answer)
    assert room_of(after, "water") == room_of(after, "glass cup") == "foundry"


def test_a_thing_whose_name_the_answer_shortens_is_moved() -> None:
    seed = "round green pea seed"
    belief = believing(
        location="greenhouse", places=["greenhouse"], holding=["seed jar"],
        last_seen={seed: "seed jar", "flower pot 1": "greenhouse"}, visible=["flower pot 1"],
    )  # fmt: skip
    answer = "You move the pea seed to the flower pot 1."
    after = WORLD.update_belief(belief, f"move {seed} in seed jar to flower pot 1", answer)
    assert after["last_seen"][seed] == "flower pot 1"
    assert find([*after["last_seen"]], "pea seed") == seed


def test_a_block_that_is_gone_from_a_plane_is_no_state_of_the_plane() -> None:
    sentence = WORLD.task_types()["inclined-plane-determine-angle"]
    belief = believing(
        location="workshop", flags={"inclined plane B": "wood block 56% down the plane"}
    )
    lines = describe_belief(belief, WORLD.parse_goal(sentence))
    assert "Last seen on inclined plane B: wood block 56% down the plane" in lines
    assert not any(line.startswith("States when last seen") for line in lines)


@pytest.mark.parametrize(("answer", "reason"), [
    ("The picture is not edible.", "The picture is not edible"),
    ("You can't pick up a liquid directly. Try pouring it.", "You can't pick up a liquid directly"),
    ("No known action matches that input.", ""),
    ("You move the orange to the bowl.", ""),
])  # fmt: skip
def test_the_simulators_own_reason_is_told_where_no_need_is_unmet(answer: str, reason: str) -> None:
    assert rejection_reason(answer) == reason
    belief = believing(location="hallway", visible=["picture", "air"])
    told = explain_rejection(MANUAL, "use picture on air", belief, reason)
    assert ("the answer was" in told) == bool(reason) and reason in told
    # What is known to be unmet says more than the answer.
    need = explain_rejection(MANUAL, "open picture", belief, reason)
    assert need == "it needs picture to be something that can be opened"


@pytest.mark.parametrize(("name", "verdict"), [
    ("hallway", "holds"), ("inventory", "unknown"), ("orange", "unknown"), ("banana", "fails"),
])  # fmt: skip
def test_the_room_itself_and_what_is_carried_from_the_start_may_be_named(
    name: str, verdict: str
) -> None:
    belief = believing(location="hallway", visible=["picture", "air"])
    assert check_action(MANUAL, f"examine {name}", belief).verdict == verdict


def test_a_number_is_learned_in_the_manuals_words() -> None:
    asked = believing(disambiguation={"0": "teleport sink (in greenhouse, in universe)"})
    told = WORLD.carried_out("0", asked, "It's not clear how to get there.")
    assert told == "teleport to sink in greenhouse"
