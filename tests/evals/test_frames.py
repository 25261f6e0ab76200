"""Run folders as pandas tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rpms
from rpms.evals.frames import COLUMNS, KEY
from rpms.evals.run_folder import read_log, read_run
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import write_run

pandas = pytest.importorskip("pandas")
WINS = {"A": [True, False], "D": [True, True]}
ID = ["run", *KEY]


def test_a_row_for_each_episode_and_for_each_step(tmp_path: Path) -> None:
    found = rpms.load(write_run(tmp_path, WINS))
    episodes, steps = found.episodes, found.steps
    assert list(episodes.groupby("condition").success.sum()) == [1, 2]
    assert not episodes.duplicated(ID).any() and set(episodes.model) == {"sim"}
    assert len(steps) == episodes.steps.sum() and not steps.duplicated([*ID, "step"]).any()
    joined = steps.merge(episodes[[*ID, "success"]], on=ID)
    assert len(joined) == len(steps)
    assert found.episodes is episodes, "made once"


def test_an_empty_table_still_has_its_columns(tmp_path: Path) -> None:
    found = rpms.load(write_run(tmp_path, {"A": [True]}, logs=False))
    assert found.steps.empty
    for name, columns in COLUMNS.items():
        table = getattr(found, name)
        assert table.empty and list(table.columns) == [*ID, "step", *columns]


def test_several_runs_together(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, WINS) for name in ("one", "two")]
    found = rpms.load(map(str, folders))
    assert list(found.episodes.groupby("run").size()) == [4, 4]
    assert not found.episodes.duplicated(ID).any()


def test_causes_name_the_lost_episodes_and_their_steps(tmp_path: Path) -> None:
    found = rpms.load(write_run(tmp_path, WINS))
    lost = found.episodes[~found.episodes.success]
    assert list(found.causes.task) == list(lost.task) and len(lost)
    assert set(found.causes.cause) == {"drift"} and set(found.causes.step) == {4}


@pytest.mark.engine
def test_a_real_run(real_run: Path) -> None:
    run, found = read_run(real_run), rpms.load(real_run)
    assert len(found.episodes) == len(run.episodes)
    for name, columns in COLUMNS.items():
        assert list(getattr(found, name).columns) == [*ID, "step", *columns]
    assert len(found.recalls) == found.episodes.recalled.sum()
    assert found.recalls.shown.sum() == found.steps.memories_shown.sum() > 0
    shown = found.recalls[found.recalls.shown]
    assert set(shown.dropped_by) == {""} and set(shown.condition) == {"C", "D"}
    kinds = found.steps[found.steps.lacked != ""].groupby("lacked").size()
    for kind, count in kinds.items():
        assert found.episodes[f"refused_{kind}"].sum() == count
    steps = [step for e in run.episodes.values() for step in read_log(run.log_file(e))["steps"]]
    assert len(found.obedience) == sum(len(step["judged"]) for step in steps)


def test_without_pandas_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rpms.load(write_run(tmp_path, WINS, logs=False))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RpmsError, match=r"^rpms.load needs pandas.*rpms\[analysis\]'$"):
        _ = found.episodes


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"no manifest\.json"):
        rpms.load(tmp_path)
    with pytest.raises(RpmsError, match="no folder was given"):
        rpms.load([])
