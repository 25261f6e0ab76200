"""``rpms learn`` when something goes wrong: nothing is lost, and nothing is learned unasked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.memory_store import read_snapshot
from tests.evals.sample_runs import write_run
from tests.openai_server import Answer, OpenAIServer
from tests.processes import PATIENCE_S, wait_until

ROOT = Path(__file__).resolve().parents[2]


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.Popen(
        [sys.executable, "-m", "rpms", "learn", "--out", str(folder / "m.jsonl"), *words],
        cwd=ROOT, env={**kept, "RPMS_RESPONSE_CACHE": str(folder / "replies.sqlite")}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def learn(folder: Path, *words: str) -> tuple[int, str, str]:
    process = start(folder, *words)
    told, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, told, said


def played(folder: Path, number: int = 1) -> list[dict[str, Any]]:
    file = folder / "m.jsonl.runs" / f"round{number}" / "episodes.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


@pytest.mark.engine
def test_a_failed_episode_costs_the_others_nothing_and_is_played_again(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    goals = [t["goal"] for t in get_environment("alfworld").tasks("generated_seen", 3)]
    assert len(set(goals)) == 3

    def rule(request: dict[str, Any]) -> Answer:
        broken = goals[1] in json.dumps(request["messages"])
        return Answer(status=400, error="no such thing") if broken else Answer("Action: look")

    openai_server.plays_by(rule)
    words = ("--limit", "3", "--max-steps", "2", "--workers", "0", "--model", "openai:m",
             "--base-url", openai_server.url)  # fmt: skip
    code, told, said = learn(tmp_path, *words)
    assert code == 2, said
    assert "from 2 episodes" in told
    assert "1 episodes ended in an error; what the others taught is kept. Run the same" in said
    bad = next(line for line in played(tmp_path) if line["failure_mode"] == "model_error")
    assert f"not learned from: {bad['task']}: " in said and "no such thing" in said
    header, _ = read_snapshot(tmp_path / "m.jsonl")
    assert header.learned_by == ["openai:m"] and "2 of 3 episodes" in header.sources[0]
    openai_server.plays("Action: look")
    code, told, said = learn(tmp_path, *words)
    assert code == 0 and "from 3 episodes" in told and "error" not in said
    assert [line["task"] for line in played(tmp_path)[3:]] == [bad["task"]]
    assert "of 3 episodes" not in read_snapshot(tmp_path / "m.jsonl")[0].sources[0]


@pytest.mark.engine
def test_an_interrupted_round_goes_on_where_it_stopped(tmp_path: Path) -> None:
    words = ("--limit", "6", "--workers", "1", "--concurrency", "1")
    process = start(tmp_path, *words)
    try:
        wait_until(lambda: len(played(tmp_path)) >= 2, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130 and "Run the same command again to go on." in said
    before = played(tmp_path)
    assert 2 <= len(before) < 6 and not (tmp_path / "m.jsonl").exists()
    assert learn(tmp_path, *words)[0] == 0
    after = played(tmp_path)
    assert after[: len(before)] == before
    assert len(after) == len({line["task"] for line in after}) == 6
    assert read_snapshot(tmp_path / "m.jsonl")[1]


@pytest.mark.parametrize(
    "words",
    [
        ("--split", "generated_unseen"),
        ("--condition", "D"),
        ("--condition", "E", "--model", "first"),
    ],
)
def test_nothing_but_rules_only_on_a_learning_split_is_played_unasked(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    code, _, said = learn(tmp_path, *words, "--limit", "1")
    assert code == 2 and len(said.splitlines()) == 1 and "--allow" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engine
def test_a_policy_may_be_learned_from_if_the_user_says_so(tmp_path: Path) -> None:
    words = ("--condition", "E", "--model", "first", "--limit", "2", "--workers", "0")
    code, _, said = learn(tmp_path, *words, "--allow", "a policy's memory")
    assert code == 0, said
    header, entries = read_snapshot(tmp_path / "m.jsonl")
    assert header.learned_by == ["first"] and entries
    assert header.sources[0].startswith("first, alfworld generated_seen, 2 tasks, 1 round of")
    assert (
        "condition E, with memory, guard policy (allowed: a policy's memory)" in (header.sources[0])
    )


def test_recorded_runs_of_another_kind_are_refused_in_one_line(tmp_path: Path) -> None:
    runs = write_run(tmp_path / "runs", {"D": [True]}, logs=False)
    code, _, said = learn(tmp_path, "--from-runs", str(runs))
    assert code == 2 and len(said.splitlines()) == 1
    assert "not a learning split, with memory" in said and "--allow" in said
    assert not (tmp_path / "m.jsonl").exists()


@pytest.mark.engine
def test_memory_is_learned_by_the_rules_one_gives(tmp_path: Path) -> None:
    own = tmp_path / "rules"
    own.mkdir()
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    words = ("--limit", "2", "--workers", "0", "--rules", str(own), "--without-rule", "domain",
             "--without-rule", "O-ACT-001")  # fmt: skip
    code, _, said = learn(tmp_path, *words)
    assert code == 0, said
    header, entries = read_snapshot(tmp_path / "m.jsonl")
    assert entries and f"condition B rules {own} without domain,O-ACT-001" in header.sources[0]
    code, _, said = learn(tmp_path, "--limit", "1", "--rules", str(tmp_path / "gone"))
    assert code == 2 and "is no folder" in said and len(said.splitlines()) == 1
