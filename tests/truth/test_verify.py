"""What ``verify`` stops of what the environment rejects, and nothing of what an expert does."""

from __future__ import annotations

from collections import Counter

from rpms.evals.running.diff_arms import played_states
from rpms.evals.running.expert import llm_call
from rpms.guard.procedure import find_violation
from rpms.nodes.state import decision_point
from rpms.rules import check_action, match_action
from rpms.rules.predicates import evaluate
from rpms.vocabulary.context import RunContext
from tests.scripted_episode import under
from tests.truth.playing import play
from tests.truth.test_printed_lines import one_of_each_type

HOMES = 12


def test_most_of_what_a_random_player_is_rejected_for_is_stopped() -> None:
    """85% of it, and nothing that works is called impossible."""
    rejected = Counter[bool]()
    for task in one_of_each_type("alfworld", "generated_seen", count=None):
        for seed in range(3):
            point = None
            for moment in play("alfworld", task, RunContext(), "anything", 30, seed):
                if point is not None:
                    turn = moment.state["history"][-1]
                    if turn["failed"]:
                        rejected[find_violation(point, turn["action"]) is not None] += 1
                    else:
                        diagnosis = check_action(point.manual, turn["action"], point.belief)
                        assert diagnosis.verdict != "broken", (moment.where, turn["action"])
                point = moment.now
    assert rejected.total() > 300 and rejected[True] >= 0.85 * rejected.total(), rejected


def test_the_expert_acts_on_nothing_that_it_is_not_at_and_is_never_stopped() -> None:
    """Also after mistakes that it made on purpose."""
    walks = others = 0
    for state in played_states(RunContext(), "alfworld", limit=HOMES):
        update = llm_call(under(state, RunContext(temperature=0.0, seed=1)))
        if "decisions" in update:  # a mistake that it repeats on purpose
            continue
        action, point = update["action"], decision_point(state)
        assert find_violation(point, action) is None, action
        rule, names = match_action(point.manual, action) or (None, {})
        assert rule is not None
        if rule.name == "go_to":
            walks += 1
            continue
        others += 1
        away = [need for need in rule.needs if need.name == "at" and
                evaluate(need, point.belief, point.manual.facts, names) is False]  # fmt: skip
        assert not away, action
    assert walks > 50 and others > 50
