"""Missing, wrong or ignored: a log made by hand in which each is known."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.evals.rule_compliance import (
    KINDS,
    NOTHING_REFUSED,
    failure_counts,
    in_prompt,
    mark_failures,
)
from rpms.nodes.manual import load_manual
from rpms.vocabulary.belief import empty_belief

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")
COOL = ENV.parse_goal("cool some mug and put it in shelf.")
ACTIONS = {rule.name: rule.id for rule in MANUAL.actions}
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
