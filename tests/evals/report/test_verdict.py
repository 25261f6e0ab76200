"""The verdict says what the tables say, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.analysis.arm_differences import comparisons
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.verdict import verdict
from rpms.evals.records.run_folder import read_run
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import LABEL, contexts, write_run

TASKS = 40
ABLATION = [("A", "S"), ("S", "B"), ("S", "C"), ("B", "D"), ("C", "D")]


def first(wins: int, *lost: int) -> list[bool]:
    """The first tasks won, but for some."""
    return [number < wins and number not in lost for number in range(TASKS)]


def run_of(folder: Path, wins: dict[str, list[bool]], **changes: Any) -> Results:
    return Results(read_run(write_run(folder, wins, **changes)))


def test_significant_differences_and_others(tmp_path: Path) -> None:
    wins = {
        "A": first(4), "S": first(5), "B": first(16), "C": first(8), "D": first(30, 0),
        "D+verify": first(36, 0),
    }  # fmt: skip
    caveat, *lines = verdict(run_of(tmp_path, wins, compare=[*ABLATION, ("D", "D+verify")]))
    assert LABEL in caveat and "no evidence" in caveat
    assert lines == [
        "S vs A (state on top of the baseline): no significant difference, +2.5 points, "
        "1:0 discordant games, p = 1.0 (1.0 after Holm's correction for 6 comparisons), 40 tasks.",
        "B vs S (rules on top of the state): significantly better, +27.5 points, "
        "11:0 discordant games, p = 0.0010 (0.0049 after Holm's correction for 6 comparisons), "
        "40 tasks.",
        "C vs S (memory on top of the state): no significant difference, +7.5 points, "
        "3:0 discordant games, p = 0.250 (0.500 after Holm's correction for 6 comparisons), "
        "40 tasks, memory changed 100.0% of the prompts of C.",
        "D vs B (memory on top of rules): significantly better, +32.5 points, "
        "14:1 discordant games, p = 0.0010 (0.0049 after Holm's correction for 6 comparisons), "
        "40 tasks, memory changed 100.0% of the prompts of D.",
        "D vs C (rules on top of memory): significantly better, +52.5 points, "
        "22:1 discordant games, p < 0.0001 (< 0.0001 after Holm's correction for 6 comparisons), "
        "40 tasks.",
        # 6:0 would be significant alone, but not among six comparisons.
        "D+verify vs D: no significant difference, +15.0 points, 6:0 discordant games, "
        "p = 0.0312 (0.0938 after Holm's correction for 6 comparisons), 40 tasks.",
        "Main cause of losses of A (36 of 36), S (35 of 35), B (24 of 24), C (32 of 32), "
        "D (11 of 11) and D+verify (5 of 5): belief error.",
    ]


def test_losses_a_baseline_without_state_and_what_is_missing(tmp_path: Path) -> None:
    """The order of the arms does not matter; a language model needs no caveat."""
    wins = {"D": first(2), "B": first(30)[:39], "A": first(10)}
    real = {name: {**values, "model": "openai:m"} for name, values in contexts(*wins).items()}
    broken = {("A", 39): {"failure_mode": "model_error", "error": "401"}}
    pairs = [("B", "D"), ("A", "B")]
    lines = verdict(
        run_of(tmp_path, wins, conditions=real, lines=broken, logs=False, compare=pairs)
    )
    unfinished, errors, *compared = lines
    assert "119 of 120" in unfinished and "1 of 119" in errors
    assert compared == [
        "D vs B (memory on top of rules): significantly worse, -71.8 points, "
        "0:28 discordant games, p < 0.0001 (< 0.0001 after Holm's correction for 2 comparisons), "
        "39 tasks.",
        "B vs A (rules and state on top of the baseline): significantly better, +51.3 points, "
        "20:0 discordant games, p < 0.0001 (< 0.0001 after Holm's correction for 2 comparisons), "
        "39 tasks.",
    ]


def test_an_arm_of_errors_has_no_result_but_a_reason(tmp_path: Path) -> None:
    place = {"stage": "scf", "file": "/home/me/mine.py", "line": 11, "frames": "", "traceback": ""}
    error = {"failure_mode": "infrastructure_error", "error": "KeyError: 'foo'"}
    wins = {"B": first(4)[:6], "D": first(4)[:6], "D bad": first(0)[:6]}
    conditions = contexts("B", "D") | {"D bad": contexts("D")["D"]}
    placed = {("D bad", number): {**error, "error_place": place} for number in range(6)}

    def line(folder: str, **others: Any) -> str:
        lines = placed | {("D bad", 3): {**placed["D bad", 3], **others}}
        run = run_of(tmp_path / folder, wins, conditions=conditions, lines=lines, logs=False)
        (found,) = (line for line in verdict(run) if line.startswith("D bad: "))
        return found

    at = "all 6 episodes failed at mine.py:11"
    assert line("same") == f"D bad: no result, {at} (KeyError: 'foo')."
    assert line("texts", error="KeyError: 'a'") == (
        f"D bad: no result, {at} (the first: KeyError: 'foo')."
    )
    assert line("places", error_place=None) == (
        "D bad: no result, all 6 episodes ended in an error (KeyError: 'foo')."
    )


def test_arms_that_won_the_same_tasks_have_no_discordant_games(tmp_path: Path) -> None:
    run = run_of(tmp_path, {"B": first(30), "D": first(30)}, logs=False)
    line = "D vs B (memory on top of rules): no significant difference, +0.0 points, p = 1.0"
    assert f"{line}, 40 tasks." in verdict(run)


@pytest.mark.parametrize(
    ("labels", "compare", "pairs"),
    [
        (["B", "D", "D scf=off"], [("B", "D"), ("D", "D scf=off")],
         [("B", "D"), ("D", "D scf=off")]),
        # An arm in no pair is compared with the first one.
        (["B", "D", "D scf=off"], [("D", "D scf=off")], [("D", "D scf=off")]),
        (["B", "C", "D", "S"], [("D", "C")], [("D", "C"), ("B", "S")]),
        # Arms that this part of a run does not have are left out.
        (["B", "D"], [("A", "B"), ("B", "D")], [("B", "D")]),
        (["A", "B", "D"], [], [("A", "B"), ("A", "D")]),
        (["D"], [], []),
    ],
)  # fmt: skip
def test_the_pairs_of_the_plan_are_compared(
    tmp_path: Path,
    labels: list[str],
    compare: list[tuple[str, str]],
    pairs: list[tuple[str, str]],
) -> None:
    run = run_of(tmp_path, {name: first(9) for name in labels}, logs=False, compare=compare)
    assert [(c.first, c.second) for c in comparisons(run.run)] == pairs
    if not pairs:
        assert "D rules+memory: success rate 22.5% 9/40 [12.3, 37.5]." in verdict(run)


def test_scores_have_their_own_test(tmp_path: Path) -> None:
    wins = {"B": first(0), "D": first(0)}
    scores = {("D", number): {"score": 40.0 + number} for number in range(TASKS)}
    run = run_of(tmp_path, wins, env="scienceworld", lines=scores, logs=False)
    line = "D vs B (memory on top of rules): significantly better, +59.5 points of score"
    assert f"{line}, p < 0.0001, 40 tasks." in verdict(run)


def test_comparisons_beyond_the_first_six_are_counted(tmp_path: Path) -> None:
    wins = {"A": first(1)} | {f"D k={k}": first(k) for k in range(2, 10)}
    lines = verdict(run_of(tmp_path, wins, logs=False))
    assert len([line for line in lines if " vs A" in line]) == 6
    assert any("2 further comparisons" in line and "--table pairs" in line for line in lines)


def test_custom_code_is_one_change(tmp_path: Path) -> None:
    """However many stages it swaps."""
    conditions = contexts("A", "D") | {"mine": contexts("D")["D"]}
    code = {"path": "own:stages", "hash": "1" * 12}
    wins = {"A": first(4), "D": first(20), "mine": first(30)}
    swapped = {"mine": {"nodes llm_call": code, "nodes scf": code}}
    run = run_of(
        tmp_path, wins, logs=False, conditions=conditions, swapped=swapped, compare=[("D", "mine")]
    )
    compared = [line for line in verdict(run) if " vs " in line]
    assert compared[0].startswith("mine vs D: significantly better, +25.0 points, 10:0 discordant")


def test_the_arms_that_were_asked_for_are_compared_and_corrected_for(tmp_path: Path) -> None:
    wins = {"A": first(4), "B": first(30), "D": first(30), "D mine": first(36)}
    conditions = contexts("A", "B", "D") | {"D mine": {**contexts("D")["D"], "k": 9}}
    folder = write_run(tmp_path, wins, logs=False, conditions=conditions)
    report = read_report(folder, against="d")
    pairs = [(row["first"], row["second"]) for row in report.as_json()["tables"]["pairs"]["rows"]]
    assert pairs == [("D rules+memory", second)
                     for second in ("A baseline", "B rules", "D mine")]  # fmt: skip
    compared = [line for line in report.verdict if " vs " in line]
    assert [line.partition(":")[0] for line in compared] == ["A vs D", "B vs D", "D mine vs D"]
    # 6:0 has p = 0.0312, times the two pairs of the three that are no clearer.
    assert "0.0625 after Holm's correction for 3 comparisons" in compared[2]
    (row,) = [r for r in report.as_json()["tables"]["pairs"]["rows"] if r["second"] == "D mine"]
    assert row["McNemar p, Holm"] == pytest.approx(0.0625)
    both = read_report(folder, against=["D", "A"])
    assert [(c.first, c.second) for c in comparisons(both.run)] == [
        ("D", "A"), ("D", "B"), ("D", "D mine"), ("A", "B"), ("A", "D mine")
    ]  # fmt: skip
    assert len(both.as_json()["tables"]["pairs"]["rows"]) == 5
    with pytest.raises(RpmsError, match="no arm 'D min'; did you mean 'D mine'"):
        read_report(folder, against="D min")
