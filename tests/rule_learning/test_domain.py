"""Tier 2 from won episodes."""

from __future__ import annotations

from pathlib import Path

import pytest

import rpms
from rpms.evals.records import read_records
from rpms.evals.run_files import read_run
from rpms.nodes.manual import load_manual
from rpms.rule_learning.domain import learned_domain, orders, sightings
from rpms.rule_learning.writing import write_tier
from rpms.vocabulary.turn import EpisodeRecord, RecordedTurn

HOME = "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a desk 1, a drawer 1, and a shelf 1."  # noqa: E501
TASK = "put a book in shelf."


def told(*turns: tuple[str, str], success: bool = True) -> EpisodeRecord:
    history = [
        RecordedTurn(action=action, observation=seen, failed=seen == "Nothing happens.")
        for action, seen in turns
    ]
    return EpisodeRecord(
        env="alfworld", split="generated_seen", task="t", goal=TASK,
        first_observation=f"{HOME}\n\nYour task is to: {TASK}", success=success, history=history,
    )  # fmt: skip


WON = told(
    ("go to desk 1", "On the desk 1, you see a book 1, and a pen 1."),
    ("take book 1 from desk 1", "You pick up the book 1 from the desk 1."),
    ("go to shelf 1", "On the shelf 1, you see nothing."),
    ("put book 1 in/on shelf 1", "You put the book 1 in/on the shelf 1."),
)
LOST = told(
    ("go to drawer 1", "The drawer 1 is closed."),
    ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see a pen 1."),
    success=False,
)


def test_the_order_is_what_won_episodes_did() -> None:
    found = orders([WON, WON, LOST])
    assert found == {"pick_and_place_simple": {("find_object", "take_object", "place_object"): 2}}


def test_things_are_counted_where_they_were_first_seen() -> None:
    found = sightings([WON, LOST, LOST])
    assert found["book"] == {"desk": (1, 1)}  # not on the shelf, where the agent put it
    assert found["pen"] == {"desk": (1, 1), "drawer": (2, 2)}


def test_the_tier_is_ordinary_yaml_laid_over_the_manual(tmp_path: Path) -> None:
    tier = learned_domain([WON, LOST])
    write_tier(tmp_path, tier, "learned from two episodes\nof a test")
    manual = load_manual("alfworld", str(tmp_path))
    assert manual.domain.procedures["pick_and_place_simple"] == [
        "find_object", "take_object", "place_object"
    ]  # fmt: skip
    mine = [rule for rule in manual.domain.likely_places if rule.id == "L-LOC-BOOK"]
    assert mine[0].places == ["desk"] and mine[0].source == "learned" and mine[0].support == 1
    assert (tmp_path / "domain.yaml").read_text().startswith("# learned from two episodes\n# of")


@pytest.mark.engine
def test_what_the_planner_does_gives_the_procedures_written_by_hand(tmp_path: Path) -> None:
    rpms.evaluate(
        ["B"], out=tmp_path / "run", split="generated_seen", limit=12, spread=True, show=False,
        effort=rpms.Effort(workers=0),
    )  # fmt: skip
    tier = learned_domain(read_records(read_run(tmp_path / "run"), ["B"]))
    by_hand = load_manual("alfworld").domain.procedures
    assert tier["procedures"]
    for kind, steps in tier["procedures"].items():
        if len(set(by_hand[kind])) < len(by_hand[kind]):
            continue  # what is to be done twice may come up once more on the way
        left = iter(by_hand[kind])  # what was in sight at once needed no looking for
        assert all(step in left for step in steps), (kind, steps)
