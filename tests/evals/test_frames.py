"""Run folders as pandas tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rpms
from rpms.evals.analysis.frames import COLUMNS, KEY
from rpms.evals.records.run_folder import read_log, read_run
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import write_run

WINS = {"A": [True, False], "D": [True, True]}
ID = ["run", *KEY]


def test_a_row_for_each_episode_and_for_each_step(tmp_path: Path) -> None:
    frames = rpms.load(write_run(tmp_path, WINS))
    assert frames.episodes.columns.is_unique and frames.steps.columns.is_unique
    episodes, steps = frames.episodes, frames.steps
    assert list(episodes.groupby("condition").success.sum()) == [1, 2]
    assert not episodes.duplicated(ID).any() and set(episodes.model) == {"sim"}
    assert len(steps) == episodes.steps.sum() and not steps.duplicated([*ID, "step"]).any()
    joined = steps.merge(episodes[[*ID, "success"]], on=ID)
    assert len(joined) == len(steps)
    assert frames.episodes is episodes, "made once"


def test_an_empty_table_still_has_its_columns(tmp_path: Path) -> None:
    frames = rpms.load(write_run(tmp_path, {"A": [True]}, logs=False))
    assert frames.steps.empty
    for name, columns in COLUMNS.items():
        table = getattr(frames, name)
        assert table.empty and list(table.columns) == [*ID, "step", *columns]


def test_several_runs_together_and_where_each_lost_episode_went_wrong(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, WINS) for name in ("one", "two")]
    frames = rpms.load(map(str, folders))
    assert list(frames.episodes.groupby("run").size()) == [4, 4]
    assert not frames.episodes.duplicated(ID).any()
    lost = frames.episodes[~frames.episodes.success]
    assert len(lost) and set(lost.cause) == {"belief error"} and set(lost.cause_step) == {4}
    assert list(rpms.load(*folders).episodes.run) == list(frames.episodes.run)


@pytest.mark.engine
def test_a_real_run(real_run: Path) -> None:
    run, frames = read_run(real_run), rpms.load(real_run)
    assert len(frames.episodes) == len(run.episodes)
    for name, columns in COLUMNS.items():
        assert list(getattr(frames, name).columns) == [*ID, "step", *columns]
    assert len(frames.recalls) == frames.steps.recalled.sum() <= frames.episodes.recalled.sum()
    assert frames.recalls.shown.sum() == frames.steps.memories_shown.sum() > 0
    shown = frames.recalls[frames.recalls.shown]
    assert set(shown.dropped_by) == {""} and set(shown.condition) == {"C", "D"}
    steps = [step for e in run.episodes.values() for step in read_log(run.log_file(e))["steps"]]
    assert len(frames.compliance) == sum(len(step["judged"]) for step in steps)


def test_the_frame_says_which_episodes_count(tmp_path: Path) -> None:
    """The rate of the report is a groupby of the frame."""
    error = {("A", 0): {"failure_mode": "model_error"}}
    folder = write_run(tmp_path, WINS, lines=error, logs=False)
    episodes = rpms.load(folder).episodes
    assert list(episodes.counted) == [False, True, True, True] and episodes.final.all()
    tasks = episodes[episodes.counted].groupby(["condition", "task"]).success.mean()
    rows = rpms.report(folder).as_json()["tables"]["main"]["rows"]
    rates = [row["success rate"]["share"] for row in rows]
    assert list(tasks.groupby("condition").mean()) == rates == [0, 1]


def test_what_cannot_be_loaded_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RpmsError, match=r"no manifest\.json"):
        rpms.load(tmp_path)
    for none in ((), ([],)):
        with pytest.raises(RpmsError, match="no folder was given"):
            rpms.load(*none)
    frames = rpms.load(write_run(tmp_path, WINS, logs=False))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RpmsError, match=r"^pandas is not installed: .*\.\[report\]' in a clone$"):
        _ = frames.episodes
