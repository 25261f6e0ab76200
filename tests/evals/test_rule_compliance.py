"""Which rules proposals kept, and why actions failed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.evals.rule_compliance import (
    ENDS,
    KINDS,
    KNOWN_ACTION,
    NOTHING_REFUSED,
    Judgement,
    compliance_counts,
    failure_counts,
    in_prompt,
    judge,
    mark_failures,
    prediction_counts,
    span_of,
    spans,
)
from rpms.nodes.manual import load_manual
from rpms.rules import forbidden_by
from rpms.vocabulary.belief import Belief, empty_belief

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")
COOL = ENV.parse_goal("cool some mug and put it in shelf.")
ACTIONS = {rule.name: rule.id for rule in MANUAL.actions}


def here(**known: Any) -> Belief:
    belief: Any = {**empty_belief(), "location": "shelf 1", "places": ["shelf 1", "fridge 1"]}
    return belief | known  # type: ignore[no-any-return]


def test_an_action_that_lacks_something_breaks_its_rule() -> None:
    found = judge(MANUAL, "take mug 1 from fridge 1", here(spots={"shelf 1": []}), COOL)
    assert found == [Judgement(KNOWN_ACTION, "kept"), Judgement(ACTIONS["take"], "broken")]


def test_an_action_whose_needs_hold_keeps_its_rule() -> None:
    belief = here(last_seen={"mug 1": "shelf 1"}, searched=["shelf 1"])
    assert Judgement(ACTIONS["take"], "kept") in judge(
        MANUAL, "take mug 1 from shelf 1", belief, COOL
    )


def test_what_the_belief_does_not_tell_is_unsure() -> None:
    belief = here(location="fridge 1", holding=["mug 1"])
    found = judge(MANUAL, "put mug 1 in/on fridge 1", belief, COOL)
    assert Judgement(ACTIONS["put"], "unsure") in found


def test_a_forbidding_rule_speaks_only_of_its_own_actions_and_goals() -> None:
    belief = here(location="fridge 1", holding=["mug 1"], containers={"fridge 1": "open"})
    rule = forbidden_by(MANUAL, "put mug 1 in/on fridge 1", COOL)
    assert rule
    assert Judgement(rule, "broken") in judge(MANUAL, "put mug 1 in/on fridge 1", belief, COOL)
    assert Judgement(rule, "kept") in judge(MANUAL, "put mug 1 in/on shelf 1", belief, COOL)
    assert rule not in {one.rule for one in judge(MANUAL, "go to shelf 1", belief, COOL)}
    other = ENV.parse_goal("put some mug on shelf.")
    assert rule not in {
        one.rule for one in judge(MANUAL, "put mug 1 in/on fridge 1", belief, other)
    }


def test_no_action_of_the_list_is_a_breach_of_the_list_alone() -> None:
    assert judge(MANUAL, "levitate", here(), COOL) == [Judgement(KNOWN_ACTION, "broken")]
    assert judge(MANUAL, "", here(), COOL) == []


def test_a_request_that_was_asked_back_wants_a_number() -> None:
    manual = load_manual("scienceworld")
    rule = manual.environment.asked_back.rule
    goal = get_environment("scienceworld").parse_goal("Your task is to boil water.")
    asked = here(asked={"0": "open cupboard", "1": "open oven"})
    assert judge(manual, "1", asked, goal) == [
        Judgement(KNOWN_ACTION, "kept"), Judgement(rule, "kept")
    ]  # fmt: skip
    assert judge(manual, "look around", asked, goal)[0] == Judgement(rule, "broken")
    assert judge(manual, "1", here(), goal) == [Judgement(KNOWN_ACTION, "broken")]


@given(st.text(max_size=60), st.booleans())
def test_any_reply_can_be_judged(proposal: str, holding: bool) -> None:
    found = judge(MANUAL, proposal, here(holding=["mug 1"] if holding else []), COOL)
    assert len(found) == len({one.rule for one in found})
    assert bool(found) == bool(proposal)


def test_spans_follow_one_another_without_a_gap() -> None:
    assert [span_of(step) for step in (1, 5, 6, 50, 51, 10_000)] == [
        "1-5", "1-5", "6-10", "31-50", "51+", "51+"
    ]  # fmt: skip
    assert list(dict.fromkeys(map(span_of, range(1, ENDS[-1] + 9)))) == spans()


VERDICTS = st.sampled_from(["kept", "broken", "unsure"])
JUDGED = st.dictionaries(st.sampled_from([KNOWN_ACTION, "R-1", "R-2"]), VERDICTS)


@given(st.lists(JUDGED, max_size=80))
def test_counts_add_up(verdicts: list[dict[str, str]]) -> None:
    steps = [
        {"step": number, "judged": [list(pair) for pair in judged.items()]}
        for number, judged in enumerate(verdicts, start=1)
    ]
    found = compliance_counts(steps)
    for rule, (settled, kept, unsure) in found["obeyed"].items():
        said = [judged[rule] for judged in verdicts if rule in judged]
        assert kept == said.count("kept") and unsure == said.count("unsure")
        assert settled == len(said) - unsure
    proposals = sum(asked for asked, _ in found["obeyed_by_step"].values())
    obedient = sum(kept for _, kept in found["obeyed_by_step"].values())
    broken = sum("broken" in judged.values() for judged in verdicts)
    assert proposals - obedient == broken and proposals <= len(verdicts)


@pytest.mark.parametrize("judged", [{KNOWN_ACTION: "kept"}, {"R-1": "unsure"}, {}])
def test_what_nothing_settles_is_not_counted_as_obedient(judged: dict[str, str]) -> None:
    step = {"step": 3, "judged": [list(pair) for pair in judged.items()]}
    assert compliance_counts([step])["obeyed_by_step"] == {}


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
FRIDGE = {"location": "fridge 1", "containers": {"fridge 1": "open"}}
SEEN = {**FRIDGE, "last_seen": {"mug 1": "fridge 1"}, "searched": ["fridge 1"]}
AWAY = {"location": "shelf 1", "spots": {"shelf 1": ["shelf 1"]}}
USES = [{"before": {}, "worked": True}]


def step(
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
    return [one["lacked"] for one in steps]


RULE = (ACTIONS["take"],)


def test_each_kind_by_rules_alone() -> None:
    assert kinds(
        step(TAKE, AWAY, RULE),                              # the rule was there
        step(TAKE, AWAY),                                    # it was not
        step(TAKE, SEEN, RULE),                              # all it needs held, and yet
        step(TAKE, SEEN),                                    # no rule said that it would work
        step("put mug 1 in/on fridge 1", {"location": "fridge 1", "holding": ["mug 1"]},
             (ACTIONS["put"],)),                             # is it open? nobody knows
        step("levitate", AWAY),                              # on no list
        step(TAKE, AWAY, RULE, failed=False),                # nothing failed
        step("", AWAY, RULE),                                # no action could be read
    ) == ["ignored", "missing", "wrong", "missing", "missing", "ignored", "", ""]  # fmt: skip


def test_each_kind_by_memories_alone() -> None:
    first, later = memory("success", TAKE, "go to shelf 1"), memory("success", "look", TAKE)
    lesson = memory("failure", TAKE)
    needs = {"preconditions": ["at(place)"], "uses": USES}
    schema = memory("schema", TAKE, **needs)
    assert kinds(
        step(TAKE, SEEN, (), [first]),                       # it said: do this now
        step(TAKE, SEEN, (), [later]),                       # it said: do this afterwards
        step(TAKE, SEEN, (), [lesson]),                      # it said: do not
        step(TAKE, SEEN, (), [first, lesson]),               # both
        step(TAKE, AWAY, (), [schema]),                      # it named the need that is not met
        step(TAKE, SEEN, (), [schema]),                      # it named too few
        step(TAKE, SEEN, (), [memory("schema", TAKE, preconditions=["be there"])]),  # in words
        step(TAKE, SEEN, (), [memory("failure", TAKE, dropped="scf")]),  # nobody read it
    ) == [
        "wrong", "missing", "ignored", "ignored", "ignored", "wrong", "missing", "missing"
    ]  # fmt: skip


def test_a_rule_that_was_there_outweighs_a_memory_that_misled() -> None:
    assert kinds(step(TAKE, AWAY, RULE, [memory("success", TAKE)])) == ["ignored"]


def test_filler_has_the_length_of_memories_and_none_of_their_words() -> None:
    one = step(TAKE, SEEN, (), [memory("success", TAKE)])
    assert kinds(one, memory_control="filler") == ["missing"]
    assert in_prompt(one, {"memory_control": "filler"}) == []


def test_what_ends_an_episode_badly_was_possible_and_may_still_have_been_forbidden() -> None:
    belief = {"location": "fridge 1", "containers": {"fridge 1": "open"}, "holding": ["mug 1"]}
    put = "put mug 1 in/on fridge 1"
    told = (ACTIONS["put"], "O-COOL-001")
    for rules, kind in ((told, "ignored"), (told[:1], "missing"), ((), "missing")):
        last = step(put, belief, rules, failed=False)
        steps = [step(TAKE, SEEN, RULE), last]
        assert kinds(*steps, mode="wrong_termination") == ["wrong", kind]
        assert failure_counts(steps, "wrong_termination")["lost_by"] == kind
        assert failure_counts(steps, "wrong_termination")["refused"]["wrong"] == 1


def test_a_lost_episode_counts_under_its_commonest_kind() -> None:
    missing, wrong, ignored = (step(TAKE, SEEN), step(TAKE, SEEN, RULE), step(TAKE, AWAY, RULE))
    for steps, kind in (
        ([missing, missing, wrong], "missing"),
        ([missing, wrong, ignored], "ignored"),
        ([missing, wrong], "wrong"),
        ([], NOTHING_REFUSED),
    ):
        kinds(*steps)
        assert failure_counts(steps, "timeout")["lost_by"] == kind
        assert failure_counts(steps, None)["lost_by"] == ""


@given(st.lists(st.sampled_from([*KINDS, ""]), max_size=30), st.sampled_from(["timeout", None]))
def test_every_refused_action_has_one_kind(lacked: list[str], mode: str | None) -> None:
    steps = [{"lacked": kind, "failed": bool(kind)} for kind in lacked]
    found = failure_counts(steps, mode)
    assert sum(found["refused"].values()) == sum(map(bool, lacked))
    assert found["lost_by"] in ({*KINDS, NOTHING_REFUSED} if mode else {""})
    if mode and any(lacked):
        assert found["refused"][found["lost_by"]] == max(found["refused"].values())
