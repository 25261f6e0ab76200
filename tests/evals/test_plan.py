from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import Task, get_environment
from rpms.envs.alfworld import tasks as alfworld_tasks
from rpms.evals.running.plan import RunPlan, apportioned, choose_tasks, remaining
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


LOST = line("A", 0, False, cross_trial_memory={"notes": ["look"]})
WON = line("A", 0, True)


def test_a_lost_task_is_tried_again_with_what_was_carried() -> None:
    plan = replace(two_by_two(), trials=2)
    first = plan.jobs()[0]
    second = plan.following(first, LOST)
    assert second is not None and second.key == first.key._replace(trial=2)
    assert second.cross_trial_memory == {"notes": ["look"]} and second.before == LOST
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
    (later,) = world.tasks("generated_unseen", 63)[62:]
    assert choose_tasks("alfworld", "generated_unseen", ids=[later["id"]]) == [later]
    with pytest.raises(RpmsError, match="no task 'nowhere'"):
        choose_tasks("alfworld", "generated_unseen", ids=["nowhere"])
    with pytest.raises(RpmsError, match="unknown goal type 'dance'"):
        choose_tasks("alfworld", "generated_unseen", types=["dance"])


def type_counts(env: str, tasks: list[Task]) -> Counter[str]:
    return Counter(get_environment(env).task_name(task) for task in tasks)


@pytest.mark.parametrize(("env", "split"), [
    ("alfworld", "generated_unseen"), ("scienceworld", "test"), ("scienceworld", "dev"),
    ("scienceworld", "dev_mini"),
])  # fmt: skip
def test_a_sample_has_every_task_type_in_proportion_to_its_share(env: str, split: str) -> None:
    """Whatever the order of the split: generated ones cycle through types, others are sorted."""
    whole = choose_tasks(env, split)
    world, sizes = get_environment(env), type_counts(env, whole)
    families = {world.parse_goal(task["goal"])["type"] for task in whole}
    for count in [*range(1, 61, 3), 6, 10, 20, 30]:
        sample = choose_tasks(env, split, count, spread=True)
        assert len(sample) == min(count, len(whole))
        assert sample == sorted(sample, key=lambda task: task["index"]), "in the split's order"
        assert sample == choose_tasks(env, split, count, spread=True), "always the same"
        chosen = type_counts(env, sample)
        assert len(chosen) == min(count, len(sizes)), "as many types as there can be"
        covered = {world.parse_goal(task["goal"])["type"] for task in sample}
        assert len(covered) == min(count, len(families))
        if count >= len(whole):
            assert sample == whole
        for name, size in sizes.items():
            due = count * size / len(whole)
            assert chosen[name] <= max(1, due + 1), "no type has much more than its share"


def test_a_sample_is_spread_over_the_tasks_of_each_type() -> None:
    """Not the first ones, and not only one of two wordings that alternate."""
    world = get_environment("alfworld")
    for count in (10, 20, 30):
        sample = choose_tasks("alfworld", "generated_unseen", count, spread=True)
        # Goal types take turns in generated splits, and the two wordings of each type, too.
        wordings = Counter(task["index"] // len(world.goal_types()) % 2 for task in sample)
        assert min(wordings.values()) >= count // 3
    for kind in world.goal_types():
        of_type = [task["index"] for task in choose_tasks("alfworld", "generated_unseen",
                                                          types=[kind])]  # fmt: skip
        five = [task["index"] for task in choose_tasks("alfworld", "generated_unseen", 5,
                                                       spread=True, types=[kind])]  # fmt: skip
        assert [of_type.index(place) * 5 // len(of_type) for place in five] == [0, 1, 2, 3, 4]


def test_without_spread_a_sample_is_the_first_tasks() -> None:
    whole = choose_tasks("alfworld", "generated_unseen")
    assert choose_tasks("alfworld", "generated_unseen", 3) == whole[:3]
    longer = choose_tasks("alfworld", "generated_unseen", len(whole) + 2, spread=True)
    assert longer[: len(whole)] == whole and len(longer) == len(whole) + 2, "it grows on request"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 200))
def test_places_are_shared_by_size_and_none_is_left_out(sizes: list[int], count: int) -> None:
    named = {str(number): size for number, size in enumerate(sizes)}
    places = apportioned(named, count)
    assert sum(places.values()) == min(count, sum(sizes))
    assert all(places[name] <= size for name, size in named.items())
    assert sum(map(bool, places.values())) == min(count, len(sizes))
    more = apportioned(named, count + 1)
    assert all(more[name] >= places[name] for name in named), "a larger sample takes from nobody"


def test_the_types_of_a_split_are_known_without_playing_or_listing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for env, split in (("alfworld", "generated_unseen"), ("scienceworld", "dev")):
        world = get_environment(env)
        assert world.split_types(split) == list(type_counts(env, world.tasks(split)))
    monkeypatch.setattr(alfworld_tasks, "sample_home", lambda *_: pytest.fail("generates homes"))
    assert len(get_environment("alfworld").split_types("generated_seen")) == 6
