"""What calls cost, and runs that stop when their budget is spent."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.conditions import letters
from rpms.evals.costs import Budget, Meter, Spent, Total, cost_of, nothing_spent, spent_before
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.records import Session, Spending
from rpms.evals.run_folder import EPISODES, MANIFEST
from rpms.evals.runner import Run, local_pool
from rpms.models.prices import NOTHING, Rates
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals import sample_runs
from tests.openai_server import Answer, OpenAIServer

PRICED = Spent(prompt_tokens=1000, cached_tokens=600, output_tokens=10)


SMALL = Spent(prompt_tokens=1, cached_tokens=0, output_tokens=0)


def test_cost_is_the_sum_over_kinds_of_tokens_and_no_price_is_not_nothing() -> None:
    assert cost_of(PRICED, None) is None and cost_of(nothing_spent(), None) is None
    assert cost_of(PRICED, NOTHING) == 0.0
    assert cost_of(PRICED, Rates(input=10, cached=1, output=100)) == round(
        (400 * 10 + 600 + 1000) / 1e6, 9
    )
    assert cost_of(SMALL, Rates(input=0.03, cached=0.03, output=0.05)) == 3e-8, (
        "small calls are not rounded away"
    )


CALL = Spent(prompt_tokens=90, cached_tokens=50, output_tokens=10)


def test_a_meter_counts_tokens_once_and_dollars_where_known() -> None:
    meter = Meter(before=Total(1000, 1.0))
    meter.add(CALL, 0.25)
    meter.add(CALL, None)
    assert meter.total == (1200, 1.25)
    assert meter.session == (200, 0.25)
    assert not meter.is_spent


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(), False), (Budget(tokens=101), False), (Budget(tokens=100), True),
        (Budget(usd=0.51), False), (Budget(usd=0.5), True), (Budget(usd=9, tokens=50), True),
    ],
)  # fmt: skip
def test_when_a_budget_is_spent(budget: Budget, spent: bool) -> None:
    meter = Meter(budget)
    assert not meter.is_spent
    meter.add(CALL, 0.5)
    assert meter.is_spent is spent
    if spent:
        with pytest.raises(RpmsError, match=r"^stopped: budget of .* spent .* run the same"):
            meter.stop_if_spent()
    else:
        meter.stop_if_spent()


def add_often(meter: Meter) -> None:
    for _ in range(500):
        meter.add(CALL, 0.5)


def test_processes_share_a_meter() -> None:
    meter = Meter()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_often, args=(meter,)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert meter.total == (2 * 500 * 100, 500.0)


def test_a_budget_in_dollars_needs_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    Budget(usd=1).check("openai:gpt-4o", "")
    Budget(usd=1).check("sim", "")
    Budget(tokens=5).check("openai:unheard-of", "")
    with pytest.raises(RpmsError, match=r"none is known for 'openai:unheard-of'.*RPMS_PRICES"):
        Budget(usd=1).check("openai:unheard-of", "")
    for bad in (Budget(usd=-1), Budget(tokens=-1), Budget(usd=float("nan"))):
        with pytest.raises(RpmsError, match="must not be negative"):
            bad.check("sim", "")


def test_what_a_folder_has_cost_is_the_larger_of_two_accounts() -> None:
    spent = {"spent_prompt_tokens": 90, "spent_output_tokens": 10}
    lines = [sample_runs.line("A", 0, True, cost_usd=usd, **spent) for usd in (0.5, None)]
    assert spent_before([], []) == (0, 0)
    assert spent_before(lines, [Session(), Session(spent=None)]) == (200, 0.5)
    sessions = [Session(spent=Spending(tokens=n, usd=usd)) for n, usd in ((150, 0.75), (100, None))]
    assert spent_before(lines, sessions) == (250, 0.75)


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A model at a million dollars per million tokens: a dollar a token is easy to add up."""
    entry = "{host: 127.0.0.1, input: 1000000, cached: 500000, output: 2000000}"
    (tmp_path / "prices.yaml").write_text(f"date: now\nmodels: {{openai:dear: {entry}}}\n")
    monkeypatch.setenv("RPMS_PRICES", str(tmp_path / "prices.yaml"))
    yield


STEPS = 5
PER_CALL = 60 * 1 + 40 * 0.5 + 7 * 2


def plan(server: OpenAIServer, model: str = "openai:dear", cache: str = "") -> RunPlan:
    base = RunContext(model=model, base_url=server.url, max_steps=STEPS)
    return make_plan(
        "alfworld", "generated_unseen", letters(["A"], base), 8, truth=False, cache=cache
    )


def play(what: RunPlan, folder: Path, budget: Budget, workers: int = 0, capacity: int = 2) -> Run:
    run = Run(what, folder, budget=budget)
    try:
        pool = local_pool(what, workers, run.meter)
        run.play(pool, capacity, lambda progress: None, metered=True)
    finally:
        run.close()
    return run


def lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / EPISODES
    return [json.loads(text) for text in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.engine
@pytest.mark.usefixtures("priced")
def test_a_run_stops_before_the_next_call_and_goes_on_with_a_larger_budget(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(usage=(100, 7), cached=40))
    run, cache = tmp_path / "run", str(tmp_path / "replies.sqlite")
    what = plan(openai_server, cache=cache)
    with pytest.raises(RpmsError, match=r"stopped: budget of \$1200 spent"):
        play(what, run, Budget(usd=1200))  # 12.8 calls of 94 dollars, two at a time
    assert 13 <= len(openai_server.requests) <= 14
    assert {line["failure_mode"] for line in lines(run)} == {"timeout"}
    finished = len(lines(run))
    assert 1 <= finished <= 2
    manifest = json.loads((run / MANIFEST).read_text())
    assert manifest["finished"] is None
    before = len(openai_server.requests)
    # The last call may still have been on its way.
    assert before - 1 <= manifest["sessions"][0]["spent"]["usd"] / PER_CALL <= before
    with pytest.raises(RpmsError, match="stopped: budget"):
        play(what, run, Budget(usd=1200))
    assert len(openai_server.requests) == before, "not one more call on the same budget"
    play(what, run, Budget(usd=100_000))
    assert len(lines(run)) == 8
    # What was paid for in episodes that were cut short is not paid for again.
    kept = sum(line["cache_hits"] for line in lines(run))
    assert 0 < before - finished * STEPS - 1 <= kept <= before - finished * STEPS
    played = json.loads((run / MANIFEST).read_text())
    assert played["finished"] and len(played["sessions"]) == 3


@pytest.mark.engine
def test_workers_stop_each_other(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """By tokens, for a model that has no price."""
    with pytest.raises(RpmsError, match=r"budget of 1,000 tokens spent"):
        play(plan(openai_server, "openai:m"), tmp_path, Budget(tokens=1000), 2, 4)
    assert 10 <= len(openai_server.requests) <= 10 + 8  # what was in flight
    assert len(lines(tmp_path)) < 8


@pytest.mark.engine
@pytest.mark.usefixtures("priced")
def test_money_per_call_episode_and_run(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(usage=(100, 7), cached=40))
    run = play(plan(openai_server), tmp_path, Budget(), capacity=8)
    for line in lines(tmp_path):
        assert line["cost_usd"] == STEPS * PER_CALL
        assert (line["cached_tokens"], line["spent_cached_tokens"]) == (200, 200)
    assert run.progress.cost_usd == run.meter.session.usd == 8 * STEPS * PER_CALL


@pytest.mark.engine
def test_an_unknown_price_is_null_and_the_planner_is_free(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    play(plan(openai_server, "openai:m"), tmp_path / "m", Budget(), capacity=8)
    assert {line["cost_usd"] for line in lines(tmp_path / "m")} == {None}
    sim = make_plan("alfworld", "generated_unseen", letters(["A"], RunContext(max_steps=2)), 1)
    play(sim, tmp_path / "sim", Budget(usd=1))
    assert [line["cost_usd"] for line in lines(tmp_path / "sim")] == [0.0]
