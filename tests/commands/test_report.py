"""``rpms report`` and ``export`` from the command line."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from tests.command_line import Rpms
from tests.evals.sample_runs import LABEL, write_run


@pytest.fixture
def rpms(rpms: Rpms, monkeypatch: pytest.MonkeyPatch) -> Rpms:
    monkeypatch.setenv("COLUMNS", "100")
    return rpms


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    wins = {"A": [False] * 6, "B": [True] * 6, "C": [False] * 6, "D": [True] * 6}
    return write_run(tmp_path / "run", wins)


def test_report_is_short_and_writes_everything(rpms: Rpms, folder: Path, tmp_path: Path) -> None:
    done = rpms("report", folder)
    assert done.code == 0 and done.err == ""
    flat = " ".join(done.out.split())
    assert "B rules" in flat and "100.0% [61.0, 100.0]" in flat and flat.count(LABEL) == 2
    # Six discordant pairs, all one way.
    assert "6:0 discordant games, p = 0.0312 (0.0938 after Holm" in flat
    assert done.out.count("Protocol split: alfworld generated_unseen") == 1
    titles = ("Verdict", "Results by condition", "Rules x memory", "Causes of lost episodes")
    lines = done.out.splitlines()
    assert [line for line in lines if line in titles] == [*titles]
    assert "--all: types, pairs, failures, steps, errors, mechanisms, tokens" in flat
    page = folder / "report.html"
    assert page.stat().st_size > 1000 and f"written: {page}" in done.out
    assert max(map(len, lines)) <= max(100, len(f"written: {page}"))
    markdown = rpms("report", folder, "--format", "markdown").out
    assert markdown.count("Protocol: split") == 1 and markdown.count("\n## ") == 10
    document = json.loads(rpms("report", folder, "--json", "--html", tmp_path / "page.html").out)
    assert (tmp_path / "page.html").stat().st_size > 1000
    assert document["model_label"] == LABEL and document["commit"] == "abc1234"
    assert all(f"- {line}" in markdown for line in document["verdict"])


def test_the_page_of_an_unfinished_run_is_opened(
    rpms: Rpms, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    file = folder / "episodes.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    assert rpms("report", folder, "--open").code == 0
    other = tmp_path / "other"
    assert rpms("report", folder, "--html", other, "--format", "csv", "--open").code == 0
    assert opened == [(folder / "report.html").as_uri(), other.as_uri()]
    assert "This run is not finished: 23 of 24 episodes" in other.read_text()


def test_tables_are_chosen_by_name_and_printed_in_a_format(rpms: Rpms, folder: Path) -> None:
    some = rpms("report", folder, "--table", "pairs", "--table", "main").out
    assert some.index("Pairwise comparisons") < some.index("Results by condition")
    assert "Rules x memory" not in some and "--all: square, types, failures" in some
    words = ("report", folder, "--table", "main", "--format")
    assert rpms(*words, "csv").out.splitlines()[1].startswith("A baseline,off,off,6,0,0.0,0.0,0.39")
    latex = rpms(*words, "latex").out
    assert latex.count(r"\begin{tabular}") == 1 and f"by condition; model: {LABEL}}}" in latex
    assert not (folder / "report.html").exists(), "only a whole report as text writes the page"
    assert rpms(*words, "markdown").out.count("\n## ") == 1
    assert [*json.loads(rpms(*words[:-1], "--json").out)["tables"]] == ["main"]
    assert rpms("report", folder, "--format", "csv").out.count("\n# ") == 9
    against = rpms("report", folder, "--against", "b", "--table", "pairs").out
    assert "A vs B: no significant difference" in against and "D vs B" in against
    assert "for 3 comparisons" in " ".join(against.split()) and "C vs A" not in against
    wrong = rpms("report", folder, "--table", "pears")
    assert wrong.code == 2 and wrong.err.count("\n") == 1 and not (folder / "report.html").exists()
    assert "this run has no table 'pears'; did you mean 'pairs'?" in wrong.err
    assert rpms("report", folder, "--format", "word").code == 2
    every = rpms("report", folder, "--all").out
    assert "Tokens and cost" in every and "Other tables" not in every


def test_python_gets_the_same_without_a_word(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import rpms as package

    report = package.report(folder)
    assert report.as_json()["played"] == 24
    html = report._repr_html_()
    assert report.verdict[1].partition(":")[0] in html and html.count("<table ") == 3
    assert "Other tables: types, pairs" in html
    assert len(repr(report.tables)) < 1000 and repr(report).endswith("errors, mechanisms, tokens>")
    assert capsys.readouterr().out == "" and not (folder / "report.html").exists()


@pytest.mark.engine
def test_the_expert_plays_under_every_arm(tmp_path: Path, rpms: Rpms) -> None:
    words = ("export", "--expert", "--conditions", "A,D,D", "--limit", "7",
             "--mistakes", "0.2", "--arm", "short:condition=B,without_rules=universal",
             "--workers", "0")  # fmt: skip
    done = rpms(*words, "--out", tmp_path / "a.jsonl")
    assert done.code == 0
    rows = [json.loads(line) for line in (tmp_path / "a.meta.jsonl").read_text().splitlines()]
    assert {row["condition"] for row in rows} == {"A", "D", "short"}
    assert "of 7 episodes" in done.err and f"{len(rows)} lines" in done.out
