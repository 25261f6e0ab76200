"""``rpms report`` and ``rpms compare`` from the command line."""

from __future__ import annotations

import json
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


def test_report_prints_tables_and_writes_files(rpms: Rpms, folder: Path) -> None:
    done = rpms("report", folder)
    assert done.code == 0 and done.err == ""
    flat = " ".join(done.out.split())
    assert "B rules" in flat and "100.0% [61.0, 100.0]" in flat and LABEL in flat
    assert "0.0312" in flat  # six discordant pairs, all one way
    for name in ("report.md", "report.json", "report.html"):
        assert (folder / name).stat().st_size > 1000 and str(folder / name) in done.out
    assert max(map(len, done.out.splitlines())) <= max(100, len(f"written: {folder}/report.json"))


def test_figures_are_never_broken_in_a_narrow_terminal(
    rpms: Rpms, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = rpms("report", folder).out
    assert "100.0% 6/6 [61.0, 100.0]" in out and "…" not in out


def test_report_as_json_prints_one_object(rpms: Rpms, folder: Path) -> None:
    done = rpms("report", folder, "--json")
    found = json.loads(done.out)
    assert found["model_label"] == LABEL and found["commit"] == "abc1234"
    assert found == json.loads((folder / "report.json").read_text())


def test_the_page_goes_where_it_is_asked_to(rpms: Rpms, folder: Path, tmp_path: Path) -> None:
    assert rpms("report", folder, "--html", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").is_file() and not (folder / "report.html").exists()


def test_compare_names_what_changed(rpms: Rpms, folder: Path, tmp_path: Path) -> None:
    wins = {"A": [True] + [False] * 5, "B": [True] * 6}
    other = write_run(tmp_path / "other", wins, commit="fff0000")
    done = rpms("compare", folder, other)
    flat = " ".join(done.out.split())
    assert done.code == 0 and "commit: abc1234 -> fff0000" in flat
    assert "Tasks whose outcome changed: 1" in flat
    found = json.loads(rpms("compare", folder, other, "--json").out)
    assert found["tables"]["summary"]["rows"][0]["only second won"] == 1


def test_the_protocol_is_printed_once(rpms: Rpms, folder: Path) -> None:
    out = rpms("report", folder).out
    assert out.count("Protocol split: alfworld generated_unseen") == 1
    assert (folder / "report.md").read_text().count("Protocol: split") > 5


def test_other_protocols_are_refused_unless_told(rpms: Rpms, folder: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", {"A": [True] * 6}, settings={"max_steps": 30})
    done = rpms("compare", folder, other)
    assert done.code == 2 and done.out == "" and len(done.err.splitlines()) == 1
    assert "steps: 50 -> 30" in done.err and "--allow-differences" in done.err
    done = rpms("compare", folder, other, "--allow-differences")
    assert done.code == 0 and "steps: 50 -> 30" in done.out


def test_any_number_of_runs_and_other_labels(rpms: Rpms, folder: Path, tmp_path: Path) -> None:
    others = [write_run(tmp_path / name, {"D scf=off": [True] * 6}) for name in ("x", "y")]
    done = rpms("compare", folder, *others, "--map", "D scf=off=D")
    flat = " ".join(done.out.split())
    assert done.code == 0 and "Models x conditions" in flat and "Each run against run" in flat
    assert "x: D, scf: occupancy -> off" in flat
    assert rpms("compare", folder).err == "rpms: give at least two runs to compare\n"


def test_python_gets_the_same_without_a_word(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import rpms as package

    other = write_run(tmp_path / "other", {"B layout=paper": [True] * 6})
    report = package.report(folder)
    found = package.compare([str(folder), other], map={"B layout=paper": "B"})
    assert [table.id for table in found.tables] == ["summary", "changes", "models"]
    assert report.as_json()["played"] == 24 and "# Runs compared" in found.as_markdown()
    assert package.compare([folder, other], map=["B layout=paper=B"]).as_json() == found.as_json()
    assert capsys.readouterr().out == "" and not (folder / "report.md").exists()


@pytest.mark.parametrize("words", [("report",), ("compare", "{run}")])
def test_a_folder_that_is_no_run_is_one_line(
    rpms: Rpms, folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = rpms(*(word.format(run=folder) for word in words), tmp_path)
    assert done.code == 2 and done.out == ""
    assert done.err.splitlines() == [
        f"rpms: no manifest.json in {tmp_path}; give a folder that 'rpms eval' wrote"
    ]
