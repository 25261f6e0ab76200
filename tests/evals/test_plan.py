from __future__ import annotations

from rpms.envs import get_environment
from rpms.evals.plan import JobKey, RunPlan, evenly, make_plan, remaining
from rpms.evals.presets import letters
from rpms.nodes.context import RunContext
from rpms.vocabulary.turn import FailureMode


def two_by_two() -> RunPlan:
    contexts = letters(["A", "B"], RunContext())
    return make_plan("alfworld", "generated_unseen", contexts, 2)


def test_the_conditions_of_a_task_lie_together() -> None:
    jobs = two_by_two().jobs()
    assert [job.condition for job in jobs] == ["A", "B", "A", "B"]
    assert jobs[0].task == jobs[1].task != jobs[2].task


def test_only_what_is_not_finished_remains() -> None:
    plan = two_by_two()
    keys = [job.key for job in plan.jobs()]
    finished: dict[JobKey, FailureMode | None] = {
        keys[0]: None, keys[1]: "model_error", keys[2]: "timeout"
    }  # fmt: skip
    assert [job.key for job in remaining(plan, finished, False)] == [keys[3]]
    assert [job.key for job in remaining(plan, finished, True)] == [keys[1], keys[3]]
    finished[keys[3]] = "infrastructure_error"
    assert [job.key for job in remaining(plan, finished, False)] == []
    assert [job.key for job in remaining(plan, finished, True)] == [keys[1], keys[3]]


def test_a_spread_sample_holds_every_task_type_of_a_sorted_split() -> None:
    world = get_environment("alfworld")
    tasks = sorted(
        world.tasks("generated_unseen", None),
        key=lambda task: world.parse_goal(task["goal"])["type"],
    )
    kinds = {world.parse_goal(task["goal"])["type"] for task in tasks}
    sample = evenly(tasks, 24)
    assert len(sample) == 24
    assert {world.parse_goal(task["goal"])["type"] for task in sample} == kinds
    assert [tasks.index(task) for task in sample] == sorted({tasks.index(task) for task in sample})
    assert {world.parse_goal(task["goal"])["type"] for task in tasks[:5]} != kinds


def test_a_plan_is_spread_on_request_and_else_takes_the_first_tasks() -> None:
    contexts = letters(["A"], RunContext())
    whole = make_plan("alfworld", "generated_unseen", contexts).tasks
    assert make_plan("alfworld", "generated_unseen", contexts, 3).tasks == whole[:3]
    spread = make_plan("alfworld", "generated_unseen", contexts, 3, spread=True).tasks
    assert spread == [whole[0], whole[len(whole) // 3], whole[2 * len(whole) // 3]]
    every = make_plan("alfworld", "generated_unseen", contexts, len(whole), spread=True).tasks
    assert every == whole
