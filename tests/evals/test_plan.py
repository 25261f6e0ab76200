from __future__ import annotations

from dataclasses import replace

import pytest

from rpms.envs import get_environment
from rpms.evals.plan import RunPlan, choose_tasks, evenly, remaining
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import line, short_plan


def two_by_two() -> RunPlan:
    return short_plan("AB", 2)


def test_the_conditions_of_a_task_lie_together() -> None:
    jobs = two_by_two().jobs()
    assert [job.condition for job in jobs] == ["A", "B", "A", "B"]
    assert jobs[0].task == jobs[1].task != jobs[2].task


def test_only_what_is_not_finished_or_failed_remains() -> None:
    plan = two_by_two()
    keys = [job.key for job in plan.jobs()]
    broken = line("B", 0, False, failure_mode="model_error")
    finished = {keys[0]: line("A", 0, True), keys[1]: broken, keys[2]: line("A", 1, False)}
    assert [job.key for job in remaining(plan, finished)[0]] == [keys[1], keys[3]]
    assert [job.key for job in remaining(plan, finished, keep_failed=True)[0]] == [keys[3]]
    assert remaining(plan, finished)[1] == [finished[keys[0]], finished[keys[2]]]


def test_repeats_are_independent_and_have_seeds_of_their_own() -> None:
    plan = replace(two_by_two(), repeats=3)
    jobs = plan.jobs()
    assert len(jobs) == len({job.key for job in jobs}) == 12
    seeds = {job.seeded(RunContext(seed=7)).seed for job in jobs}
    assert seeds == {7, 8, 9}


LOST = line("A", 0, False, carried={"notes": ["look"]})
WON = line("A", 0, True)


def test_a_lost_task_is_tried_again_with_what_was_carried() -> None:
    plan = replace(two_by_two(), trials=2)
    first = plan.jobs()[0]
    second = plan.following(first, LOST)
    assert second is not None and second.key == first.key._replace(trial=2)
    assert second.carried == {"notes": ["look"]} and second.before == LOST
    assert second.seeded(RunContext()).seed != first.seeded(RunContext()).seed
    assert plan.following(second, LOST) is None
    assert plan.following(first, WON) is None
    assert plan.following(first, line("A", 0, False, failure_mode="model_error")) is None


def test_tasks_are_chosen_by_id_and_by_type() -> None:
    world = get_environment("alfworld")
    whole = world.tasks("generated_unseen", None)
    ids = [whole[4]["id"], whole[1]["id"]]
    assert choose_tasks("alfworld", "generated_unseen", ids=ids) == [whole[1], whole[4]]
    kind = world.goal_types()[0]
    chosen = choose_tasks("alfworld", "generated_unseen", 2, types=[kind])
    assert [world.parse_goal(task["goal"])["type"] for task in chosen] == [kind, kind]
    with pytest.raises(RpmsError, match="no task 'nowhere'"):
        choose_tasks("alfworld", "generated_unseen", ids=["nowhere"])
    with pytest.raises(RpmsError, match="unknown goal type 'dance'"):
        choose_tasks("alfworld", "generated_unseen", types=["dance"])


def test_a_sample_is_spread_on_request_and_else_takes_the_first_tasks() -> None:
    """Of a sorted split, the latter may all be of one type."""
    world = get_environment("alfworld")
    whole = sorted(world.tasks("generated_unseen", None),
                   key=lambda task: world.parse_goal(task["goal"])["type"])  # fmt: skip
    sample = evenly(whole, 24)
    assert len(sample) == 24 and [whole.index(task) for task in sample] == sorted(
        {whole.index(task) for task in sample}
    )
    assert {world.parse_goal(task["goal"])["type"] for task in sample} == {*world.goal_types()}
    whole = choose_tasks("alfworld", "generated_unseen")
    assert choose_tasks("alfworld", "generated_unseen", 3) == whole[:3]
    for count in (3, len(whole)):
        spread = choose_tasks("alfworld", "generated_unseen", count, spread=True)
        assert spread == [whole[number * len(whole) // count] for number in range(count)]
