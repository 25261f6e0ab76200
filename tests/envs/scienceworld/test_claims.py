"""What the belief claims after a command, where printed lines were false once."""

from __future__ import annotations

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.belief import rejection_reason
from rpms.envs.scienceworld.parse_view import room_of
from rpms.rules import check_action, explain_rejection
from tests.envs.playing import believing

WORLD = get_environment("scienceworld")
MANUAL = load_manual("scienceworld")


def test_what_is_in_a_vessel_is_in_the_room_that_the_vessel_is_taken_to() -> None:
    belief = believing(
        location="foundry", places=["kitchen", "foundry"], holding=["glass cup"],
        last_seen={"water": "glass cup", "blast furnace": "foundry"}, visible=["blast furnace"],
        spots={"kitchen": ["glass cup", "water"], "foundry": ["blast furnace"]},
    )  # fmt: skip
    answer = "You move the glass cup to the blast furnace."
    after = WORLD.update_belief(belief, "move glass cup to blast furnace", answer)
    assert room_of(after, "water") == room_of(after, "glass cup") == "foundry"


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
    assert need and need == explain_rejection(MANUAL, "open picture", belief)


@pytest.mark.parametrize(("name", "verdict"), [
    ("hallway", "kept"), ("inventory", "open"), ("orange", "open"), ("banana", "broken"),
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
