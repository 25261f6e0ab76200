from __future__ import annotations

from evals.plan import JobKey, RunPlan, make_plan, remaining
from evals.presets import letters
from nodes.context import RunContext
from vocabulary.turn import FailureMode


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
