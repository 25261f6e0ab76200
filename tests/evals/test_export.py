"""Episodes as ATIF trajectories."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.export import export_run, logged_episodes, prompt_of, trajectory
from rpms.evals.run_folder import read_run
from tests.evals.sample_runs import write_run

# The fields of ATIF v1.7, as far as they are used here; anything else is refused by readers.
ROOT = {"schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "notes",
        "extra"}  # fmt: skip
STEP = {"step_id", "timestamp", "source", "message", "extra"}
AGENT_STEP = STEP | {"reasoning_content", "tool_calls", "observation", "metrics", "llm_call_count"}
METRICS = {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"}


def check(document: dict[str, Any]) -> None:
    """What a validator of the format asks for."""
    assert set(document) <= ROOT and document["schema_version"].startswith("ATIF-v1.")
    assert {"name", "version"} <= set(document["agent"])
    assert [step["step_id"] for step in document["steps"]] == list(
        range(1, len(document["steps"]) + 1)
    )
    for step in document["steps"]:
        assert step["source"] in ("system", "user", "agent") and isinstance(step["message"], str)
        assert set(step) <= (AGENT_STEP if step["source"] == "agent" else STEP)
        assert datetime.fromisoformat(step["timestamp"]).tzinfo
        assert set(step.get("metrics", {})) <= METRICS
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        for result in step.get("observation", {"results": []})["results"]:
            assert result.get("source_call_id") in {None, *calls}


def test_an_episode_as_a_trajectory(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"D": [True, False]}))
    for played in logged_episodes(run, ["D"]):
        document = trajectory(played)
        check(document)
        agent = [step for step in document["steps"] if step["source"] == "agent"]
        assert [s["message"] for s in agent] == [step["reply"] for step in played.log["steps"]]
        assert [s["tool_calls"][0]["arguments"]["action"] for s in agent] == [
            step["action"] for step in played.log["steps"]
        ]
        assert [s["observation"]["results"][0]["extra"]["refused"] for s in agent] == [
            step["failed"] for step in played.log["steps"]
        ]
        assert document["extra"]["success"] is played.episode.success
        assert document["final_metrics"]["total_prompt_tokens"] == played.episode.prompt_tokens
        assert (
            "prompt" not in agent[0]["extra"] and "total_cost_usd" not in document["final_metrics"]
        )
        assert agent[0]["extra"]["rules"] and agent[0]["extra"]["memories"] == ["m1"]
        last = trajectory(played, prompts=True)["steps"][-1]["extra"]["prompt"]
        assert last == prompt_of(played.log, played.log["steps"][-1])


@pytest.mark.engine
def test_a_real_run_as_lines_and_as_files(real_run: Path, tmp_path: Path) -> None:
    run = read_run(real_run)
    done = export_run(run, "atif", tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert len(lines) == done.episodes == len(run.episodes) and done.without_log == 0
    assert len({line["trajectory_id"] for line in lines}) == len(lines)
    for line in lines:
        check(line)
    assert export_run(run, "atif", tmp_path / "some", ["D"]).episodes == len(run.played("D"))
    files = sorted((tmp_path / "some").iterdir())
    assert [json.loads(file.read_text()) for file in files] == sorted(
        (line for line in lines if line["extra"]["condition"] == "D"),
        key=lambda line: line["trajectory_id"],
    )
