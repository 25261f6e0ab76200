"""What calls cost, and runs that stop when their budget is spent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rpms.evals.records.run_folder import MANIFEST
from rpms.evals.records.schema import Session, Spending
from rpms.evals.running.costs import Budget, Meter, Tokens, Total, cost_of, spent_before
from rpms.evals.running.plan import RunPlan
from rpms.models.prices import NOTHING, Rates
from rpms.vocabulary.errors import RpmsError
from tests.evals import sample_runs
from tests.evals.sample_runs import lines_of, play_short, short_plan
from tests.openai_server import Answer, OpenAIServer

PRICED = Tokens(prompt_tokens=1000, cached_tokens=600, output_tokens=10)


SMALL = Tokens(prompt_tokens=1, cached_tokens=0, output_tokens=0)


def test_cost_is_the_sum_over_kinds_of_tokens_and_no_price_is_not_nothing() -> None:
    assert cost_of(PRICED, None) is None and cost_of(Tokens(), None) is None
    assert cost_of(PRICED, NOTHING) == 0.0
    assert cost_of(PRICED, Rates(input=10, cached=1, output=100)) == round(
        (400 * 10 + 600 + 1000) / 1e6, 9
    )
    assert cost_of(SMALL, Rates(input=0.03, cached=0.03, output=0.05)) == 3e-8, (
        "small calls are not rounded away"
    )


CALL = Tokens(prompt_tokens=90, cached_tokens=50, output_tokens=10)


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(), False), (Budget(tokens=101), False), (Budget(tokens=100), True),
        (Budget(usd=0.51), False), (Budget(usd=0.5), True), (Budget(usd=9, tokens=50), True),
    ],
)  # fmt: skip
def test_a_meter_says_when_a_budget_is_spent(budget: Budget, spent: bool) -> None:
    meter = Meter(budget)
    assert not meter.is_spent
    meter.add(CALL, 0.5)
    assert meter.is_spent is spent and meter.total == (100, 0.5)
    if spent:
        with pytest.raises(RpmsError, match=r"^stopped: budget of .* spent .* run the same"):
            meter.stop_if_spent()
    else:
        meter.stop_if_spent()
    meter = Meter(before=Total(1000, 1.0))
    meter.add(CALL, None)  # no price is known
    assert meter.total == (1100, 1.0) and meter.session == (100, 0.0)


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
    settings = {"model": model, "base_url": server.url, "max_steps": STEPS}
    return replace(short_plan(limit=8, **settings), truth=False, cache=cache)


@pytest.mark.engine
@pytest.mark.usefixtures("priced")
def test_a_run_stops_before_the_next_call_and_goes_on_with_a_larger_budget(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(usage=(100, 7), cached=40))
    run, cache = tmp_path / "run", str(tmp_path / "replies.sqlite")
    what = plan(openai_server, cache=cache)
    with pytest.raises(RpmsError, match=r"stopped: budget of \$1200 spent"):
        play_short(
            what, run, budget=Budget(usd=1200), capacity=2
        )  # 12.8 calls of 94 dollars, two at a time
    assert 13 <= len(openai_server.requests) <= 14
    assert {line["failure_mode"] for line in lines_of(run)} == {"timeout"}
    finished = len(lines_of(run))
    assert 1 <= finished <= 2
    manifest = json.loads((run / MANIFEST).read_text())
    assert manifest["finished"] is None
    before = len(openai_server.requests)
    # The last call may still have been on its way.
    assert before - 1 <= manifest["sessions"][0]["spent"]["usd"] / PER_CALL <= before
    with pytest.raises(RpmsError, match="stopped: budget"):
        play_short(what, run, budget=Budget(usd=1200), capacity=2)
    assert len(openai_server.requests) == before, "not one more call on the same budget"
    play_short(what, run, budget=Budget(usd=100_000))
    assert len(lines_of(run)) == 8
    # What was paid for in episodes that were cut short is not paid for again.
    replayed = sum(line["cache_hits"] for line in lines_of(run))
    assert 0 < before - finished * STEPS - 1 <= replayed <= before - finished * STEPS
    for line in lines_of(run)[:finished]:
        assert line["cost_usd"] == STEPS * PER_CALL
        assert (line["cached_tokens"], line["spent_cached_tokens"]) == (200, 200)
    played = json.loads((run / MANIFEST).read_text())
    assert played["finished"] and len(played["sessions"]) == 3


@pytest.mark.engine
def test_workers_stop_each_other(tmp_path: Path, openai_server: OpenAIServer) -> None:
    """By tokens, for a model that has no price."""
    with pytest.raises(RpmsError, match=r"budget of 1,000 tokens spent"):
        play_short(plan(openai_server, "openai:m"), tmp_path, 2, budget=Budget(tokens=1000))
    assert 10 <= len(openai_server.requests) <= 10 + 8  # what was in flight
    assert len(lines_of(tmp_path)) < 8


@pytest.mark.engine
def test_an_unknown_price_is_null_and_the_planner_is_free(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    free = short_plan(limit=1, max_steps=2)
    unknown = short_plan(limit=1, max_steps=2, model="openai:m", base_url=openai_server.url)
    for name, what, cost in (("free", free, 0.0), ("unknown", unknown, None)):
        play_short(what, tmp_path / name)
        assert [line["cost_usd"] for line in lines_of(tmp_path / name)] == [cost]
