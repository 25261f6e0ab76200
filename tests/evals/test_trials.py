"""Several trials of a task: what memory carries along, and what a run that goes on makes of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.evals.analysis.report import Report
from rpms.evals.records.run_folder import EPISODES, step_log_file
from rpms.evals.records.schema import Episode
from rpms.evals.running.costs import Budget
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import lines_of
from tests.openai_server import Answer, OpenAIServer

STEPS = 2
WRITTEN = (1000, 50)
"""Tokens of a text between trials, far from those of an agent's reply."""


class Reflecting:
    """Looks around for ever, and numbers the plans it is asked for by those it is shown."""

    def __init__(self, *failing: int) -> None:
        """``failing`` are the numbers of plans that are refused once."""
        self.failing = list(failing)
        self.prompts: list[str] = []

    def __call__(self, request: dict[str, Any]) -> Answer:
        text = json.dumps(request["messages"])
        if 'after the word \\"Plan:\\"' not in text:
            self.prompts.append(text)
            return Answer("Thought: Hm.\nAction: look")
        number = text.count("try way") + 1
        if number in self.failing:
            self.failing.remove(number)
            return Answer(status=400, error="no plan today")
        return Answer(f"Plan: try way {number}.", usage=WRITTEN)


def play(server: OpenAIServer, out: Path, trials: int = 3, budget: int = 0) -> Report:
    context = RunContext(
        model="openai:m", base_url=server.url, memory_method="reflexion", max_steps=STEPS
    )
    execution = rpms.ExecutionOptions(workers=0, concurrency=1, budget=Budget(tokens=budget))
    return rpms.evaluate({"D": context}, out=out, limit=1, trials=trials,
                         execution=execution, show=False)  # fmt: skip


def by_trial(folder: Path) -> dict[int, dict[str, Any]]:
    trials = {line["trial"]: line for line in lines_of(folder)}
    assert len(trials) == len(lines_of(folder)), "a trial was played twice"
    return trials


def reflections(line: dict[str, Any]) -> list[str]:
    return list(line["cross_trial_memory"]["reflections"])


@pytest.mark.engine
def test_each_trial_reads_what_was_written_after_the_ones_before(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    model = Reflecting()
    openai_server.plays_by(model)
    report = play(openai_server, tmp_path)
    lines = by_trial(tmp_path)
    assert list(lines) == [1, 2, 3] and "cross_trial_memory" not in lines[1]
    assert reflections(lines[2]) == ["try way 1."]
    assert reflections(lines[3]) == ["try way 1.", "try way 2."]
    first, second, third = (model.prompts[n * STEPS : (n + 1) * STEPS] for n in range(3))
    assert not any("try way" in text for text in first)
    assert all("try way 1." in text and "try way 2." not in text for text in second)
    assert all("try way 1." in text and "try way 2." in text for text in third)
    spent = [lines[trial]["spent_prompt_tokens"] for trial in (1, 2, 3)]
    assert spent == [STEPS * 100, STEPS * 100 + WRITTEN[0], STEPS * 100 + WRITTEN[0]]
    assert report.run.complete and len(report.run.judged("D")) == 1
    table = next(table for table in report.tables if table.id == "trials")
    assert table.columns == ["condition", "tasks", "by trial 1", "by trial 2", "by trial 3"]


@pytest.mark.engine
def test_a_run_grows_from_one_trial_to_three_and_goes_on_in_their_middle(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    model = Reflecting()
    openai_server.plays_by(model)
    assert play(openai_server, tmp_path, trials=1).run.complete
    assert len(openai_server.requests) == len(model.prompts) == STEPS
    report = play(openai_server, tmp_path)
    assert report.run.complete and report.run.trials == 3
    assert list(by_trial(tmp_path)) == [1, 2, 3] and len(model.prompts) == 3 * STEPS
    file = tmp_path / EPISODES
    whole = file.read_text().splitlines(keepends=True)
    file.write_text("".join(whole[:2]))  # as a kill during the third trial leaves it
    model.prompts.clear()
    play(openai_server, tmp_path)
    assert file.read_text().startswith("".join(whole[:2])) and len(model.prompts) == STEPS
    assert by_trial(tmp_path)[3]["cross_trial_memory"] == json.loads(whole[2])["cross_trial_memory"]
    assert play(openai_server, tmp_path, trials=1).run.trials == 3
    assert len(lines_of(tmp_path)) == 3


@pytest.mark.engine
def test_a_text_that_could_not_be_written_is_written_when_the_run_goes_on(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.plays_by(Reflecting(2))
    with pytest.raises(RpmsError, match=r"1 of the 3 episodes of this session.*no plan today"):
        play(openai_server, tmp_path)
    assert lines_of(tmp_path)[-1]["failure_mode"] == "model_error"
    assert play(openai_server, tmp_path).run.complete
    lines = lines_of(tmp_path)
    assert [line["trial"] for line in lines] == [1, 2, 3, 3]
    assert reflections(lines[-1]) == ["try way 1.", "try way 2."]


@pytest.mark.engine
def test_a_budget_counts_the_texts_written_between_trials(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    """The episodes alone would stay far below it."""
    openai_server.plays_by(Reflecting())
    with pytest.raises(RpmsError, match="budget of 1,000 tokens spent"):
        play(openai_server, tmp_path, budget=1000)
    assert [line["trial"] for line in lines_of(tmp_path)] == [1]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["sessions"][0]["spent"]["tokens"] == STEPS * 107 + sum(WRITTEN)


def test_a_method_whose_texts_nobody_could_write_is_refused_at_once(tmp_path: Path) -> None:
    sim = RunContext(memory_method="reflexion")
    with pytest.raises(RpmsError, match="'sim' writes none"):
        rpms.evaluate({"D": sim}, out=tmp_path / "run", limit=1, trials=2, show=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.engine
def test_our_own_memory_carries_what_the_lost_trials_taught(tmp_path: Path) -> None:
    """Without a model: the planner loses for want of steps, and wins where it has them."""
    arms = {"short": RunContext(max_steps=3), "whole": RunContext()}
    report = rpms.evaluate(arms, out=tmp_path, limit=1, trials=2,
                           execution=rpms.ExecutionOptions(workers=0), show=False)  # fmt: skip
    lines = {(line["condition"], line["trial"]): line for line in lines_of(tmp_path)}
    assert report.run.complete and set(lines) == {("whole", 1), ("short", 1), ("short", 2)}
    assert lines["whole", 1]["success"]
    again = lines["short", 2]
    assert (
        again["cross_trial_memory"]["method"] == "rpms"
        and "spent" not in again["cross_trial_memory"]
    )
    recalls = [recall for step in log_of(tmp_path, again) for recall in step["recalls"]]
    ids = {entry["id"] for entry in again["cross_trial_memory"]["entries"]}
    assert ids & {recall["entry"]["id"] for recall in recalls}, "what was carried is not recalled"


def log_of(folder: Path, line: dict[str, Any]) -> list[dict[str, Any]]:
    file = step_log_file(folder, *Episode(**line).key)
    steps: list[dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))["steps"]
    return steps
