"""``rpms learn --method`` and ``rpms eval --preset rivals`` from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rpms.memory_store import Note, read_header, read_notes, write_snapshot
from tests.openai_server import Answer, OpenAIServer

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--limit", "3", "--workers", "0")


def rpms(folder: Path, *words: str) -> tuple[int, str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-m", "rpms", *words], cwd=ROOT, text=True, capture_output=True,
        env={**kept, "RPMS_RESPONSE_CACHE": str(folder / "replies.sqlite")}, timeout=300,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.engine
def test_learned_without_a_model_and_evaluated_beside_ours(tmp_path: Path) -> None:
    for method in ("rpms", "trajectories", "awm"):
        out = str(tmp_path / f"m.{method}.jsonl")
        runs = str(tmp_path / "runs")
        code, told, said = rpms(
            tmp_path, "learn", "--method", method, "--out", out, "--runs", runs, *SMALL
        )
        assert code == 0, said
        assert "from 3 episodes" in told and not list(tmp_path.glob("*.round*"))
    header = read_header(tmp_path / "m.awm.jsonl")
    assert (header.method, header.learned_by, header.written_by) == ("awm", ["sim"], "")
    assert header.sources[0].startswith("sim, alfworld generated_seen, 3 tasks")
    code, _, said = rpms(
        tmp_path, "eval", "--preset", "rivals", "--memory", str(tmp_path / "m.{method}.jsonl"),
        "--split", "generated_unseen", "--limit", "1", "--workers", "0", "--out",
        str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 2 and "no memory of method 'expel'" in said and said.count("\n") == 1
    for method in ("expel", "reasoningbank"):
        note = Note(id="n", kind="insight", text="Put the object in the microwave.")
        write_snapshot(tmp_path / f"m.{method}.jsonl", "alfworld", [note], method=method)
    code, told, said = rpms(
        tmp_path, "eval", "--preset", "rivals", "--memory", str(tmp_path / "m.{method}.jsonl"),
        "--split", "generated_unseen", "--limit", "1", "--workers", "0", "--max-steps", "3",
        "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 0, said
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    played = {one["condition"]: one for one in map(json.loads, lines)}
    assert len(played) == 16 and not any(one["error"] for one in played.values())
    assert all(one["recalled"] for name, one in played.items() if name.endswith(("expel", "awm")))
    assert played["D memory=reflexion"]["recalled"] == 0


def test_the_planner_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    for method, told in (("expel", "'sim' writes none"), ("reflexion", "learns nothing before"),
                         ("nobody", "unknown memory method 'nobody'")):  # fmt: skip
        code, _, said = rpms(
            tmp_path, "learn", "--method", method, "--out", str(tmp_path / "m.jsonl"), *SMALL
        )
        assert code == 2 and told in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engine
def test_the_runs_model_writes_the_texts(tmp_path: Path, openai_server: OpenAIServer) -> None:
    runs = str(tmp_path / "runs")
    code, _, said = rpms(
        tmp_path, "learn", "--out", str(tmp_path / "m.rpms.jsonl"), "--runs", runs, *SMALL
    )
    assert code == 0, said

    def rule(request: dict[str, Any]) -> Answer:
        asked = json.dumps(request["messages"])
        if "ADD: a new insight" in asked:
            return Answer("ADD: Look first.\nADD: Look first.")
        return Answer("# Memory Item 1\n## Title a\n## Description b\n## Content c")

    openai_server.plays_by(rule)
    model = ("--model", "openai:writer", "--base-url", openai_server.url)
    for method in ("expel", "reasoningbank"):
        out = tmp_path / f"m.{method}.jsonl"
        code, told, said = rpms(
            tmp_path, "learn", "--method", method, "--out", str(out), "--from-runs", runs, *model
        )
        assert code == 0, said
        header = read_header(out)
        assert (header.method, header.written_by) == (method, "openai:writer")
        assert header.learned_by == ["sim"] and f"{header.entries} entries" in told
        assert len(read_notes(out, "alfworld", method)) == header.entries > 0
        assert bool(header.unread) == (method == "expel") == ("had no form" in said)
