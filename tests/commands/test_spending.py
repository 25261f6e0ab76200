"""Budgets and costs at the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.progress import RunProgress, spending
from rpms.evals.records import EpisodeLine
from rpms.evals.run_folder import EPISODES
from tests.evals import sample_runs
from tests.openai_server import Answer, OpenAIServer

ROOT = Path(__file__).resolve().parents[2]
PRICES = """date: "2026-01"
models:
  openai:dear: {host: 127.0.0.1, input: 1000, cached: 500, output: 2000}
"""
Rpms = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def rpms(tmp_path: Path) -> Rpms:
    (tmp_path / "prices.yaml").write_text(PRICES)
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    own = {
        "RPMS_RESPONSE_CACHE": str(tmp_path / "replies.sqlite"),
        "RPMS_PRICES": str(tmp_path / "prices.yaml"),
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rpms", *words], cwd=ROOT, env={**plain, **own},
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    return run


def served(server: OpenAIServer, out: Path, *more: str, model: str = "dear") -> tuple[str, ...]:
    return (
        "eval", "--out", str(out), "--conditions", "A", "--limit", "4", "--max-steps", "3",
        "--workers", "0", "--concurrency", "1", "--model", f"openai:{model}",
        "--base-url", server.url, *more,
    )  # fmt: skip


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / EPISODES).read_text().splitlines()]


@pytest.mark.engine
def test_a_budget_stops_the_run_with_one_line_and_more_of_it_goes_on(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(usage=(100, 10), cached=40))
    run = tmp_path / "run"
    each = (60 * 1000 + 40 * 500 + 10 * 2000) / 1e6
    stopped = rpms(*served(openai_server, run, "--budget-usd", f"{each * 3.5}"))
    assert stopped.returncode == 2
    assert stopped.stderr.strip().splitlines()[-1] == (
        "rpms: stopped: budget of $0.35 spent ($0.4000 so far); raise it and run the same "
        "command again to go on"
    )
    assert "Traceback" not in stopped.stderr
    assert len(openai_server.requests) == 4
    assert [line["cost_usd"] for line in lines(run)] == [pytest.approx(each * 3)]
    done = rpms(*served(openai_server, run, "--budget-usd", "10"))
    assert done.returncode == 0, done.stderr
    assert len(lines(run)) == 4
    assert f"${each * 8:.4f}, 1 cached replies in this session" in done.stdout
    report = rpms("report", str(run), "--json")
    tokens = json.dumps(json.loads(report.stdout)["tables"]["tokens"])
    # One reply was paid for in an episode that was cut short; it is in no episode's line.
    assert sum(line["cost_usd"] for line in lines(run)) == pytest.approx(each * 11)
    assert f"All 2 sessions together spent 1,320 tokens and ${each * 12:.4f}" in tokens


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget-usd", "1"), "none is known for 'openai:cheap' at this address"),
        (("--budget-usd", "-1"), "'--budget-usd': Input should be greater"),
        (("--budget-tokens", "-1"), "'--budget-tokens': Input should be greater"),
        (("--context-tokens", "100"), "raise --context-tokens"),
    ],
)
def test_what_cannot_be_kept_to_is_refused_at_once(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer, words: tuple[str, ...], said: str
) -> None:
    done = rpms(*served(openai_server, tmp_path / "run", *words, model="cheap"))
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists() and openai_server.requests == []


def line(cost: float | None) -> EpisodeLine:
    spent = {"spent_prompt_tokens": 900, "spent_output_tokens": 100}
    return sample_runs.line("A", 0, False, cost_usd=cost, **spent)


def test_the_progress_line_says_what_it_costs_and_will_cost() -> None:
    progress = RunProgress(total=10)
    for number in range(4):
        progress.count(sample_runs.line("A", number, True))
    assert spending(progress) == "0 tokens"
    progress.add(line(0.5))
    assert spending(progress) == "1,000 tokens, $0.5000 of about $3.00"
    for _ in range(5):
        progress.add(line(0.5))
    assert spending(progress) == "6,000 tokens, $3.0000"


@pytest.mark.parametrize("cost", [None, 0.0])
def test_no_price_and_nothing_to_pay_are_not_shown_as_dollars(cost: float | None) -> None:
    progress = RunProgress(total=2)
    progress.add(line(cost))
    assert spending(progress) == "1,000 tokens"
    assert progress.cost_usd is cost or progress.cost_usd == cost
