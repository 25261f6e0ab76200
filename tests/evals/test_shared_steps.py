"""The steps that two arms share, and the prompts that differ there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.shared_steps import shared_steps
from rpms.evals.records.run_folder import Run, read_run
from tests.evals.sample_runs import contexts, write_run

GRAPH = {"mine": {"graph": {"path": "own:mine", "hash": "1" * 12}}}
ARMS = {"D": [True, True], "mine": [True, True]}
SAME = {label: contexts("D")["D"] for label in ARMS}


def prompted(run: Run, condition: str, prompts: list[str], actions: list[str]) -> None:
    """Give every episode of an arm these prompts and actions."""
    for episode in run.judged(condition):
        file = run.log_file(episode)
        log = json.loads(gzip.decompress(file.read_bytes()))
        log["messages"] = prompts
        steps = [dict(log["steps"][0], step=number + 1, action=action,
                      prompt=[["user", number]] if prompts else [])
                 for number, action in enumerate(actions)]  # fmt: skip
        file.write_bytes(gzip.compress(json.dumps({**log, "steps": steps}).encode()))


@pytest.mark.parametrize(
    ("prompts", "counts"),
    [("abc", (4, 0)), ("xbc", (4, 2)), ("abx", (4, 0)), ("", (0, 0))],
)
def test_steps_count_up_to_the_first_other_action(
    prompts: str, counts: tuple[int, int], tmp_path: Path
) -> None:
    run = read_run(write_run(tmp_path, ARMS, conditions=SAME))
    prompted(run, "D", [*"abc"], ["look", "go", "open"])
    prompted(run, "mine", [*prompts], ["look", "wait", "open"])
    assert shared_steps(run, "D", "mine") == counts


@pytest.mark.parametrize("swapped", [GRAPH, {}])
def test_the_verdict_counts_them_for_a_graph_of_ones_own(swapped: Any, tmp_path: Path) -> None:
    folder = write_run(tmp_path, ARMS, swapped=swapped, conditions=SAME)
    prompted(read_run(folder), "D", [*"abc"], ["look", "go", "open"])
    prompted(read_run(folder), "mine", [*"axc"], ["look", "go", "open"])
    (line,) = [line for line in read_report(folder).verdict if line.startswith("mine vs D")]
    assert ("prompts differ at 2 of 6 shared steps" in line) == bool(swapped)
