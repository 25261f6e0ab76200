"""What repeats and trials tell, against numbers worked out by hand."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.report import read_report
from rpms.evals.report.repeats import (
    flip_rate,
    outcomes,
    pass_hat,
    repeat_table,
    trial_table,
    variance_within,
)
from rpms.evals.run_folder import read_run
from tests.evals.sample_runs import episode, write_run

# Three repeats of four tasks: always, twice, once, never.
KNOWN = [[True] * 3, [True, True, False], [False, True, False], [False] * 3]
ENDS = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=8)
)


def test_known_numbers() -> None:
    assert pass_hat(KNOWN, 1) == pytest.approx(6 / 12)
    assert pass_hat(KNOWN, 2) == pytest.approx((1 + 1 / 3 + 0 + 0) / 4)
    assert pass_hat(KNOWN, 3) == pytest.approx(1 / 4)
    assert flip_rate(KNOWN) == 2 / 4
    assert variance_within(KNOWN) == pytest.approx((1 / 3 + 1 / 3) / 4)


def test_nothing_is_said_of_nothing() -> None:
    assert pass_hat([], 1) is flip_rate([]) is variance_within([]) is None
    assert variance_within([[True], [False]]) is None


@given(ENDS)
def test_one_try_is_the_mean_and_more_are_never_easier(tasks: list[list[bool]]) -> None:
    repeats = len(tasks[0])
    rates = [pass_hat(tasks, k) or 0.0 for k in range(1, repeats + 1)]
    wins = sum(map(sum, tasks))
    assert rates[0] == pytest.approx(wins / (repeats * len(tasks)))
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(rates))
    assert rates[-1] == pytest.approx(sum(map(all, tasks)) / len(tasks))


@given(ENDS, st.integers(1, 6))
def test_it_is_the_share_of_draws_in_which_all_succeed(tasks: list[list[bool]], k: int) -> None:
    k = min(k, len(tasks[0]))
    draws = [all(draw) for ends in tasks for draw in combinations(ends, k)]
    assert pass_hat(tasks, k) == pytest.approx(sum(draws) / len(draws))


@given(ENDS)
def test_tasks_that_never_flip_do_not_vary(tasks: list[list[bool]]) -> None:
    flips, varies = flip_rate(tasks), variance_within(tasks)
    assert flips is not None and varies is not None
    assert (flips == 0) == (varies == 0) and 0 <= flips <= 1 and 0 <= varies <= 0.5


def repeated(folder: Path) -> Path:
    write_run(folder, {"D": [ends[0] for ends in KNOWN]}, settings={"repeats": 3})
    with (folder / "episodes.jsonl").open("a") as out:
        for number, ends in enumerate(KNOWN):
            for repeat in (2, 3):
                line = episode("D", number, ends[repeat - 1], repeat=repeat)
                out.write(json.dumps(line) + "\n")
    return folder


def test_the_table_of_repeats(tmp_path: Path) -> None:
    run = read_run(repeated(tmp_path))
    assert run.complete and outcomes(run, "D") == KNOWN
    table = repeat_table(run)
    assert table is not None
    assert table.columns[2:] == ["pass^1", "pass^2", "pass^3", "flip rate", "variance within tasks"]
    told = [cell.text for cell in table.rows[0][1:]]
    assert told == ["4", "50.0%", "33.3%", "25.0%", "50.0%", "0.167"]
    assert "repeats" in [one.id for one in read_report(tmp_path).tables]
    assert trial_table(run) is None


def test_a_task_with_an_error_in_one_repeat_is_left_out(tmp_path: Path) -> None:
    repeated(tmp_path)
    broken = episode("D", 0, False, repeat=2, failure_mode="model_error", error="gone")
    with (tmp_path / "episodes.jsonl").open("a") as out:
        out.write(json.dumps(broken) + "\n")
    assert outcomes(read_run(tmp_path), "D") == KNOWN[1:]


def test_the_table_of_trials(tmp_path: Path) -> None:
    """Won at once, won in the second trial, never won."""
    write_run(tmp_path, {"D": [True, False, False]}, settings={"trials": 3})
    later = [(1, 2, True), (2, 2, False), (2, 3, False)]
    with (tmp_path / "episodes.jsonl").open("a") as out:
        for number, trial, won in later:
            out.write(json.dumps(episode("D", number, won, trial=trial)) + "\n")
    run = read_run(tmp_path)
    table = trial_table(run)
    assert run.complete and table is not None
    assert [cell.text for cell in table.rows[0][1:]] == ["3", "33.3%", "66.7%", "66.7%"]
    assert [episode.trial for episode in run.judged("D")] == [1, 2, 3]
    assert repeat_table(run) is None
