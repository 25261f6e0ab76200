"""The page as text; what it does in a browser is in test_browser.py."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.report import Report, read_report
from rpms.evals.analysis.report.page import (
    render_page,
    rules_changed,
    step_pages,
    write_page,
    written,
)
from rpms.evals.analysis.report.rules import rule_texts, run_rules
from rpms.evals.records.checksums import rules_hash
from rpms.evals.records.run_folder import read_run
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import NASTY, contexts, write_run
from tests.page_data import data_of

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


def test_pages_fetch_nothing_and_run_no_foreign_script(folder: Path) -> None:
    report = read_report(folder)
    steps = dict(step_pages(report, "report.html"))
    for page in (render_page(report), *steps.values()):
        elements = Elements(page).tags
        for tag, attributes in elements:
            assert tag not in ("link", "img", "iframe", "object", "base")
            assert "src" not in attributes and "style" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
            assert (attributes.get("href") or "#").startswith(("#", "../report.html#"))
        # Nothing foreign becomes markup.
        assert "<script>window" not in page and "<img" not in page
        (policy,) = [a["content"] for _, a in elements if "http-equiv" in a]
        script = page.rpartition("<script>")[2].partition("</script>")[0]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert policy and f"script-src 'sha256-{digest}'" in policy
    first = data_of(render_page(report))["episodes"][0]
    assert first["error"] == NASTY and first["page"].removeprefix("report-steps/") in steps


def test_the_page_of_a_task_has_each_log_as_it_lies_on_disk(folder: Path) -> None:
    run = read_run(folder)
    for _, page in step_pages(read_report(folder), "report.html"):
        for number, row in enumerate(data_of(page)["episodes"]):
            packed = re.search(rf'id="log-{number}">([^<]*)<', page)
            assert packed
            log = json.loads(gzip.decompress(base64.b64decode(packed[1])))
            assert (log["condition"], log["task"]) == (row["c"], row["task"])
    run.log_file(next(iter(run.episodes.values()))).write_text("<b>not a log</b>")
    _, page = next(step_pages(read_report(folder), "report.html"))
    assert 'id="log-0"' not in page and 'id="log-1"' in page and "not a log" not in page


def test_the_page_does_not_grow_with_the_steps(tmp_path: Path) -> None:
    """The logs lie in the pages of the tasks; a row of the list takes little of the page."""
    wins = {"A": [True] * 40, "D": [True] * 40}
    bare, logged = (write_run(tmp_path / name, wins, logs=name == "logged")
                    for name in ("bare", "logged"))  # fmt: skip
    sizes = [len(render_page(read_report(folder))) for folder in (bare, logged)]
    assert sizes[1] < sizes[0] + 40_000


def test_a_changed_manual_is_noticed(folder: Path, tmp_path: Path) -> None:
    assert rules_changed(read_run(folder))
    assert "manual has changed" in render_page(read_report(folder))
    digest = rules_hash("alfworld")
    same = write_run(tmp_path / "same", {"A": [True]}, hashes={"rules": digest, "memory": {}})
    assert not rules_changed(read_run(same))
    assert "manual has changed" not in render_page(read_report(same))


def test_files_are_written_beside_the_run_or_where_asked(folder: Path, tmp_path: Path) -> None:
    report = read_report(folder)
    assert write_page(report) == folder / "report.html"
    elsewhere = tmp_path / "page.html"
    assert write_page(report, elsewhere) == elsewhere
    assert len([*(folder / "report-steps").iterdir()]) == 3
    assert len([*(tmp_path / "page-steps").iterdir()]) == 3
    with pytest.raises(RpmsError, match="cannot write"):
        write_page(report, elsewhere / "page.html")


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


def test_the_time_of_a_run_is_written_out() -> None:
    assert written("2026-11-06T13:08:24+00:00") == "6 Nov 2026, 13:08 UTC" and written("") == ""


WINS = {"A": [True, False, False, True], "B": [False, True, True, True]}
LINES = {
    ("A", 1): {"failure_mode": "wrong_termination"},
    ("A", 2): {"failure_mode": "model_error", "error": "401"},
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read_report(write_run(tmp_path_factory.mktemp("run"), WINS, lines=LINES))


def test_figures_lead_to_the_episodes_behind_them(report: Report) -> None:
    page = html.unescape(render_page(report))
    assert report.verdict and all(line in page for line in report.verdict)
    assert "#/episodes?counted=1&c=B&o=won" in page
    assert "#/episodes?c=A&failure_mode=wrong_termination" in page


def test_episodes_and_conditions_come_in_the_plans_order(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"D": [True] * 3, "A": [True] * 3, "B": [True] * 3}, logs=False)
    file = folder / "episodes.jsonl"
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    report = read_report(folder)
    episodes = report.run.episodes.values()
    assert [(e.index, e.condition) for e in episodes] == [(n, c) for n in range(3) for c in "DAB"]
    assert [row[0].text[0] for row in report.tables[0].rows] == ["D", "A", "B"]
