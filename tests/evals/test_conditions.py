from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from envs import Task, get_environment
from evals import Tally, run_conditions
from nodes.context import RunContext
from nodes.state import EpisodeOutput
from vocabulary.errors import RpmsError


def episode(success: bool = False, steps: int = 10, invalid: int = 0, **more: Any) -> EpisodeOutput:
    return EpisodeOutput(
        success=success,
        steps=steps,
        invalid_actions=invalid,
        failure_mode=None if success else "timeout",
        score=more.pop("score", float(success)),
        **more,
    )


def tasks(count: int) -> list[Task]:
    return get_environment("alfworld").tasks("generated_unseen", count)[:count]


def tally(*episodes: EpisodeOutput) -> Tally:
    found = Tally()
    for one in episodes:
        found.add(one)
    return found


def test_rates() -> None:
    found = tally(episode(True, 6, 1), episode(True, 9), episode(False, 50, 12), episode(False, 50))
    assert (found.episodes, found.wins, found.errors) == (4, 2, 0)
    assert found.rate == 50
    assert found.mean_steps == 115 / 4
    assert found.invalid_rate == pytest.approx(100 * 13 / 115)


def test_scores_are_floored_and_raw() -> None:
    scores = (100.0, -100.0, 33.0, 0.0)
    found = tally(*(episode(score == 100, score=score) for score in scores))
    assert found.mean_score == 133 / 4
    assert found.mean_raw_score == 33 / 4
    assert Tally().mean_score == Tally().mean_raw_score == 0.0


def test_nothing_counted_is_zero_and_no_division() -> None:
    assert (Tally().rate, Tally().mean_steps, Tally().invalid_rate) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("mode", ["model_error", "infrastructure_error"])
def test_errors_of_model_and_infrastructure_are_counted_apart(mode: str) -> None:
    failed = EpisodeOutput(**{**episode(steps=7, invalid=7), "failure_mode": mode})
    found = tally(episode(True, 6), failed, failed)
    assert found.errors == 2
    assert found.episodes == 1
    assert (found.rate, found.mean_steps, found.invalid_rate) == (100, 6, 0)


@pytest.mark.parametrize("mode", ["timeout", "wrong_termination", "format"])
def test_failures_of_the_agent_count(mode: str) -> None:
    failed = EpisodeOutput(**{**episode(), "failure_mode": mode})
    assert tally(episode(True), failed).rate == 50


@pytest.mark.engine
def test_the_same_tasks_under_every_condition() -> None:
    seen = list(run_conditions(["A", "B"], tasks(2)))
    assert [name for name, *_ in seen] == ["A", "B", "A", "B"]
    assert [result["condition"] for _, _, result, _ in seen] == ["A", "B", "A", "B"]
    ids = [result["task_id"] for _, _, result, _ in seen]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    kinds = [kind for _, kind, _, _ in seen]
    assert all(kind in one for kind, one in zip(kinds, ids, strict=True))
    tallies = seen[-1][3]
    for name in "AB":
        own = [result for letter, _, result, _ in seen if letter == name]
        assert tallies[name].episodes == 2
        assert tallies[name].wins == sum(result["success"] for result in own)
        assert tallies[name].steps == sum(result["steps"] for result in own)
        by_type = tallies[name].by_type
        assert set(by_type) == set(kinds)
        assert sum(part.steps for part in by_type.values()) == tallies[name].steps


@pytest.mark.engine
def test_other_settings_are_kept() -> None:
    base = RunContext(max_steps=2, k=1)
    for _, _, result, _ in run_conditions(["A", "C"], tasks(1), context=base):
        assert result["steps"] == 2


@pytest.mark.engine
def test_a_model_can_be_given() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("nonsense")] * 4))
    runs = run_conditions(["A"], tasks(2), model=model, context=RunContext(max_steps=2))
    assert [result["failure_mode"] for _, _, result, _ in runs] == ["format", "format"]


def test_an_unknown_condition_is_refused_before_anything_runs() -> None:
    with pytest.raises(RpmsError, match="unknown condition 'E'"):
        next(run_conditions(["A", "E"], tasks(1)))
