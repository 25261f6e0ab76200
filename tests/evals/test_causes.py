"""Where lost episodes went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.manuals import load_manual
from rpms.evals.analysis.causes import CAUSES, NOT_RECORDED, Cause, cause_rank, find_cause
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.turn import FailureMode

MANUAL = load_manual("alfworld")
SCIENCE = load_manual("scienceworld")


def step(action: str, progress: int = 0, **changes: Any) -> dict[str, Any]:
    """A step that worked, at a place of its own unless ``belief`` says otherwise."""
    belief = {**empty_belief(), **changes.pop("belief", {})}
    goal = {"name": "find_object", "target": "mug", "progress": progress}
    return {"action": action, "failed": False, "belief_errors": [], "sub_goal": goal,
            "belief": belief, **changes}  # fmt: skip


def numbered(*steps: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**step, "step": number} for number, step in enumerate(steps, start=1)]


def walk(count: int, progress: int = 0, start: int = 0) -> list[dict[str, Any]]:
    """A walk that sees something new at every step."""
    places = [f"shelf {start + number}" for number in range(count)]
    return [
        step(f"go to {place}", progress, belief={"location": place, "searched": [place]})
        for place in places
    ]


def cause(*steps: Mapping[str, Any], mode: FailureMode = "timeout", error: str = "") -> Cause:
    return found(mode, steps, MANUAL, error)


def found(
    mode: FailureMode, steps: Sequence[Mapping[str, Any]], manual: Any, error: str = ""
) -> Cause:
    return find_cause(mode, error, numbered(*steps), manual)


def refused(action: str = "open shelf 1", progress: int = 0, **changes: Any) -> dict[str, Any]:
    return step(action, progress, failed=True, **changes)


EARLY = [refused("open shelf 2"), refused("open shelf 2")]
WRONG_BELIEF = step("look", belief_errors=["holding: the belief says mug 1"])
GAVE_UP = "(at the end 0% done, find object mug)"


@pytest.mark.parametrize(("steps", "kind", "number", "texts"), [
    ([*walk(3), refused(), *walk(4, start=9), refused(), refused()],
     "repeated rejection", 4,
     ["'open shelf 1' was rejected at step 4 and 2 times more", GAVE_UP]),
    ([*walk(3), refused(), *walk(9, start=9)], "missed sub-goal", 1, ["from step 1 on", GAVE_UP]),
    # Only what came after the last progress counts.
    ([*EARLY, *walk(4, progress=50), refused("use mug 1", 50), refused("use mug 1", 50)],
     "repeated rejection", 7, ["once more"]),
    ([*EARLY, *walk(6), *walk(2, progress=50, start=9)], "out of steps", 9, []),
    # A belief that was wrong before the refusals is to blame, and not one after them.
    ([*walk(2), WRONG_BELIEF, refused(), refused()], "belief error", 3,
     ["holding: the belief says mug 1"]),
    ([*walk(2), refused(), WRONG_BELIEF, refused()], "repeated rejection", 3, []),
    ([*walk(3), step("put mug 1 in/on bed 1", 60), *walk(6, progress=20, start=9)],
     "undone", 4, ["60% with 'put mug 1 in/on bed 1' at step 4"]),
])  # fmt: skip
def test_where_an_episode_went_wrong(
    steps: list[dict[str, Any]], kind: str, number: int, texts: list[str]
) -> None:
    why = cause(*steps)
    assert (why.kind, why.step) == (kind, number)
    assert all(text in why.text for text in texts)


def test_walking_in_circles_but_not_waiting() -> None:
    round_ = [
        step("go to bed 1", belief={"location": "sofa 1"}),
        step("go to sofa 1", belief={"location": "bed 1"}),
    ]
    why = cause(*walk(2), *round_, *round_, *round_, *round_)
    assert (why.kind, why.step) == ("loop", 5)
    assert "6 of the last 10 steps" in why.text
    waiting = [step("wait") for _ in range(8)]
    assert found("timeout", waiting, SCIENCE).kind == "missed sub-goal"
    turns = [step("open cupboard") for _ in range(8)]
    assert found("timeout", turns, SCIENCE).kind == "loop"


def test_a_wrong_last_action_is_called_by_its_name() -> None:
    last = step("focus on blue box")
    why = found("wrong_termination", [*walk(2), last], SCIENCE)
    assert why == Cause("wrong focus", 3, "'focus on blue box' ended the task at step 3")
    choice = step("2", belief={"disambiguation": {"2": "focus on red box (in hall)"}})
    assert found("wrong_termination", [choice], SCIENCE).kind == "wrong focus"
    assert cause(step("sing"), mode="wrong_termination").kind == "wrong last action"
    assert cause_rank("wrong focus") < cause_rank("repeated rejection") < cause_rank("model error")


def test_replies_errors_and_logs_that_are_not_there() -> None:
    why = cause(step("look"), step(""), step(""), step(""), mode="format")
    assert (why.kind, why.step) == ("unreadable replies", 2)
    assert why.text.startswith("3 of 4 replies")
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
    belief_errors=st.lists(st.just("holding: the belief says mug 1"), max_size=1),
)


@given(
    mode=st.sampled_from(get_args(FailureMode)),
    steps=st.lists(any_step, max_size=30),
    manual=st.sampled_from([MANUAL, SCIENCE]),
)
def test_every_lost_episode_has_one_cause_at_one_of_its_steps(
    mode: FailureMode, steps: Sequence[dict[str, Any]], manual: Any
) -> None:
    why = found(mode, steps, manual, "it broke")
    assert why.kind in CAUSES[1:] or why.kind.startswith("wrong ")
    assert 0 <= why.step <= len(steps)
    assert why.text and "\n" not in why.text
    if why.kind == "belief error":
        assert steps[why.step - 1]["belief_errors"]
    if why.kind == "repeated rejection":
        again = [step["action"] for step in steps[why.step :] if step["failed"]]
        assert steps[why.step - 1]["failed"] and steps[why.step - 1]["action"] in again
