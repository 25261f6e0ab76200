"""The pictures of the README: there, small, and made anew by one command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rpms.evals.report import Report, read_report
from rpms.evals.report.page import write_report
from rpms.vocabulary.errors import RpmsError
from tests.conftest import BROWSER, BROWSERS
from tests.evals.sample_runs import write_run
from tools import screenshots

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 150_000


def is_picture(file: Path) -> bool:
    data = file.read_bytes()
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP" and 5_000 < len(data) < LARGEST


@pytest.fixture
def sample(tmp_path: Path) -> Report:
    wins = {"A": [False] * 4, "B": [True] * 4, "C": [False] * 4, "D": [False, True] * 2}
    return read_report(write_run(tmp_path / "run", wins))


def test_the_readme_shows_an_episode_and_results_and_says_whose() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = [ROOT / name for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)]
    assert {file.name for file in shown} == {"results.webp", "episode.webp"}
    assert all(map(is_picture, shown))
    assert "built-in planner `sim`, which is no language model" in " ".join(text.split())


@pytest.mark.browser
def test_pictures_are_made_of_a_report(sample: Report, tmp_path: Path) -> None:
    views = {"results": "#/results", "episode": screenshots.telling_step(sample)}
    page = write_report(sample)[-1]
    pictures = screenshots.take(page, views, str(BROWSER), tmp_path / "images")
    assert [file.name for file in pictures] == ["results.webp", "episode.webp"]
    assert all(map(is_picture, pictures))


def test_a_step_with_a_fate_of_either_kind_is_found(sample: Report, tmp_path: Path) -> None:
    assert re.fullmatch(r"#/episode/D/[\w.%-]+/1", screenshots.telling_step(sample))
    lost = read_report(write_run(tmp_path / "lost", {"A": [True], "D": [False]}))
    with pytest.raises(RpmsError, match="dropped one memory and kept another"):
        screenshots.telling_step(lost)


def test_the_same_browser_as_in_the_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert screenshots.BROWSERS == BROWSERS
    monkeypatch.setenv("PATH", str(tmp_path))
    assert screenshots.main([]) == 1
    assert capsys.readouterr().err.startswith("no browser found; looked for chromium")
