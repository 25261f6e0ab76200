"""One episode: its line and its log."""

from __future__ import annotations

import gzip
import json
from itertools import count
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from rpms.envs import get_environment, live
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.step_analysis import Analysis, analyse
from rpms.evals.running import episode
from rpms.evals.running.episode import EpisodeResult, play_job
from rpms.evals.running.plan import Job
from rpms.graph import run_episode
from rpms.graph.build import build_graph
from rpms.models.controls import Replay
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import EnvironmentFault

LINE = {
    "condition", "env", "split", "task", "index", "type", "goal", "signature", "success", "score",
    "steps", "failure_mode", "error", "prompt_tokens", "cached_tokens", "output_tokens",
    "cost_usd", "model_calls", "cache_hits",
    "seconds", "env_seconds", "model_seconds", "started", "first_observation", "history",
}  # fmt: skip
STEP = {
    "step", "observation", "belief", "sub_goal", "state_lines", "rules", "recalls", "prompt",
    "knowledge_tokens", "reply", "thought", "action", "result", "failed", "truth", "belief_errors",
    "usage", "seconds",
}  # fmt: skip


def job(index: int = 3, condition: str = "D") -> Job:
    return Job(condition, get_environment("alfworld").tasks("generated_unseen", 9)[index])


async def play(job: Job, model: Any = None, truth: bool = True, **settings: Any) -> EpisodeResult:
    context = RunContext(**settings).under(job.condition)
    return await play_job(build_graph(model=model), job, context, truth)


def unpack(result: EpisodeResult) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(gzip.decompress(result.steps))
    return log


def analysed(result: EpisodeResult) -> Analysis:
    return analyse(unpack(result)["steps"], manual=load_manual("alfworld"), settings={},
                   mode=result.line.failure_mode)  # fmt: skip


@pytest.mark.engine
async def test_a_recorded_episode_is_the_episode_that_is_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And its log tells what led to each decision; its clock ticks when it is looked at."""
    monkeypatch.setattr(episode, "perf_counter", count().__next__)
    line, _ = result = await play(job())
    plain = run_episode(3, context=RunContext.for_condition("D"))
    assert set(line.data()) >= LINE
    assert line.history == plain["history"] and line.success is plain["success"]
    for name in ("steps", "prompt_tokens", "output_tokens", "model_calls", "failure_mode"):
        assert getattr(line, name) == plain[name], name  # type: ignore[literal-required]
    assert (line.task, line.condition) == (job().task["id"], "D")
    assert 0 < line.model_seconds + line.env_seconds <= line.seconds
    assert line.spent_prompt_tokens == line.prompt_tokens > 0
    log, counts = unpack(result), analysed(result)
    assert counts.checked_steps == line.steps and counts.belief_error_steps == 0
    assert len(log["steps"]) == line.steps
    assert sum(step["usage"]["prompt_tokens"] for step in log["steps"]) == line.prompt_tokens
    assert (log["condition"], log["task"]) == ("D", line.task)
    assert len(set(log["messages"])) == len(log["messages"])
    for number, (step, turn) in enumerate(zip(log["steps"], line.history, strict=True), 1):
        assert set(step) >= STEP
        assert step["step"] == number
        assert (step["action"], step["result"]) == (turn["action"], turn["observation"])
        texts = [(role, log["messages"][place]) for role, place in step["prompt"]]
        assert texts[0][0] == "system" and texts[-1][1].endswith(step["observation"])
        prompt = "\n".join(text for _, text in texts)
        assert all(line in prompt for line in step["state_lines"])
        assert all(rule in prompt for rule in step["rules"]["universal"])
        assert all(lesson["text"] in prompt for lesson in step["rules"]["situation"])
        shown = [r for r in step["recalls"] if not r["dropped_by"]]
        assert all("\n" + "[Past Experience" in prompt for _ in shown)
        assert step["reply"].endswith(step["action"])
        assert step["truth"]["holding"] == (", ".join(step["belief"]["holding"]) or "nothing")
    truncated = sum(n for step in log["steps"] for n in step["truncated"].values())
    assert counts.recalled == sum(len(step["recalls"]) for step in log["steps"]) + truncated > 0
    dropped = [r for step in log["steps"] for r in step["recalls"] if r["dropped_by"] == "scf"]
    assert counts.dropped["scf"] == len(dropped) > 0 and all(r["reason"] for r in dropped)


@pytest.mark.engine
async def test_a_belief_that_drifts_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    env = get_environment("alfworld")
    first = env.first_belief

    def dreaming(observation: str) -> Any:
        return {**first(observation), "holding": ["moon 1"]}

    monkeypatch.setattr(env, "first_belief", dreaming)
    line, _ = result = await play(job(condition="A"), Replay(actions=[]), max_steps=3)
    assert analysed(result).belief_error_steps == analysed(result).checked_steps == line.steps == 3
    assert any("moon 1" in text for text in unpack(result)["steps"][0]["belief_errors"])
    monkeypatch.setattr(live, "inspect", None)  # it may be left out
    line, _ = result = await play(job(condition="A"), Replay(actions=[]), truth=False, max_steps=2)
    counts = analysed(result)
    assert (counts.checked_steps, counts.belief_error_steps, line.steps) == (0, 0, 2)


@pytest.mark.engine
async def test_a_world_that_breaks_is_an_infrastructure_error_with_what_was_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, played = AlfworldGame.step, []

    def breaking(game: AlfworldGame, action: str) -> Any:
        if len(played) == 2:
            raise EnvironmentFault("the simulator fell over")
        played.append(action)
        return real(game, action)

    monkeypatch.setattr(AlfworldGame, "step", breaking)
    line, _ = result = await play(job(condition="B"))
    assert (line.failure_mode, line.error) == (
        "infrastructure_error", "the simulator fell over"
    )  # fmt: skip
    assert not line.success and line.steps == len(line.history) == 2
    steps = unpack(result)["steps"]
    assert len(steps) == 3 and steps[1]["action"] and steps[2]["reply"]
    assert (steps[2]["action"], steps[2]["result"]) == ("", "")


@pytest.mark.engine
async def test_a_game_that_cannot_be_read_is_that_episodes_own_trouble() -> None:
    broken = Job("B", {**job().task, "source": "/nowhere/game.tw-pddl"})
    line, _ = result = await play(broken)
    assert line.failure_mode == "infrastructure_error" and "/nowhere" in line.error
    assert line.type and line.steps == 0 and unpack(result)["steps"] == []


@pytest.mark.engine
async def test_a_model_that_fails_leaves_a_whole_log() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Action: look")]))
    line, _ = result = await play(job(condition="A"), model)
    assert line.failure_mode == "model_error" and line.steps == 1
    assert line.model_calls == 1
    steps = unpack(result)["steps"]
    assert len(steps) == 2 and all(set(step) >= STEP for step in steps)
    assert steps[1]["prompt"] and steps[1]["reply"] == ""


@pytest.mark.engine
@pytest.mark.parametrize("guard", ["off", "verify", "procedure"])
async def test_the_models_own_proposal_is_judged_whatever_a_guard_makes_of_it(guard: str) -> None:
    result = await play(job(condition="B"), Replay(actions=["levitate"] * 9), guard=guard,
                        max_steps=3)  # fmt: skip
    steps = unpack(result)["steps"]
    assert [step["proposal"] for step in steps] == ["levitate"] * 3
    assert [step["judged"] for step in steps] == [[["known action", "broken"]]] * 3
    counts = analysed(result)
    assert counts.broken == {"known action": 3}
    assert counts.invalid_actions == (3 if guard == "off" else 0)
