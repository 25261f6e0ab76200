"""The page as text; what it does in a browser is in test_browser.py."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from dataclasses import fields
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from markupsafe import escape

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.report import Report, read_report
from rpms.evals.analysis.report.page import (
    page_data,
    render_page,
    rules_changed,
    write_report,
    written,
)
from rpms.evals.analysis.report.plots import conditions_plot
from rpms.evals.analysis.report.rules import rule_texts, run_rules
from rpms.evals.analysis.report.source import settings_of
from rpms.evals.analysis.report.verdict import verdict
from rpms.evals.records.checksums import rules_hash
from rpms.evals.records.run_folder import read_run
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import NASTY, contexts, write_run

LABELS = ["A", "B", "C", "D"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = {("A", 0): {"goal": NASTY, "failure_mode": "model_error", "error": NASTY}}
    wins = {label: [False, True, True] for label in LABELS}
    return write_run(tmp_path, wins, lines=lines, model_label=f"model {NASTY}")


class Elements(HTMLParser):
    """Start tags with their attributes, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_is_one_file_that_fetches_nothing(folder: Path) -> None:
    page = render_page(read_report(folder))
    elements = Elements(page).tags
    for tag, attributes in elements:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert "src" not in attributes and "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    scripts = [attributes for tag, attributes in elements if tag == "script"]
    assert [a.get("type") for a in scripts] == ["application/json", *["text/plain"] * 12, None]
    # Nothing foreign becomes markup.
    assert "<script>window" not in page and "<img" not in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["episodes"][0]["error"] == NASTY


def test_each_log_is_embedded_as_it_lies_on_disk_unless_it_is_none(folder: Path) -> None:
    run = read_run(folder)
    page = render_page(read_report(folder))
    for number, episode in enumerate(run.episodes.values()):
        packed = re.search(rf'id="log-{number}">([^<]*)<', page)
        assert packed
        log = json.loads(gzip.decompress(base64.b64decode(packed[1])))
        assert (log["condition"], log["task"]) == (episode.condition, episode.task)
    run.log_file(next(iter(run.episodes.values()))).write_text("<b>not a log</b>")
    page = render_page(read_report(folder))
    assert 'id="log-0"' not in page and 'id="log-1"' in page and "not a log" not in page


def test_the_plot_is_well_formed_and_has_every_condition(tmp_path: Path) -> None:
    names = {f"D <b>&amp; {i}": {**contexts("D")["D"], "seed": i} for i in range(12)}
    wins = {name: [True, False] for name in names}
    run = read_run(write_run(tmp_path, wins, conditions=names, logs=False))
    root = ElementTree.fromstring(str(conditions_plot(run)))
    assert root.get("role") == "img" and "Success rate by condition" in root.get("aria-label", "")
    dots = [mark for mark in root.iter() if "dot" in mark.get("class", "")]
    assert {mark.get("cx") for mark in dots} == {"50.0%"} and len(dots) == 12
    assert "".join(root.itertext()).count("50.0%") == 12


def test_a_changed_manual_is_noticed(folder: Path, tmp_path: Path) -> None:
    assert rules_changed(read_run(folder))
    assert "manual has changed" in render_page(read_report(folder))
    digest = rules_hash("alfworld")
    same = write_run(tmp_path / "same", {"A": [True]}, hashes={"rules": digest, "memory": {}})
    assert not rules_changed(read_run(same))
    assert "manual has changed" not in render_page(read_report(same))


def test_files_are_written_beside_the_run_or_where_asked(folder: Path, tmp_path: Path) -> None:
    report = read_report(folder)
    assert [file.name for file in write_report(report)] == [
        "report.md", "report.json", "report.html",
    ]  # fmt: skip
    assert json.loads((folder / "report.json").read_text())["tables"]["main"]["rows"]
    elsewhere = tmp_path / "page.html"
    assert write_report(report, elsewhere)[-1] == elsewhere
    assert elsewhere.read_text() == (folder / "report.html").read_text()
    with pytest.raises(RpmsError, match="cannot write"):
        write_report(report, elsewhere / "page.html")


def test_every_line_of_the_rules_block_can_be_explained() -> None:
    """Whatever rule a prompt shows, the page has words for its id."""
    env = get_environment("alfworld")
    texts = rule_texts("alfworld")
    home = env.first_belief(
        "You are in the middle of a room. Looking quickly around you, you see a fridge 1, "
        "a microwave 1, and a countertop 1."
    )
    goal = env.parse_goal("put a hot apple in fridge")
    rules = load_manual("alfworld").active(goal, home)
    lines = [*rules["universal"], *rules["domain"], *rules["environment"]]
    shown = [line["id"] for line in lines]
    assert "O-TOOL-001" in shown and set(shown) <= set(texts)
    assert texts["O-TOOL-001"] == "Heating is done at: <places>"


def test_a_condition_with_rules_of_its_own_is_explained_by_them(tmp_path: Path) -> None:
    """And a change of them is noticed like one of the shipped ones."""
    own = tmp_path / "rules"
    own.mkdir()
    (own / "universal.yaml").write_text("rules: [{id: U-FAIL-001, text: Never again.}]")
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    plain, shipped = contexts("B")["B"], rule_texts("alfworld")
    names = {"B": plain, "B mine": {**plain, "rules_dir": str(own)}}
    hashes = {
        "rules": rules_hash("alfworld"), "memory": {},
        "rules_of": {"B mine": rules_hash("alfworld", str(own))},
    }  # fmt: skip
    wins = {name: [True] for name in names}
    run = read_run(write_run(tmp_path / "run", wins, conditions=names, hashes=hashes))
    texts = run_rules(run)
    assert texts["L-001"] == "Sing."
    assert texts["U-FAIL-001"] == f"{shipped['U-FAIL-001']} (B mine: Never again.)"
    assert texts["U-FAIL-002"] == shipped["U-FAIL-002"]
    assert not rules_changed(run)
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Hum.}]")
    assert rules_changed(run)
    shutil.rmtree(own)
    assert rules_changed(run) and run_rules(run) == shipped


def test_every_setting_is_told_without_passwords(tmp_path: Path) -> None:
    conditions = contexts("A", "D")
    conditions["D"]["base_url"] = "https://me:secret@example.org/v1"
    del conditions["A"]["k"]
    sessions = [{"started": "2026-01-02T12:00", "commit": "abc1234",
                 "spent": {"tokens": 1200, "usd": 0.5}}]  # fmt: skip
    wins = {"A": [True], "D": [True]}
    folder = write_run(tmp_path, wins, conditions=conditions, sessions=sessions)
    text = settings_of(read_run(folder).manifest)
    assert "secret" not in text and "example.org" in text
    settings = json.loads(text)
    assert set(settings["conditions"]["D"]) == {field.name for field in fields(RunContext)}
    assert settings["conditions"]["A"]["k"] == 3, "a setting younger than the run has its default"
    assert settings["sessions"][0]["spent"] == {"tokens": 1200, "usd": 0.5}
    page = render_page(read_report(folder))
    assert escape(text) in page and "<summary>Protocol" in page
    assert "<details open" not in page and 'class="protocol" open' not in page


def test_the_answer_comes_first_and_says_when(folder: Path) -> None:
    page = render_page(read_report(folder))
    lines = verdict(read_run(folder))
    order = ["3 tasks, 12 episodes &middot; 2 Jan 2030, 03:04", 'class="plot"', *map(escape, lines),
             'aria-label="Table: Results by condition"', "<summary>Protocol"]  # fmt: skip
    assert lines and sorted(order, key=page.index) == order
    assert written("2026-11-06T13:08:24+00:00") == "6 Nov 2026, 13:08 UTC" and written("") == ""


WINS = {"A": [True, False, False, True], "B": [False, True, True, True]}
LINES = {
    ("A", 1): {"failure_mode": "wrong_termination"},
    ("A", 2): {"failure_mode": "model_error", "error": "401"},
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read_report(write_run(tmp_path_factory.mktemp("run"), WINS, lines=LINES))


def behind(report: Report, name: str) -> list[str]:
    """The condition and number of each episode of a set, by table, labels and column."""
    data = page_data(report)
    rows = [data["episodes"][number] for number in data["sets"][name]["of"]]
    return [f"{row['c']}{row['n']}" for row in rows]


def test_figures_lead_to_the_episodes_behind_them(report: Report) -> None:
    pair = "pairs/A baseline/B rules"
    for name, episodes in {
        f"{pair}/only first won": ["A0"],
        f"{pair}/only second won": ["B1"],
        f"{pair}/tasks": ["A0", "B0", "A1", "B1", "A3", "B3"],  # an error leaves its task out
        "main/A baseline/won": ["A0", "A3"],
        "main/A baseline/errors": ["A2"],
        "failures/timeout/B rules": ["B0"],
        "failures/stopped before the goal/A baseline": ["A1"],
        "causes/model error/A baseline": ["A2"],
        "types/B rules/all (4)": ["B0", "B1", "B2", "B3"],
    }.items():
        assert behind(report, name) == episodes, name


def test_every_link_of_the_page_has_its_set_and_every_set_a_link(report: Report) -> None:
    page = render_page(report)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    found = re.findall(r'href="#/episodes\?([^"]+)"', page)
    links = [link for link in found if "set=" in link]
    linked = {parse_qs(unescape(link))["set"][0] for link in links}
    assert linked == set(data["sets"]) and len(linked) == len(links)
    for episodes in data["sets"].values():
        assert episodes["of"] and max(episodes["of"]) < len(data["episodes"])
    assert "main/A baseline/errors" in linked and "main/B rules/errors" not in linked
    counts = [cell for table in report.tables if table.id != "pairs" for row in table.rows
              for cell in row if cell.behind and isinstance(cell.value, int)]  # fmt: skip
    assert len(counts) > 10 and all(len(cell.behind) == cell.value for cell in counts)


def test_episodes_and_conditions_come_in_the_plans_order(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"D": [True] * 3, "A": [True] * 3, "B": [True] * 3}, logs=False)
    file = folder / "episodes.jsonl"
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    report = read_report(folder)
    episodes = report.run.episodes.values()
    assert [(e.index, e.condition) for e in episodes] == [(n, c) for n in range(3) for c in "DAB"]
    assert [row[0].text[0] for row in report.tables[0].rows] == ["D", "A", "B"]
