"""Figures lead to the very episodes behind them."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from rpms.evals.records import Episode
from rpms.evals.report import Report, read_report
from rpms.evals.report.links import set_link, sets_of
from rpms.evals.report.page import page_data, render_page
from tests.evals.sample_runs import write_run

WINS = {"A": [True, False, False, True], "B": [False, True, True, True]}
LINES = {
    ("A", 1): {"failure_mode": "wrong_termination"},
    ("A", 2): {"failure_mode": "model_error", "error": "401"},
    ("B", 0): {"lost_by": "ignored", "refused": {"missing": 0, "wrong": 0, "ignored": 2}},
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read_report(write_run(tmp_path_factory.mktemp("run"), WINS, lines=LINES))


def behind(report: Report, *names: str) -> list[tuple[str, int]]:
    """The condition and number of each episode of a set, by table, labels and column."""
    found = page_data(report)
    rows = found["episodes"]
    return [(rows[n]["c"], rows[n]["n"]) for n in found["sets"]["/".join(names)]["of"]]


def test_who_won_only_under_one_condition(report: Report) -> None:
    names = ("pairs", "A baseline", "B rules")
    assert behind(report, *names, "only first won") == [("A", 0)]
    assert behind(report, *names, "only second won") == [("B", 1)]
    assert sorted(behind(report, *names, "tasks")) == [
        (c, n) for c in "AB" for n in (0, 1, 3)
    ]  # an error leaves its task out of the pair


def test_wins_failures_errors_and_causes(report: Report) -> None:
    assert behind(report, "main", "A baseline", "won") == [("A", 0), ("A", 3)]
    assert behind(report, "main", "A baseline", "errors") == [("A", 2)]
    assert behind(report, "failures", "timeout (step budget used up)", "B rules") == [("B", 0)]
    assert behind(report, "failures", "wrong termination", "A baseline") == [("A", 1)]
    assert behind(report, "causes", "model error", "A baseline") == [("A", 2)]
    assert behind(report, "lacking", "B rules", "ignored (episodes)") == [("B", 0)]
    assert behind(report, "types", "all", "B rules") == [("B", n) for n in range(4)]


def test_a_plain_count_is_as_long_as_its_list(report: Report) -> None:
    checked = 0
    for table in report.tables:
        for row in table.rows:
            for cell in row:
                if cell.behind and isinstance(cell.value, int) and table.columns[2] != "tasks":
                    assert len(cell.behind) == cell.value
                    checked += 1
    assert checked > 10


def test_every_link_of_the_page_has_its_set_and_every_set_a_link(report: Report) -> None:
    page = render_page(report)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    links = re.findall(r'href="#/episodes\?([^"]+)"', page)
    asked = {parse_qs(unescape(link))["set"][0] for link in links}
    assert asked == set(data["sets"]) and len(asked) == len(links)
    for found in data["sets"].values():
        assert found["of"] and max(found["of"]) < len(data["episodes"])


def test_an_empty_cell_leads_nowhere(report: Report) -> None:
    main = report.tables[0]
    errors = [*main.columns].index("errors")
    assert [bool(set_link(main, row, errors)) for row in main.rows] == [True, False]
    assert sets_of([], {}) == {}


def test_episodes_and_conditions_come_in_the_plans_order(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"D": [True] * 3, "A": [True] * 3, "B": [True] * 3}, logs=False)
    file = folder / "episodes.jsonl"
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    report = read_report(folder)
    found: list[Episode] = [*report.run.episodes.values()]
    assert [(e.index, e.condition) for e in found] == [(n, c) for n in range(3) for c in "DAB"]
    assert [row[0].text[0] for row in report.tables[0].rows] == ["D", "A", "B"]
