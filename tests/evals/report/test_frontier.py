"""Success against cost: which conditions no other one beats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.report import build_report
from rpms.evals.report.frontier import Point, frontier, frontier_table, in_dollars
from rpms.evals.report.plots import plots_of
from rpms.evals.run_folder import Run, read_run
from tests.evals.sample_runs import write_run

# What each condition costs and how many of four it wins: B beats C, and D is dear but best.
WINS = {"A": 1, "B": 2, "C": 1, "D": 4}
COSTS = {"A": 100, "B": 200, "C": 300, "D": 400}


def played(folder: Path, **changes: Any) -> Run:
    wins = {name: [i < won for i in range(4)] for name, won in WINS.items()}
    lines = {
        (name, i): {"prompt_tokens": COSTS[name], "output_tokens": 0, **changes.get(name, {})}
        for name in WINS
        for i in range(4)
    }
    return read_run(write_run(folder, wins, lines=lines, logs=False))


def on_the_front(run: Run) -> dict[str, str]:
    table = frontier_table(run)
    assert table is not None
    return {row["condition"][0]: row["on the front"] for row in table.as_json()["rows"]}


def test_the_front_by_tokens(tmp_path: Path) -> None:
    run = played(tmp_path)
    assert on_the_front(run) == {"A": "yes", "B": "yes", "C": "no", "D": "yes"}
    table = {table.id: table for table in build_report(run).tables}["frontier"]
    assert "same tokens per episode" in table.notes[0] and table.source
    rows = table.as_json()["rows"]
    assert [row["tokens per episode"]["value"] for row in rows] == [100, 200, 300, 400]
    assert rows[0]["USD per episode"] == {"value": None}
    assert 'aria-label="Success against cost' in plots_of(run)["frontier"]


def test_money_counts_where_all_of_it_is_known_and_none_was_saved(tmp_path: Path) -> None:
    # The dearest in tokens is the cheapest in dollars: a small model may talk a lot.
    prices = {name: {"cost_usd": 1 / COSTS[name]} for name in WINS}
    run = played(tmp_path / "priced", **prices)
    assert in_dollars(run)
    assert on_the_front(run) == {"A": "no", "B": "no", "C": "no", "D": "yes"}
    unknown = {**prices, "B": {"cost_usd": None}}
    replayed = {**prices, "B": {"cost_usd": 0.0, "cache_hits": 3}}
    free = {name: {"cost_usd": 0.0} for name in WINS}
    for number, changes in enumerate((unknown, replayed, free)):
        other = played(tmp_path / str(number), **changes)
        assert not in_dollars(other)
        assert on_the_front(other) == {"A": "yes", "B": "yes", "C": "no", "D": "yes"}


def test_one_condition_has_no_front(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [True, False]}, logs=False))
    assert frontier_table(run) is None and "frontier" not in plots_of(run)


FEW = st.integers(0, 4)
POINTS = st.dictionaries(st.text(min_size=1, max_size=3), st.builds(Point, FEW, FEW), min_size=1)


@given(POINTS)
def test_the_front_is_what_nothing_beats(found: dict[str, Point]) -> None:
    front = frontier(found)
    assert front
    for name, one in found.items():
        better = [o for o in found.values() if o.cost <= one.cost and o.merit >= one.merit]
        assert (name in front) == all(o == one for o in better)
    costs = [found[name].cost for name in front]
    merits = [found[name].merit for name in front]
    assert costs == sorted(costs) and merits == sorted(merits)
