"""What a world gets for nothing: it writes only the seven methods that it must."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rpms.envs import Environment, LiveGame, Outcome, Task
from rpms.vocabulary.belief import Belief, copy_belief, empty_belief
from rpms.vocabulary.goal import GoalSignature, GoalSpec, SubGoal
from rpms.vocabulary.turn import Turn

GOAL = GoalSpec(
    sentence="stow the rope.", type="stow_rope", object="rope", state=None, count=1,
    destination="chest", signature="stow_rope:rope::chest",
)  # fmt: skip


class Silence(LiveGame):
    def reset(self, task: Task) -> str:
        return "A deck."

    def step(self, action: str) -> Outcome:
        return Outcome("Nothing happens.", False, False, 0.0)


class Deck(Environment):
    def goal_types(self) -> list[str]:
        return ["stow_rope"]

    def splits(self) -> list[str]:
        return ["calm", "storm"]

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        return [Task(env=self.name, split=split, index=0, id="a", goal=GOAL["sentence"], source="")]

    def open_game(self) -> LiveGame:
        return Silence()

    def parse_goal(self, sentence: str) -> GoalSpec:
        return GOAL

    def update_belief(self, previous: Belief, action: str, observation: str) -> Belief:
        after = copy_belief(previous)
        after["places"] = observation.strip(".").split()
        return after

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        return SubGoal(name="find", target="rope", progress=0)


DECK = Deck()


def holding(*names: str) -> Belief:
    belief = empty_belief()
    belief["holding"] = list(names)
    return belief


def test_only_seven_methods_must_be_written() -> None:
    assert len(Environment.__abstractmethods__) == 7
    with pytest.raises(TypeError, match="abstract"):
        Environment()  # type: ignore[abstract]


def test_its_files_lie_beside_its_module() -> None:
    here = Path(__file__).parent
    assert [DECK.rules, DECK.prompts, DECK.memory] == [
        here / "rules", here / "prompts", here / "memory.jsonl"
    ]  # fmt: skip


def test_reading_goes_by_the_usual_forms() -> None:
    assert DECK.first_belief("A deck.")["places"] == ["A", "deck"]
    assert DECK.failed("Nothing happens.") and not DECK.failed("The rope is stowed.")
    assert DECK.read_action("  Take  Rope 1 ") == "take rope 1"
    assert DECK.carried_out("take rope 1", empty_belief(), "ok") == "take rope 1"
    assert DECK.task_name(DECK.tasks("calm")[0]) == "stow_rope"
    assert DECK.type_label("stow_rope") == "stow rope"
    assert DECK.learning_split == "storm"


def test_the_state_in_words() -> None:
    assert DECK.describe_belief(empty_belief(), GOAL) == ["Location: unknown", "Holding: nothing"]
    belief = holding("oar 1")
    belief["location"], belief["reachable"] = "mast 1", ["rail 1"]
    belief["containers"] = {"chest 1": "open", "chest 2": "closed"}
    belief["last_seen"] = {"rope 1": "chest 1", "sail 1": "chest 1"}
    belief["flags"], belief["searched"] = {"sail 1": "wet"}, ["chest 1"]
    assert DECK.describe_belief(belief, GOAL) == [
        "Location: mast 1", "Within reach: rail 1", "Holding: oar 1", "Open: chest 1",
        "Closed: chest 2", "Known: sail 1 is wet", "Seen: rope 1 at chest 1", "Searched: chest 1",
    ]  # fmt: skip


def test_experience_is_filed_by_the_paper_s_signatures() -> None:
    belief = holding("oar 1")
    belief["containers"] = {"chest 2": "open", "chest 1": "open", "box 1": "closed"}
    assert DECK.print_state(belief) == "holding=oar 1|open=chest 1,chest 2"
    assert DECK.print_state(empty_belief()) == "holding=none"
    assert DECK.read_signature(GOAL["signature"]) == GoalSignature("stow_rope", "rope", "chest")
    assert DECK.keys.goal(GOAL["signature"]) == DECK.read_signature(GOAL["signature"])
    assert DECK.keys.compat("holding=none") != DECK.keys.compat("holding=oar 1")
    assert DECK.requirements(belief, []) == {"holding": "oar 1"}
    assert DECK.requirements(empty_belief(), []) == {"holding": None}


@pytest.mark.parametrize(
    ("recorded", "now", "fits"),
    [
        ({"state_signature": "holding=none"}, holding(), True),
        ({"state_signature": "holding=none"}, holding("oar 1"), False),
        ({"state_signature": "holding=rope 1"}, holding("oar 1"), True),
        ({"state_signature": "holding=rope 1"}, holding(), False),
        ({"type": "schema"}, holding("oar 1"), True),
    ],
)
def test_compat_is_the_occupancy_of_the_hand(
    recorded: dict[str, str], now: Belief, fits: bool
) -> None:
    assert (DECK.compat(recorded, now) == "") is fits


def test_metrics_are_nothing_and_a_game_need_not_tell() -> None:
    facts = DECK.open_game().facts()
    assert (
        facts is None
        and DECK.true_state(facts) == {}
        and DECK.belief_errors(holding(), facts) == []
    )
    DECK.open_game().close()
    assert DECK.demo.split == DECK.splits()[0]
    assert DECK.packages == () and DECK.command_verbs() == []
