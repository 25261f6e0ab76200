"""The verdict says what the tables say, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.analysis.report.verdict import comparisons, verdict
from rpms.evals.records.run_folder import Run, read_run
from tests.evals.sample_runs import LABEL, contexts, write_run

TASKS = 40


def first(wins: int, *lost: int) -> list[bool]:
    """The first tasks won, but for some."""
    return [number < wins and number not in lost for number in range(TASKS)]


def run_of(folder: Path, wins: dict[str, list[bool]], **changes: Any) -> Run:
    return read_run(write_run(folder, wins, **changes))


def test_gains_that_stand_are_told_apart_from_those_that_do_not(tmp_path: Path) -> None:
    wins = {
        "A": first(4), "S": first(5), "B": first(16), "C": first(8), "D": first(30, 0),
        "D+verify": first(36, 0),
    }  # fmt: skip
    assert verdict(run_of(tmp_path, wins)) == [
        f"Played by {LABEL}: no evidence of what helps a model.",
        "Whether the state adds to the baseline (S over A) is not told by 40 tasks: +2.5 points, "
        "1:0 games, p 1.000.",
        "Rules add 27.5 points to the state (B over S), 11:0 games, p 0.0010.",
        "Whether memory adds to the state (C over S) is not told by 40 tasks: +7.5 points, "
        "3:0 games, p 0.250.",
        "Memory adds 32.5 points to rules (D over B), 14:1 games, p 0.0010.",
        "Rules add 52.5 points to memory (D over C), 22:1 games, p < 0.0001.",
        # Six games to none would stand alone, and not among six comparisons.
        "D+verify is not told apart from D by 40 tasks: +15.0 points, 6:0 games, p 0.0312, but "
        "0.0938 for 6 comparisons.",
        "Most losses of A (36 of 36) and D+verify (5 of 5) follow a belief that is wrong.",
    ]


def test_losses_a_baseline_without_state_and_what_is_missing(tmp_path: Path) -> None:
    """The order of the arms does not matter; a model is named by nothing."""
    wins = {"D": first(2), "B": first(30)[:39], "A": first(10)}
    real = {name: {**own, "model": "openai:m"} for name, own in contexts(*wins).items()}
    broken = {("A", 39): {"failure_mode": "model_error", "error": "401"}}
    lines = verdict(run_of(tmp_path, wins, conditions=real, lines=broken, logs=False))
    assert lines == [
        "This run is not finished: 119 of 120 episodes are there.",
        "Left out of all that follows: 1 of 119 episodes, for errors.",
        "Memory takes 71.8 points from rules (D over B), 0:28 games, p < 0.0001.",
        "Rules add 51.3 points to the baseline, state included (B over A), 20:0 games, p < 0.0001.",
    ]


@pytest.mark.parametrize(
    ("labels", "pairs"),
    [
        # An arm that varies another is compared with that alone, not with all that lack a part.
        (["B", "D", "D scf=off", "D scf=preconditions"],
         [("B", "D"), ("D", "D scf=off"), ("D", "D scf=preconditions")]),
        (["A+verify", "B+verify"], [("A+verify", "B+verify")]),
        (["A", "D"], [("A", "D")]),
        (["D"], []),
    ],
)  # fmt: skip
def test_each_arm_is_compared_with_its_nearest(
    tmp_path: Path, labels: list[str], pairs: list[tuple[str, str]]
) -> None:
    run = run_of(tmp_path, {name: first(9) for name in labels}, logs=False)
    assert [(c.first, c.second) for c in comparisons(run)] == pairs
    if not pairs:
        assert "D rules+memory, success rate: 22.5% 9/40 [12.3, 37.5]." in verdict(run)


def test_scores_have_their_own_test(tmp_path: Path) -> None:
    wins = {"B": first(0), "D": first(0)}
    scores = {("D", number): {"score": 40.0 + number} for number in range(TASKS)}
    run = run_of(tmp_path, wins, env="scienceworld", lines=scores, logs=False)
    assert "Memory adds 59.5 points of score to rules (D over B), p < 0.0001." in verdict(run)


def test_code_of_ones_own_is_one_change(tmp_path: Path) -> None:
    """However many stages it swaps, it is compared with the arm that it varies."""
    conditions = contexts("A", "D") | {"mine": contexts("D")["D"]}
    code = {"path": "own:stages", "hash": "1" * 12}
    wins = {"A": first(4), "D": first(20), "mine": first(30)}
    swapped = {"mine": {"nodes llm_call, scf": code}}
    run = run_of(tmp_path, wins, logs=False, conditions=conditions, swapped=swapped)
    assert ("D", "mine") in [(pair.first, pair.second) for pair in comparisons(run)]
