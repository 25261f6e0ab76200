"""The page as text; what it does in a browser is in test_browser.py."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rpms.envs import get_environment
from rpms.evals.manifest import rules_hash
from rpms.evals.report import read_report
from rpms.evals.report.files import write_report
from rpms.evals.report.page import render_page, rule_texts, rules_changed, run_rules
from rpms.evals.report.plots import plots_of
from rpms.evals.report.svg import spread
from rpms.evals.run_folder import read_run
from rpms.nodes.manual import load_manual
from rpms.rules.manual import RULES_FOLDER
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import NASTY, contexts, write_run

LABELS = ["A", "B", "C", "D", "round 1", "round 2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = {("A", 0): {"goal": NASTY, "failure_mode": "model_error", "error": NASTY}}
    wins = {label: [False, True, True] for label in LABELS}
    return write_run(tmp_path, wins, lines=lines, model_label=f"model {NASTY}")


class Elements(HTMLParser):
    """Start tags with their attributes, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_is_one_file_that_fetches_nothing(folder: Path) -> None:
    elements = Elements(render_page(read_report(folder))).found
    for tag, attributes in elements:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert "src" not in attributes and "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    scripts = [attributes for tag, attributes in elements if tag == "script"]
    assert [a.get("type") for a in scripts] == ["application/json", *["text/plain"] * 18, None]


def test_nothing_foreign_becomes_markup(folder: Path) -> None:
    page = render_page(read_report(folder))
    assert "<script>window" not in page and "<img" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.S)
    assert data
    assert json.loads(data[1])["episodes"][0]["error"] == NASTY


def test_each_log_is_embedded_as_it_lies_on_disk(folder: Path) -> None:
    run = read_run(folder)
    page = render_page(read_report(folder))
    for number, episode in enumerate(run.episodes.values()):
        found = re.search(rf'id="log-{number}">([^<]*)<', page)
        assert found
        log = json.loads(gzip.decompress(base64.b64decode(found[1])))
        assert (log["condition"], log["task"]) == (episode.condition, episode.task)


def test_a_log_that_is_no_gzip_file_is_left_out(folder: Path) -> None:
    run = read_run(folder)
    run.log_file(next(iter(run.episodes.values()))).write_text("<b>not a log</b>")
    page = render_page(read_report(folder))
    assert 'id="log-0"' not in page and 'id="log-1"' in page and "not a log" not in page


def test_plots_are_well_formed_and_named(folder: Path) -> None:
    plots = plots_of(read_run(folder))
    assert set(plots) == {"main", "types", "square", "failures", "memory_file", "frontier"}
    for plot in plots.values():
        root = ElementTree.fromstring(str(plot))
        assert root.get("role") == "img" and root.get("aria-label")
        for mark in root.iter():
            for name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2"):
                assert -1 <= float(mark.get(name, "0")) <= 1000


def test_labels_are_spread(folder: Path) -> None:
    assert spread([10, 12, 100], gap=15) == [10, 25, 100]
    assert spread([12, 10]) == [27, 10]


def test_a_changed_manual_is_noticed(folder: Path, tmp_path: Path) -> None:
    assert rules_changed(read_run(folder))
    assert "manual has changed" in render_page(read_report(folder))
    files = [RULES_FOLDER / "universal.yaml", *sorted((RULES_FOLDER / "alfworld").glob("*.yaml"))]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
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


def test_many_conditions_still_have_a_colour(tmp_path: Path) -> None:
    names = {f"D seed {i}": {**contexts("D")["D"], "seed": i} for i in range(12)}
    folder = write_run(tmp_path, {name: [True] for name in names}, conditions=names, logs=False)
    classes = re.findall(r'class="dot (c\d+)"', plots_of(read_run(folder))["main"])
    assert len(classes) == 12 and set(classes) <= {f"c{i}" for i in range(8)}


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


def test_a_changed_manual_of_one_arm_is_noticed_too(tmp_path: Path) -> None:
    own = tmp_path / "rules"
    own.mkdir()
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    names = {"B mine": {**contexts("B")["B"], "rules_dir": str(own)}}
    hashes = {
        "rules": rules_hash("alfworld"), "memory": {},
        "rules_of": {"B mine": rules_hash("alfworld", str(own))},
    }  # fmt: skip
    run = read_run(write_run(tmp_path / "run", {"B mine": [True]}, conditions=names, hashes=hashes))
    assert not rules_changed(run)
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Hum.}]")
    assert rules_changed(run)
    shutil.rmtree(own)
    assert rules_changed(run)


def test_a_condition_with_rules_of_its_own_is_explained_by_them(tmp_path: Path) -> None:
    own = tmp_path / "rules"
    own.mkdir()
    (own / "universal.yaml").write_text("rules: [{id: U-FAIL-001, text: Never again.}]")
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    plain, shipped = contexts("B")["B"], rule_texts("alfworld")
    names = {"B": plain, "B mine": {**plain, "rules_dir": str(own)}}
    folder = write_run(tmp_path / "run", {name: [True] for name in names}, conditions=names)
    texts = run_rules(read_run(folder))
    assert texts["L-001"] == "Sing."
    assert texts["U-FAIL-001"] == f"{shipped['U-FAIL-001']} (B mine: Never again.)"
    assert texts["U-FAIL-002"] == shipped["U-FAIL-002"]
    shutil.rmtree(own)
    assert run_rules(read_run(folder)) == shipped
