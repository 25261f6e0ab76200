"""``rpms export`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import Rpms
from tests.evals.sample_runs import episode, slug, write_run


def test_a_line_for_each_episode(tmp_path: Path, rpms: Rpms) -> None:
    run = write_run(tmp_path / "run", {"A": [True, False], "D": [True, True]})
    out = tmp_path / "new" / "out.jsonl"
    lost = episode("A", 1, False)
    (run / "steps" / slug("A") / f"{slug(lost['task'])}.json.gz").unlink()
    done = rpms("export", run, "--format", "atif", "--out", out)
    assert done.code == 0
    assert len([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]) == 3
    assert "3 episodes; 1 have no step log that can be read and were left out" in done.out
    assert [file.name for file in out.parent.iterdir()] == ["out.jsonl"]


@pytest.mark.engine
def test_the_expert_plays_under_every_arm(tmp_path: Path, rpms: Rpms) -> None:
    words = ("export", "--expert", "--format", "chat", "--conditions", "A,D,D", "--limit", "7",
             "--mistakes", "0.2", "--arm", "short:condition=B,without_rules=universal",
             "--workers", "0")  # fmt: skip
    done = rpms(*words, "--out", tmp_path / "a.jsonl")
    assert done.code == 0
    rows = [json.loads(line) for line in (tmp_path / "a.meta.jsonl").read_text().splitlines()]
    assert {row["condition"] for row in rows} == {"A", "D", "short"}
    assert "7 of 7 episodes" in done.err and f"{len(rows)} lines" in done.out
