"""Where an episode went wrong: logs made by hand, in which it is known, and any log at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.causes import KINDS, NOT_RECORDED, Cause, find_cause, place_of
from rpms.nodes.manual import load_manual
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.turn import ERRORS, FailureMode

MANUAL = load_manual("alfworld")
SCIENCE = load_manual("scienceworld")


def step(action: str, progress: int = 0, **changes: Any) -> dict[str, Any]:
    """A step that worked, at a place of its own unless ``belief`` says otherwise."""
    belief = {**empty_belief(), **changes.pop("belief", {})}
    goal = {"name": "find_object", "target": "mug", "progress": progress}
    return {"action": action, "failed": False, "drift": [], "lacked": "", "sub_goal": goal,
            "belief": belief, **changes}  # fmt: skip


def numbered(*steps: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**one, "step": number} for number, one in enumerate(steps, start=1)]


def walk(count: int, progress: int = 0, start: int = 0) -> list[dict[str, Any]]:
    """A walk that sees something new at every step."""
    places = [f"shelf {start + number}" for number in range(count)]
    return [
        step(f"go to {place}", progress, belief={"location": place, "searched": [place]})
        for place in places
    ]


def cause(*steps: Mapping[str, Any], mode: FailureMode = "timeout", error: str = "") -> Cause:
    return find_cause(mode, error, numbered(*steps), MANUAL)


def refused(action: str = "open shelf 1", progress: int = 0, **changes: Any) -> dict[str, Any]:
    return step(action, progress, failed=True, **changes)


def test_an_action_that_was_refused_again_and_again() -> None:
    found = cause(*walk(3), refused(lacked="ignored"), *walk(4, start=9), refused(), refused())
    assert (found.kind, found.step) == ("repeated refusal", 4)
    assert found.text.startswith("'open shelf 1' was refused at step 4 and 2 times more, against")
    assert found.text.endswith("(at the end 0% done, find object mug)")
    assert cause(*walk(3), refused(), *walk(9, start=9)).kind == "missed sub-goal"


def test_only_what_came_after_the_last_progress_counts() -> None:
    early = [refused("open shelf 2"), refused("open shelf 2")]
    late = cause(*early, *walk(4, progress=50), refused("use mug 1", 50), refused("use mug 1", 50))
    assert (late.kind, late.step) == ("repeated refusal", 7)
    assert "once more" in late.text
    got_on = cause(*early, *walk(6), *walk(2, progress=50, start=9))
    assert (got_on.kind, got_on.step) == ("out of steps", 9)


def test_a_belief_that_was_wrong_before_the_refusals_is_to_blame() -> None:
    wrong = step("look", drift=["holding: the belief says mug 1"])
    found = cause(*walk(2), wrong, refused(), refused())
    assert (found.kind, found.step) == ("drift", 3)
    assert "holding: the belief says mug 1" in found.text
    assert cause(*walk(2), refused(), wrong, refused()).kind == "repeated refusal"


def test_progress_that_was_undone_again() -> None:
    found = cause(*walk(3), step("put mug 1 in/on bed 1", 60), *walk(6, progress=20, start=9))
    assert (found.kind, found.step) == ("undone", 4)
    assert "60% before 'put mug 1 in/on bed 1' at step 4" in found.text


def test_walking_in_circles_but_not_waiting() -> None:
    round_ = [
        step("go to bed 1", belief={"location": "sofa 1"}),
        step("go to sofa 1", belief={"location": "bed 1"}),
    ]
    found = cause(*walk(2), *round_, *round_, *round_, *round_)
    assert (found.kind, found.step) == ("in circles", 5)
    assert "6 of the last 10 steps" in found.text
    waiting = numbered(*[step("wait") for _ in range(8)])
    assert find_cause("timeout", "", waiting, SCIENCE).kind == "missed sub-goal"
    turns = numbered(*[step("open cupboard") for _ in range(8)])
    assert find_cause("timeout", "", turns, SCIENCE).kind == "in circles"


def test_a_wrong_last_action_is_called_by_its_name() -> None:
    last = step("focus on blue box", lacked="missing")
    found = find_cause("wrong_termination", "", numbered(*walk(2), last), SCIENCE)
    assert found == Cause("wrong focus", 3, "'focus on blue box' ended the task at step 3")
    asked = step("2", belief={"asked": {"2": "focus on red box (in hall)"}}, lacked="ignored")
    found = find_cause("wrong_termination", "", numbered(asked), SCIENCE)
    assert found.kind == "wrong focus" and "against what the prompt said" in found.text
    assert cause(step("sing"), mode="wrong_termination").kind == "wrong last action"
    assert place_of("wrong focus") < place_of("repeated refusal") < place_of("model error")


def test_replies_errors_and_logs_that_are_not_there() -> None:
    found = cause(step("look"), step(""), step(""), step(""), mode="format")
    assert (found.kind, found.step) == ("unreadable replies", 2)
    assert found.text.startswith("3 of 4 replies")
    broken = cause(step("look"), mode="model_error", error="401:\n no key")
    assert broken == Cause("model error", 1, "401: no key")
    assert cause(mode="infrastructure_error").step == 0
    assert cause() == NOT_RECORDED


beliefs = st.sampled_from([{"location": "bed 1"}, {"location": "sofa 1"}, {"holding": ["mug 1"]}])
any_step = st.builds(
    step,
    action=st.sampled_from(["", "look", "go to bed 1", "focus on mug", "2", "wait"]),
    progress=st.sampled_from([0, 20, 50, 100]),
    belief=beliefs,
    failed=st.booleans(),
    drift=st.lists(st.just("holding: the belief says mug 1"), max_size=1),
    lacked=st.sampled_from(["", "missing", "wrong", "ignored"]),
)


@given(
    mode=st.sampled_from(get_args(FailureMode)),
    steps=st.lists(any_step, max_size=30),
    manual=st.sampled_from([MANUAL, SCIENCE]),
)
def test_every_lost_episode_has_one_cause_at_one_of_its_steps(
    mode: FailureMode, steps: Sequence[dict[str, Any]], manual: Any
) -> None:
    found = find_cause(mode, "it broke", numbered(*steps), manual)
    assert found.kind in KINDS[1:] or found.kind.startswith("wrong ")
    assert 0 <= found.step <= len(steps)
    assert found.text and "\n" not in found.text
    if found == NOT_RECORDED or mode in ERRORS:
        assert mode in ERRORS or not steps
        return
    if found.kind == "repeated refusal":
        first = steps[found.step - 1]
        later = [one for one in steps[found.step :] if one["failed"]]
        assert first["failed"] and any(one["action"] == first["action"] for one in later)
    if found.kind == "drift":
        assert steps[found.step - 1]["drift"]
    if mode == "timeout":
        best = max(one["sub_goal"]["progress"] for one in steps)
        assert all(one["sub_goal"]["progress"] <= best for one in steps[found.step - 1 :])
        assert best in [one["sub_goal"]["progress"] for one in steps[: found.step]]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_place(kind: str) -> None:
    assert place_of(kind) == KINDS.index(kind)
