"""The bridges to Gymnasium, Inspect and verifiers, each with the real package.

Inspect and verifiers are called as docs/new-world.md says, in a process of their own, against a
real HTTP server that answers with the plans of two homes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from tests.openai_server import Answer, OpenAIServer, serving

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "new-world.md").read_text(encoding="utf-8")
SPLIT = "generated_unseen"


def plan(index: int) -> list[str]:
    """The walkthrough that a generated home carries."""
    task = get_environment("alfworld").tasks(SPLIT, index + 1)[index]
    walkthrough: list[str] = json.loads(Path(task["source"]).read_text("utf-8"))["walkthrough"]
    return walkthrough


def test_gymnasium_checks_the_environment() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    import examples.bridges.gymnasium_env  # noqa: F401

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("rpms/alfworld-v0", tasks=6).unwrapped, skip_render_check=True)


def test_a_seed_or_an_option_chooses_the_task_and_a_plan_wins_it() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("examples.bridges.gymnasium_env:rpms/alfworld-v0", split=SPLIT, tasks=6)
    drawn = [env.reset(seed=seed)[1]["task"] for seed in (*range(12), *range(12))]
    assert drawn[:12] == drawn[12:] and len(set(drawn)) > 3
    _, info = env.reset(options={"task": 0})
    home = get_environment("alfworld").tasks(SPLIT, 1)[0]
    assert (info["task"], info["goal"]) == (home["id"], home["goal"])
    earned = []
    for command in plan(0):
        assert get_environment("alfworld").read_action(command) in info["commands"]
        _, reward, won, truncated, info = env.step(command)
        earned.append(reward)
    assert won and info["success"] and not truncated
    assert earned == [0.0] * (len(earned) - 1) + [1.0]
    assert info["belief"] != env.reset(options={"task": 0})[1]["belief"]
    ends = [env.step("look")[3] for _ in range(50)]
    assert ends == [False] * 49 + [True]  # the step budget of ALFWorld


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium")
    (code,) = re.findall(r"^```py\n(.*?)^```", PAGE, re.S | re.M)
    exec(code, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*\)  # (.+)$", code, re.M)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """Knows the plan of the first home, and looks around in the second."""
    first, _ = (task["goal"] for task in get_environment("alfworld").tasks(SPLIT, 2))
    steps, asked = plan(0), Counter[bool]()

    def answer(request: dict[str, Any]) -> Answer:
        known = f"Your task is to: {first}" in json.dumps(request["messages"])
        asked[known] += 1
        return Answer(f"Action: {steps[asked[known] - 1]}" if known else "Action: look")

    with serving() as server:
        server.plays_by(answer)
        yield server


def on_the_page(program: str, **changed: str) -> list[str]:
    """A command of the page, with other words in the place of some."""
    (line,) = re.findall(rf"^({program} (?:.*\\\n)*.*)", PAGE, re.M)
    words = shlex.split(line.replace("\\\n", " "))
    assert changed.keys() <= {*words}
    found = Path(sys.executable).with_name(words[0])
    return [str(found), *(changed.get(word, word) for word in words[1:])]


def run(words: list[str], **variables: str) -> None:
    paths = f"{ROOT}{os.pathsep}{ROOT / 'examples' / 'bridges'}"
    env = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1", **variables}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_inspect_evaluates_a_condition(server: OpenAIServer, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    words = on_the_page("inspect eval", **{"openai/gpt-4o-mini": "openai-api/local/scripted"})
    run(
        [*words, "-T", "tasks=2", "-T", "steps=8", "--log-format", "json", "--display", "none"],
        LOCAL_BASE_URL=server.url,
        LOCAL_API_KEY="none",
        INSPECT_LOG_DIR=str(tmp_path),
    )
    (file,) = tmp_path.glob("*.json")
    log = json.loads(file.read_text("utf-8"))
    assert log["status"] == "success" and log["eval"]["task_args"]["condition"] == "D"
    metrics = {score["name"]: score["metrics"] for score in log["results"]["scores"]}
    assert metrics["success"]["accuracy"]["value"] == 0.5
    assert metrics["steps"]["mean"]["value"] == (len(plan(0)) + 8) / 2
    assert [sample["scores"]["success"].get("explanation") for sample in log["samples"]].count(
        "timeout"
    ) == 1
    calls = [event for sample in log["samples"] for event in sample.get("events", [])
             if event["event"] == "model"]  # fmt: skip
    assert len(calls) == len(server.requests) == len(plan(0)) + 8
    asked = [json.dumps(request["messages"]) for request in server.requests]
    assert all("Rules" in prompt for prompt in asked)
    assert any("Past Experience" in prompt for prompt in asked)


def test_verifiers_rewards_a_condition(server: OpenAIServer, tmp_path: Path) -> None:
    pytest.importorskip("verifiers")
    changed = {"https://api.openai.com/v1": server.url, "D": "B", "6": "2",
               "runs/verifiers": str(tmp_path)}  # fmt: skip
    words = on_the_page("vf-eval", **changed)
    run([*words, "--env.agent.harness.max-steps", "8"])
    (file,) = tmp_path.glob("*/traces.jsonl")
    traces = [trace for line in file.read_text("utf-8").splitlines()
              for trace in json.loads(line)["traces"]]  # fmt: skip
    assert all(trace["ok"] for trace in traces)
    outcomes = {
        trace["rewards"]["success"]["score"]: (trace["metrics"]["steps"], len(trace["calls"]))
        for trace in traces
    }
    assert outcomes == {1.0: (len(plan(0)), len(plan(0))), 0.0: (8, 8)}
    asked = json.dumps(server.requests[-1]["messages"])
    assert "Rules" in asked and "Past Experience" not in asked
