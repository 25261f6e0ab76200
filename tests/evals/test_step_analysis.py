"""What steps say: rules kept, why actions failed, where an episode went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.evals.step_analysis import (
    ANY_GOAL,
    CAUSES,
    KNOWN_ACTION,
    NOT_RECORDED,
    NOTHING_REFUSED,
    Cause,
    Judgement,
    cause_rank,
    failure_counts,
    find_cause,
    in_prompt,
    judge,
    mark_failures,
    prediction_counts,
    source_type,
)
from rpms.rules import forbidden_by
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.turn import FailureMode

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")
SCIENCE = load_manual("scienceworld")
COOL = ENV.parse_goal("cool some mug and put it in shelf.")
ACTIONS = {rule.name: rule.id for rule in MANUAL.actions}
FRIDGE = {"location": "fridge 1", "containers": {"fridge 1": "open"}}


def here(**known: Any) -> Belief:
    belief: Any = {**empty_belief(), "location": "shelf 1", "places": ["shelf 1", "fridge 1"]}
    return belief | known  # type: ignore[no-any-return]


@pytest.mark.parametrize(("action", "belief", "verdict"), [
    ("take mug 1 from fridge 1", {"spots": {"shelf 1": []}}, "broken"),
    ("take mug 1 from shelf 1", {"last_seen": {"mug 1": "shelf 1"}, "searched": ["shelf 1"]},
     "kept"),
    # Is it open? The belief does not tell.
    ("put mug 1 in/on fridge 1", {"location": "fridge 1", "holding": ["mug 1"]}, "unsure"),
])  # fmt: skip
def test_an_action_is_judged_by_its_rule(action: str, belief: Any, verdict: Any) -> None:
    judged = judge(MANUAL, action, here(**belief), COOL)
    assert judged[:2] == [
        Judgement(KNOWN_ACTION, "kept"), Judgement(ACTIONS[action.split()[0]], verdict)
    ]  # fmt: skip


def test_a_forbidding_rule_speaks_only_of_its_own_actions_and_goals() -> None:
    belief, put = here(**FRIDGE, holding=["mug 1"]), "put mug 1 in/on fridge 1"
    rule = forbidden_by(MANUAL, put, COOL)
    assert rule
    other = ENV.parse_goal("put some mug on shelf.")
    verdicts = [
        dict(judge(MANUAL, action, belief, goal)).get(rule)
        for action, goal in ((put, COOL), ("put mug 1 in/on shelf 1", COOL),
                             ("go to shelf 1", COOL), (put, other))
    ]  # fmt: skip
    assert verdicts == ["broken", "kept", None, None]


def test_a_request_that_was_asked_back_wants_a_number() -> None:
    manual = load_manual("scienceworld")
    rule = manual.environment.disambiguation.rule
    goal = get_environment("scienceworld").parse_goal("Your task is to boil water.")
    question = here(disambiguation={"0": "open cupboard", "1": "open oven"})
    assert judge(manual, "1", question, goal) == [
        Judgement(KNOWN_ACTION, "kept"), Judgement(rule, "kept")
    ]  # fmt: skip
    assert judge(manual, "look around", question, goal)[0] == Judgement(rule, "broken")
    assert judge(manual, "1", here(), goal) == [Judgement(KNOWN_ACTION, "broken")]


@given(st.text(max_size=60), st.booleans())
def test_any_reply_can_be_judged(proposal: str, holding: bool) -> None:
    judged = judge(MANUAL, proposal, here(holding=["mug 1"] if holding else []), COOL)
    assert len(judged) == len(dict(judged))
    assert bool(judged) == bool(proposal)
    assert judge(MANUAL, "levitate", here(), COOL) == [Judgement(KNOWN_ACTION, "broken")]


def played(rule: str, verdict: str, failed: bool, **more: Any) -> dict[str, Any]:
    judged = [[KNOWN_ACTION, "kept"], [rule, verdict]]
    return {"judged": judged, "action": "a", "proposal": "a", "failed": failed, **more}


def test_what_the_world_says_is_held_against_what_a_rule_foretold() -> None:
    steps = [
        played("R-1", "kept", failed=False),
        played("R-1", "kept", failed=True),
        played("R-1", "broken", failed=True),
        played("R-1", "broken", failed=False),
        played("R-1", "broken", failed=False),
        played("R-2", "unsure", failed=True),
        played("R-2", "kept", failed=True, action="b"),  # another one was played instead
        {"judged": [[KNOWN_ACTION, "broken"]], "action": "x", "proposal": "x", "failed": True},
    ]
    assert prediction_counts(steps) == {"foretold": {"R-1": [2, 1, 3, 2]}}


TAKE = "take mug 1 from fridge 1"
SEEN = {**FRIDGE, "last_seen": {"mug 1": "fridge 1"}, "searched": ["fridge 1"]}
AWAY = {"location": "shelf 1", "spots": {"shelf 1": ["shelf 1"]}}
USES = [{"before": {}, "worked": True}]


def acted(
    action: str, belief: dict[str, Any], rules: tuple[str, ...] = (), memories: Any = (),
    failed: bool = True,
) -> dict[str, Any]:  # fmt: skip
    return {
        "action": action, "belief": {**empty_belief(), **belief}, "failed": failed, "lacked": "",
        "rules": {"universal": [], "environment": list(rules), "situation": []},
        "recalls": list(memories),
    }  # fmt: skip


def memory(kind: str, *actions: str, dropped: str = "", **entry: Any) -> dict[str, Any]:
    return {"entry": {"id": "m", "type": kind, **entry}, "advice": {"actions": list(actions)},
            "dropped_by": dropped}  # fmt: skip


def kinds(*steps: dict[str, Any], mode: str | None = "timeout", **settings: Any) -> list[str]:
    mark_failures(steps, MANUAL, COOL, settings, mode)
    return [step["lacked"] for step in steps]


RULE = (ACTIONS["take"],)


LESSON = memory("failure", TAKE)
FIRST, LATER = memory("success", TAKE, "go to shelf 1"), memory("success", "look", TAKE)
SCHEMA = memory("schema", TAKE, preconditions=["at(place)"], uses=USES)


@pytest.mark.parametrize(("step", "kind"), [
    (acted(TAKE, AWAY, RULE), "ignored"),           # the rule was there
    (acted(TAKE, AWAY), "missing"),                 # it was not
    (acted(TAKE, SEEN, RULE), "wrong"),             # all it needs held, and yet
    (acted(TAKE, SEEN), "missing"),                 # no rule said that it would work
    (acted("put mug 1 in/on fridge 1", {"location": "fridge 1", "holding": ["mug 1"]},
           (ACTIONS["put"],)), "missing"),          # is it open? nobody knows
    (acted("levitate", AWAY), "ignored"),           # on no list
    (acted(TAKE, AWAY, RULE, failed=False), ""),    # nothing failed
    (acted("", AWAY, RULE), ""),                    # no action could be read
    (acted(TAKE, SEEN, (), [FIRST]), "wrong"),      # it said: do this now
    (acted(TAKE, SEEN, (), [LATER]), "missing"),    # it said: do this afterwards
    (acted(TAKE, SEEN, (), [LESSON]), "ignored"),   # it said: do not
    (acted(TAKE, SEEN, (), [FIRST, LESSON]), "ignored"),    # both
    (acted(TAKE, AWAY, (), [SCHEMA]), "ignored"),   # it named the need that is not met
    (acted(TAKE, SEEN, (), [SCHEMA]), "wrong"),     # it named too few
    (acted(TAKE, SEEN, (), [memory("schema", TAKE, preconditions=["be there"])]),
     "missing"),                                    # in words
    (acted(TAKE, SEEN, (), [memory("failure", TAKE, dropped="scf")]), "missing"),  # nobody read it
    # A rule that was there outweighs a memory that misled.
    (acted(TAKE, AWAY, RULE, [FIRST]), "ignored"),
])  # fmt: skip
def test_the_kind_of_a_failure(step: dict[str, Any], kind: str) -> None:
    assert kinds(step) == [kind]


def test_filler_has_the_length_of_memories_and_none_of_their_words() -> None:
    only = acted(TAKE, SEEN, (), [memory("success", TAKE)])
    assert kinds(only, memory_control="filler") == ["missing"]
    assert in_prompt(only, {"memory_control": "filler"}) == []


def test_what_ends_an_episode_badly_was_possible_and_may_still_have_been_forbidden() -> None:
    belief = {**FRIDGE, "holding": ["mug 1"]}
    put = "put mug 1 in/on fridge 1"
    both = (ACTIONS["put"], "O-COOL-001")
    for rules, kind in ((both, "ignored"), (both[:1], "missing"), ((), "missing")):
        last = acted(put, belief, rules, failed=False)
        steps = [acted(TAKE, SEEN, RULE), last]
        assert kinds(*steps, mode="wrong_termination") == ["wrong", kind]
        assert failure_counts(steps, "wrong_termination")["lost_by"] == kind
        assert failure_counts(steps, "wrong_termination")["refused"]["wrong"] == 1


def test_a_lost_episode_counts_under_its_commonest_kind() -> None:
    missing, wrong, ignored = (
        acted(TAKE, SEEN),
        acted(TAKE, SEEN, RULE),
        acted(TAKE, AWAY, RULE),
    )
    for steps, kind in (
        ([missing, missing, wrong], "missing"),
        ([missing, wrong, ignored], "ignored"),
        ([missing, wrong], "wrong"),
        ([], NOTHING_REFUSED),
    ):
        kinds(*steps)
        assert failure_counts(steps, "timeout")["lost_by"] == kind
        assert failure_counts(steps, None)["lost_by"] == ""


def test_an_entry_comes_from_its_goal_or_names_its_source() -> None:
    for entry, source in (
        ({"goal_signature": "heat:mug", "source": "x"}, "heat"),
        ({"source": "insights"}, "insights"),
        ({}, ANY_GOAL),
        ({"goal_signature": ":"}, ANY_GOAL),
    ):
        assert source_type(entry, lambda printed: printed.partition(":")[0]) == source


def step(action: str, progress: int = 0, **changes: Any) -> dict[str, Any]:
    """A step that worked, at a place of its own unless ``belief`` says otherwise."""
    belief = {**empty_belief(), **changes.pop("belief", {})}
    goal = {"name": "find_object", "target": "mug", "progress": progress}
    return {"action": action, "failed": False, "belief_errors": [], "lacked": "", "sub_goal": goal,
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
    return find_cause(mode, error, numbered(*steps), MANUAL)


def refused(action: str = "open shelf 1", progress: int = 0, **changes: Any) -> dict[str, Any]:
    return step(action, progress, failed=True, **changes)


EARLY = [refused("open shelf 2"), refused("open shelf 2")]
DRIFT = step("look", drift=["holding: the belief says mug 1"])
GAVE_UP = "(at the end 0% done, find object mug)"


@pytest.mark.parametrize(("steps", "kind", "number", "texts"), [
    ([*walk(3), refused(lacked="ignored"), *walk(4, start=9), refused(), refused()],
     "repeated refusal", 4,
     ["'open shelf 1' was refused at step 4 and 2 times more, against", GAVE_UP]),
    ([*walk(3), refused(), *walk(9, start=9)], "missed sub-goal", 1, ["from step 1 on", GAVE_UP]),
    # Only what came after the last progress counts.
    ([*EARLY, *walk(4, progress=50), refused("use mug 1", 50), refused("use mug 1", 50)],
     "repeated refusal", 7, ["once more"]),
    ([*EARLY, *walk(6), *walk(2, progress=50, start=9)], "out of steps", 9, []),
    # A belief that was wrong before the refusals is to blame, and not one after them.
    ([*walk(2), DRIFT, refused(), refused()], "belief_errors", 3, ["holding: the belief says mug 1"]),
    ([*walk(2), refused(), DRIFT, refused()], "repeated refusal", 3, []),
    ([*walk(3), step("put mug 1 in/on bed 1", 60), *walk(6, progress=20, start=9)],
     "undone", 4, ["60% before 'put mug 1 in/on bed 1' at step 4"]),
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
    assert (why.kind, why.step) == ("in circles", 5)
    assert "6 of the last 10 steps" in why.text
    waiting = numbered(*[step("wait") for _ in range(8)])
    assert find_cause("timeout", "", waiting, SCIENCE).kind == "missed sub-goal"
    turns = numbered(*[step("open cupboard") for _ in range(8)])
    assert find_cause("timeout", "", turns, SCIENCE).kind == "in circles"


def test_a_wrong_last_action_is_called_by_its_name() -> None:
    last = step("focus on blue box", lacked="missing")
    why = find_cause("wrong_termination", "", numbered(*walk(2), last), SCIENCE)
    assert why == Cause("wrong focus", 3, "'focus on blue box' ended the task at step 3")
    choice = step(
        "2", belief={"disambiguation": {"2": "focus on red box (in hall)"}}, lacked="ignored"
    )
    why = find_cause("wrong_termination", "", numbered(choice), SCIENCE)
    assert why.kind == "wrong focus" and "against what the prompt said" in why.text
    assert cause(step("sing"), mode="wrong_termination").kind == "wrong last action"
    assert cause_rank("wrong focus") < cause_rank("repeated refusal") < cause_rank("model error")


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
    why = find_cause(mode, "it broke", numbered(*steps), manual)
    assert why.kind in CAUSES[1:] or why.kind.startswith("wrong ")
    assert 0 <= why.step <= len(steps)
    assert why.text and "\n" not in why.text
    if why.kind == "belief_errors":
        assert steps[why.step - 1]["belief_errors"]
    if why.kind == "repeated refusal":
        again = [step["action"] for step in steps[why.step :] if step["failed"]]
        assert steps[why.step - 1]["failed"] and steps[why.step - 1]["action"] in again
