"""One damaged byte in a step log, or a log of another form, costs its steps and nothing else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rpms.evals.report import read_report
from rpms.evals.report.page import render_page
from rpms.evals.run_folder import is_damaged, read_log, read_run
from tests.evals.sample_runs import episode, step_log, write_run

LOG = step_log(episode("D", 1, True))


def packed(file: Path, log: Any) -> Path:
    file.write_bytes(gzip.compress(json.dumps(log).encode(), mtime=0))
    return file


def test_a_log_comes_back_as_it_is(tmp_path: Path) -> None:
    file = packed(tmp_path / "log.json.gz", LOG)
    assert read_log(file) == LOG and not is_damaged(file)
    assert read_log(tmp_path / "none") is None and not is_damaged(tmp_path / "none")


def test_any_damaged_byte_is_found(tmp_path: Path) -> None:
    whole = packed(tmp_path / "log.json.gz", LOG).read_bytes()
    chance, missed = Random(1), 0
    for number in range(200):
        at = chance.randrange(10, len(whole))  # the first ten bytes say nothing about the log
        file = tmp_path / f"{number}.json.gz"
        flipped = bytes([whole[at] ^ (1 << chance.randrange(8))])
        file.write_bytes(whole[:at] + flipped + whole[at + 1 :])
        missed += not is_damaged(file)
        assert read_log(file) in (None, LOG)
    assert missed == 0


@pytest.mark.parametrize(
    "change",
    [
        {"messages": "x"},
        {"messages": []},
        {"steps": {}},
        {"steps": [{}]},
        {"steps": [{**LOG["steps"][0], "seconds": 1e300}]},
        {"steps": [{**LOG["steps"][0], "usage": {"prompt_tokens": 10**40}}]},
        {"steps": [{**LOG["steps"][0], "prompt": [["system", 999]]}]},
        {"steps": [{**LOG["steps"][0], "recalls": [None]}]},
    ],
    ids=str,
)
def test_a_log_of_another_form_is_none(change: dict[str, Any], tmp_path: Path) -> None:
    assert read_log(packed(tmp_path / "log.json.gz", {**LOG, **change})) is None


def test_a_report_says_how_many_logs_are_damaged(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [True, False], "D": [True, True]})
    run = read_run(folder)
    broken = next(iter(run.episodes.values()))
    file = run.log_file(broken)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    report = read_report(folder)
    assert report.run.damaged_logs == {broken.key}
    assert "1 step logs are damaged: their episodes count" in report.as_markdown()
    assert report.run.done == 4
    page = render_page(report)
    assert "1 step logs are damaged" in page
    assert 'id="log-0"' not in page and 'id="log-1"' in page
