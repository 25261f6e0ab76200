"""``rpms eval``: runs that go on, grow, fail and are cached, and what they cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.evals.records.run_folder import EPISODES
from rpms.evals.records.schema import EpisodeLine
from rpms.evals.running.evaluate import ExecutionOptions, same_replies
from rpms.evals.running.plan import make_plan
from rpms.evals.running.progress import RunProgress, spending_text
from rpms.vocabulary.context import RunContext
from tests.command_line import Rpms
from tests.evals import sample_runs
from tests.evals.sample_runs import histories_of, keys_of, lines_of
from tests.openai_server import Answer, OpenAIServer

FEW = ("--workers", "0", "--max-steps", "3")


@pytest.mark.engine
def test_a_run_grows_plays_nothing_twice_and_refuses_other_settings(
    tmp_path: Path, rpms: Rpms
) -> None:
    run = tmp_path / "run"
    first = ("eval", "--out", run, *FEW, "--conditions", "B", "--concurrency", "1")
    done = rpms(*first, "--limit", "2")
    assert done.code == 0
    missing = [line for line in done.err.splitlines() if "without a task: 4 of 6 (" in line]
    assert len(missing) == 1, "a sample that misses types of its split says so"
    # Without a terminal, lines tell of progress, and the last names the report.
    progress = [line for line in done.err.splitlines() if "of 2 episodes; B 0/" in line]
    assert [line[0] for line in progress] == ["1"]
    assert done.out.splitlines()[0].startswith(f"{run}: 2 of 2 episodes; B 0/2")
    assert done.out.splitlines()[-1] == f"next: rpms report {run}"
    before = (run / EPISODES).read_bytes()
    other = rpms(*first, "--limit", "2", "--max-steps", "4", "--set", "temperature=0.5")
    assert other.code == 2 and other.out == "" and other.err.count("\n") == 1
    assert "max_steps: 3 before, 4 now" in other.err
    assert "temperature: 0.0 before, 0.5 now" in other.err
    assert (run / EPISODES).read_bytes() == before
    more = (*first, "--limit", "2", "--arm", "mine:condition=B,layout=cache_friendly")
    done = rpms(*more, "--repeats", "2")
    assert done.code == 0 and "2 of 8 episodes are finished already" in done.err
    assert (run / EPISODES).read_bytes().startswith(before)
    episodes = [
        (*key, line["repeat"]) for key, line in zip(keys_of(run), lines_of(run), strict=True)
    ]
    assert len(episodes) == len(set(episodes)) == 8
    assert rpms(*more, "--repeats", "2").code == 0 and len(lines_of(run)) == 8


def served(server: OpenAIServer, out: Path, *more: str) -> tuple[str | Path, ...]:
    words = ("eval", "--out", out, *FEW, "--conditions", "A,B", "--limit", "2")
    return (*words, "--model", "openai:m", "--base-url", server.url, *more)


@pytest.mark.engine
def test_a_second_run_with_the_same_cache_makes_no_calls(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    cache = ("--cache", str(tmp_path / "replies.sqlite"))
    assert rpms(*served(openai_server, first, "--workers", "1", *cache)).code == 0
    assert len(openai_server.requests) == 2 * 2 * 3
    done = rpms(*served(openai_server, second, *cache))
    assert done.code == 0 and len(openai_server.requests) == 12
    assert "0 tokens, 12 cached replies" in done.out
    assert histories_of(first) == histories_of(second)
    again = {(line["condition"], line["task"]): line for line in lines_of(second)}
    for line in lines_of(first):
        cached = again[line["condition"], line["task"]]
        assert (line["model_calls"], line["cache_hits"]) == (3, 0)
        assert (cached["model_calls"], cached["cache_hits"]) == (0, 3)
        assert line["prompt_tokens"] == cached["prompt_tokens"] == 300
        assert (line["spent_prompt_tokens"], cached["spent_prompt_tokens"]) == (300, 0)
    assert rpms(*served(openai_server, tmp_path / "third")).code == 0
    assert len(openai_server.requests) == 24


@pytest.mark.engine
def test_a_wrong_key_stops_the_run_early_and_failed_episodes_can_be_retried(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    run = tmp_path / "run"
    words = served(openai_server, run, "--limit", "6", "--concurrency", "2")
    openai_server.plays(Answer(status=401, error="bad key"))
    done = rpms(*words)
    assert done.code == 2
    assert "no call works: 3 episodes in a row ended with the same model error" in done.err
    assert "401" in done.err and "run the same command again" in done.err
    errors = lines_of(run)
    assert len(errors) == 3 < 12
    assert {line["failure_mode"] for line in errors} == {"model_error"}
    openai_server.plays("Action: look")
    assert rpms(*words).code == 0
    assert len(keys_of(run)) == 15 and {*keys_of(run)[:3]} <= {*keys_of(run)[3:]}
    latest = {(line["condition"], line["task"]): line["failure_mode"] for line in lines_of(run)}
    assert set(latest.values()) == {"timeout"} and len(latest) == 12


def test_a_local_model_is_asked_by_one_episode_at_a_time() -> None:
    for model, workers, expected in (
        ("openai:gpt-4", None, (None, 32)), ("openai:gpt-4", 4, (4, 32)),
        ("local:smollm2", None, (1, 1)), ("local:smollm2", 4, (1, 1)),
        ("local:smollm2", 0, (0, 1)),
    ):  # fmt: skip
        plan = make_plan("alfworld", "generated_unseen", {"D": RunContext(model=model)}, 1)
        execution = ExecutionOptions(workers=workers).suited_to(plan)
        assert (execution.workers, execution.concurrency) == expected


@pytest.mark.parametrize(
    ("context", "repeats", "warned"),
    [
        (RunContext(), 3, ""),
        (RunContext(model="random"), 3, ""),
        (RunContext(model="openai:m"), 1, ""),
        (RunContext(model="openai:m", temperature=0.5), 3, ""),
        (RunContext(model="tests.openai_server:make"), 3, ""),
        (RunContext(model="openai:m"), 2, "B, D"),
    ],
)
def test_greedy_repeats_of_a_language_model_are_warned_of(
    context: RunContext, repeats: int, warned: str
) -> None:
    arms = {label: context.under(label) for label in "BD"}
    plan = make_plan("alfworld", "generated_unseen", arms, 1, repeats=repeats)
    assert (f" {warned} " in same_replies(plan)) if warned else not same_replies(plan)


def test_greedy_arms_that_differ_only_in_their_seed_are_warned_of() -> None:
    seeds = {f"seed {seed}": RunContext(model="openai:m", seed=seed) for seed in (1, 2)}
    arms = {**seeds, "A": RunContext(model="openai:m").under("A")}
    warning = same_replies(make_plan("alfworld", "generated_unseen", arms, 1))
    assert " seed 1, seed 2 " in warning and "\n" not in warning


def line(cost: float | None) -> EpisodeLine:
    spent = {"spent_prompt_tokens": 900, "spent_output_tokens": 100}
    return sample_runs.line("A", 0, False, cost_usd=cost, **spent)


def test_the_progress_line_says_what_it_costs_and_will_cost() -> None:
    progress = RunProgress(total=10)
    for earlier in range(4):
        progress.count(sample_runs.line("A", earlier, True))
    assert spending_text(progress) == "0 tokens"
    progress.add(line(0.5))
    assert spending_text(progress) == "1,000 tokens, $0.5000 of about $3.00"
    for _ in range(5):
        progress.add(line(0.5))
    assert spending_text(progress) == "6,000 tokens, $3.0000"
    for cost in (None, 0.0):  # no price, or nothing to pay: no dollars
        free = RunProgress(total=2)
        free.add(line(cost))
        assert spending_text(free) == "1,000 tokens" and free.cost_usd == cost
