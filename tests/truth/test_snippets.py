"""Every snippet that D prints, carried out in a game of its own from the state it is printed in."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from rpms.envs import get_environment
from rpms.evals.running.diff_arms import played_states
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import surviving
from tests.under_arm import under_arm

HOMES = 12
WORLD = get_environment("alfworld")


def carried_out(state: EpisodeState, steps: list[str]) -> tuple[bool, bool]:
    """Whether each step works after what the episode did, and whether the last one wins."""
    with closing(WORLD.open_game()) as game:
        game.reset(state["spec"])
        for turn in state["history"]:
            game.step(turn["action"])
        for step in steps:
            outcome = game.step(step)
            if WORLD.failed(outcome.observation):
                return False, False
        return True, outcome.won


def test_what_is_printed_without_a_mark_works() -> None:
    """At most 2% fail on the way, and what is said to solve this goal solves it."""
    counts = Counter[str]()
    for state in played_states(RunContext(), "alfworld", limit=HOMES):
        for recall in surviving(under_arm(state, RunContext())["recalls"]):
            if recall["entry"]["type"] != "success":
                continue
            worked, won = carried_out(state, recall["advice"]["printed"])
            if recall["warning"]:
                counts["marked"] += 1
                counts["needless mark"] += worked
                continue
            counts["unmarked"] += 1
            counts["failed"] += not worked
            counts["solves"] += recall["advice"]["solves"]
            counts["false claim"] += recall["advice"]["solves"] and worked and not won
    print(dict(counts))
    assert counts["unmarked"] > 50 and counts["solves"] > 20
    assert counts["failed"] <= 0.02 * counts["unmarked"]
    assert counts["false claim"] == 0
