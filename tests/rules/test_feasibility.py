"""Does Tier 3 tell truly which actions the real engine accepts?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.nodes.manual import load_manual
from rpms.rules import check_action

Walks = Callable[[int], list[Any]]


@pytest.fixture(scope="module")
def judged(walks: Walks) -> Callable[[int], Counter[tuple[str, bool]]]:
    """(verdict, accepted by the engine) -> how often, over the walks of a chunk."""
    manual = load_manual("alfworld")

    def count(chunk: int) -> Counter[tuple[str, bool]]:
        return Counter(
            (
                check_action(manual, step.action, step.before).verdict,
                not ENVIRONMENT.failed(step.observation),
            )
            for walk in walks(chunk)
            for step in walk.steps
        )

    return count


@pytest.mark.engine
def test_actions_judged_possible_succeed(
    chunk: int, judged: Any, record_property: Callable[[str, object], None]
) -> None:
    counts = judged(chunk)
    right, wrong = counts["holds", True], counts["holds", False]
    rate = right / (right + wrong)
    record_property("succeeded when preconditions held", rate)
    print(f"preconditions hold: {right + wrong} actions, {rate:.2%} succeeded")
    assert right + wrong >= 1_000
    assert rate >= 0.99


@pytest.mark.engine
def test_actions_judged_impossible_are_refused(
    chunk: int, judged: Any, record_property: Callable[[str, object], None]
) -> None:
    counts = judged(chunk)
    right, wrong = counts["fails", False], counts["fails", True]
    rate = right / (right + wrong)
    record_property("refused when a precondition failed", rate)
    print(f"a precondition fails: {right + wrong} actions, {rate:.2%} refused")
    assert right + wrong >= 1_000
    assert rate >= 0.99


@pytest.mark.engine
def test_few_actions_stay_undecided(
    chunk: int, judged: Any, record_property: Callable[[str, object], None]
) -> None:
    counts = judged(chunk)
    unknown = counts["unknown", True] + counts["unknown", False]
    share = unknown / counts.total()
    record_property("share of unknown verdicts", share)
    print(f"unknown: {share:.2%} of {counts.total()} actions")
    assert share <= 0.15
    assert not any(verdict == "no_such_action" for verdict, _ in counts)


@pytest.mark.engine
def test_a_refusal_is_explained_without_contradicting_the_belief(chunk: int, walks: Walks) -> None:
    """Every refused action that Tier 3 can decide has a violated precondition to name."""
    manual = load_manual("alfworld")
    for walk in walks(chunk):
        for step in walk.steps:
            diagnosis = check_action(manual, step.action, step.before)
            assert (diagnosis.verdict == "fails") == bool(diagnosis.violated)
            assert len(diagnosis.violated) == len(diagnosis.violated_predicates)
            assert (diagnosis.verdict == "unknown") == bool(
                diagnosis.unsure and not diagnosis.violated
            )
