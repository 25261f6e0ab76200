"""Answers as values: what effects keep of them, and the look-up that a refusal names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import rpms
from rpms.guard import Call
from rpms.guard.conversation import ConversationState, ConversationTracker

RULES = """
tier: environment
records: [booking_id, [flight, day], user_id]
things: [customer]
actions:
  - {id: T-FIND, name: find, arguments: [email], effects: ["begins(customer.id, answer)"]}
  - {id: T-LAST, name: last_found, arguments: [email], effects: ["becomes(customer.last, answer.user.id)"]}
  - {id: T-USER, name: get_user, arguments: {user_id: user}}
  - {id: T-BOOKING, name: get_booking, arguments: {booking_id: booking}, shows: booking}
  - {id: T-SEARCH, name: search, arguments: [origin, day], gives: [origin]}
  - {id: T-STATUS, name: get_status, arguments: {flight: number, day: day}, effects: ["becomes(record(number, day).status, answer)"]}
  - {id: T-CANCEL, name: cancel, arguments: {booking_id: booking}, effects: [changed(booking.price)]}
  - {id: T-GIVE, name: give, arguments: {user_id: user}}
  - {id: T-GREET, name: greet, arguments: {user_id: user}}
  - {id: T-MOVE, name: move, arguments: {booking_id: booking, flight: flight, day: day}}
predicates:
  grounded: [["one_of(record(thing.flight, thing.day).status, waiting, cancelled)"]]
  moved: [["any(thing.legs, equal(item.flight, F2))"], ["at_least(count(move(booking=thing)), 1)"]]
  free: [["any(thing.legs, equal(item.flight, F1))"], [moved(thing)]]
policy:
  - {id: P-GROUND, action: cancel, needs: ["all(booking.legs, grounded(item))"]}
  - {id: P-OWNER, action: cancel, needs: ["equal(record(booking.user_id).level, gold)"]}
  - {id: P-GIVE, action: give, needs: ["any(user.bookings, equal(item.paid, true))"]}
  - {id: P-SAID, action: give, needs: [said(user)]}
  - {id: P-MOVE, action: move, needs: ["equal(record(flight, day).origin, booking.origin)"]}
  - {id: P-FREE, action: greet, needs: ["any(user.bookings, free(item))"]}
  - {id: P-WHO, action: move, needs: ["equal(customer.id, booking.user_id)"]}
"""  # noqa: E501
After = Callable[..., ConversationState]
BOOKING = {
    "booking_id": "B1", "user_id": "U1", "price": 9, "origin": "JFK",
    "legs": [{"flight": "F1", "day": "2026-01-01"}, {"flight": "F2", "day": "2026-01-02"}],
}  # fmt: skip


@pytest.fixture
def tracker(tmp_path: Path) -> ConversationTracker:
    class World(rpms.ToolWorld):
        name = "bookings"
        rules = tmp_path

    (tmp_path / "environment.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "domain.yaml").write_text("tier: domain\nprocedures: {help: [help]}\n")
    return ConversationTracker.open(World())


@pytest.fixture
def after(tracker: ConversationTracker) -> After:
    """The state after calls with these answers, each in a reply of its own."""

    def read(*calls: tuple[str, dict[str, Any], Any], words: str = "Hello") -> ConversationState:
        state = tracker.read(tracker.begin(), [HumanMessage(words, id="0")])
        for tool, arguments, answer in calls:
            text = answer if isinstance(answer, str) else json.dumps(answer)
            state = tracker.take(state, Call(tool, arguments), ToolMessage(text, tool_call_id=""))
        return state

    return read


LOOK = ("get_booking", {"booking_id": "B1"}, BOOKING)
STATUS = [
    ("get_status", {"flight": "F1", "day": "2026-01-01"}, "waiting"),
    ("get_status", {"flight": "F2", "day": "2026-01-02"}, "cancelled"),
]
CANCEL = Call("cancel", {"booking_id": "B1"})


@pytest.mark.parametrize(
    ("call", "before", "rule", "advice"),
    [
        (CANCEL, [], "P-GROUND", ["get_booking(booking_id='B1')"]),
        (CANCEL, [LOOK], "P-GROUND",
         ["get_status(flight='F1', day='2026-01-01')", "get_status(flight='F2', day='2026-01-02')",
          "get_user(user_id='U1')"]),
        (CANCEL, [LOOK, STATUS[0]], "P-GROUND",
         ["get_status(flight='F2', day='2026-01-02')", "get_user(user_id='U1')"]),
        (CANCEL, [LOOK, *STATUS], "P-OWNER", ["get_user(user_id='U1')"]),
        (Call("give", {"user_id": "U1"}), [], "P-GIVE", ["get_user(user_id='U1')"]),
        (Call("give", {"user_id": "U1"}),
         [("get_user", {"user_id": "U1"}, {"user_id": "U1", "bookings": ["B1", "B2"]})],
         "P-GIVE", ["get_booking(booking_id='B1')", "get_booking(booking_id='B2')"]),
        (Call("move", {"booking_id": "B1", "flight": "F3", "day": "2026-01-03"}), [LOOK],
         "P-MOVE", ["search(origin=<origin>, day='2026-01-03')", "find(email=<email>)"]),
        (Call("move", {"booking_id": "B1", "flight": "F3", "day": "2026-01-03"}),
         [LOOK, ("search", {"origin": "JFK", "day": "2026-01-03"},
                 [{"flight": "F3", "origin": "JFK", "day": None}])],
         "P-WHO", ["find(email=<email>)"]),
    ],
)  # fmt: skip
def test_a_refusal_names_every_look_up_that_is_missing(
    tracker: ConversationTracker,
    after: After,
    call: Call,
    before: list[Any],
    rule: str,
    advice: list[str],
) -> None:
    judgement = tracker.judge(after(*before), call)
    assert judgement.verdict == "refuse" and rule in judgement.rules
    assert judgement.repair == f"first: {', then: '.join(advice)}"


def test_a_look_up_that_showed_nothing_is_not_asked_for_again(
    tracker: ConversationTracker, after: After
) -> None:
    for answer, words in (("a booking", "answered without it"), ({}, "answered without it"),
                          ("Error: none", "answered with an error")):  # fmt: skip
        state = after(("get_booking", {"booking_id": "B1"}, answer))
        judgement = tracker.judge(state, CANCEL)
        assert judgement.verdict == "refuse" and "first:" not in judgement.repair
        assert f"get_booking(booking_id='B1') was {words}" in judgement.repair
        assert judgement.fruitless == ("get_booking(booking_id='B1')",)
    # What has changed since has to be looked up again.
    state = after(
        ("get_booking", {"booking_id": "B1"}, "x"), ("cancel", {"booking_id": "B9"}, "ok")
    )
    assert tracker.judge(state, CANCEL).repair == "first: get_booking(booking_id='B1')"


def test_what_no_look_up_mends_comes_first(tracker: ConversationTracker, after: After) -> None:
    flown = ("get_status", {"flight": "F1", "day": "2026-01-01"}, "flown")
    judgement = tracker.judge(after(LOOK, flown, STATUS[1]), CANCEL)
    assert judgement.rules == ("P-GROUND", "P-OWNER") and not judgement.uninformed
    assert "the status of F1, 2026-01-01 is flown" in judgement.reason
    text = judgement.words(CANCEL)
    assert text.index("[P-GROUND]") < text.index("[P-OWNER]") < text.index("First: get_user")


def test_the_first_answer_stays_or_the_last_one_counts(
    after: After,
) -> None:
    found = [("find", {"email": "a"}, "U1"), ("find", {"email": "b"}, "U2")]
    last = ("last_found", {"email": "b"}, {"user": {"id": "U3"}})
    failed = ("find", {"email": "c"}, "Error: no such user")
    state = after(failed, *found, last, ("last_found", {"email": "b"}, "nobody"))
    assert state["belief"]["records"]["customer"] == {"id": "U1"}  # "nobody" has no id
    assert after(*found, last)["belief"]["records"]["customer"] == {"id": "U1", "last": "U3"}


def test_a_change_makes_one_field_unknown(after: After) -> None:
    state = after(LOOK, ("cancel", {"booking_id": "B1"}, "done"))
    assert "price" not in state["belief"]["records"]["B1"]
    assert state["belief"]["records"]["B1"]["origin"] == "JFK"


def test_look_ups_in_one_reply_are_all_read(tracker: ConversationTracker, after: After) -> None:
    """They change nothing, so their order does not matter."""
    calls = [{"name": t, "args": a, "id": str(n)} for n, (t, a, _) in enumerate(STATUS)]
    answers = [ToolMessage(text, id=f"t{n}", tool_call_id=str(n))
               for n, (_, _, text) in enumerate(STATUS)]  # fmt: skip
    state = after(LOOK, ("get_user", {"user_id": "U1"}, {"user_id": "U1", "level": "gold"}))
    said = [AIMessage("", id="r", tool_calls=calls), *answers]
    state = tracker._replace(trust=True).read(state, said)
    assert tracker.judge(state, CANCEL).verdict == "allow"
    running = [Call(tool, arguments) for tool, arguments, _ in STATUS]
    assert tracker.judge(state, CANCEL, running).verdict == "allow"
    assert not tracker.changes("get_status") and tracker.changes("cancel")


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("My id is u1.", True), ("I am (U1)", True), ("u1", True), ("", False),
        ("My id is U12", False), ("xU1", False), ("U-1", False),
    ],
)  # fmt: skip
def test_the_user_has_said_an_id_or_not(
    tracker: ConversationTracker,
    after: After,
    words: str,
    known: bool,
) -> None:
    user = ("get_user", {"user_id": "U1"}, {"user_id": "U1", "bookings": ["B1"]})
    paid = ("get_booking", {"booking_id": "B1"}, {**BOOKING, "paid": True})
    state = after(user, paid, words=words)
    # Only what the user writes counts, not an answer and not the agent.
    state = tracker.read(state, [AIMessage("You are U1.", id="x")])
    judgement = tracker.judge(state, Call("give", {"user_id": "U1"}))
    assert judgement.rule == ("" if known else "P-SAID")
    later = tracker.read(state, [HumanMessage("Sorry: U1", id="y")])
    assert tracker.judge(later, Call("give", {"user_id": "U1"})).verdict == "allow"


def test_a_refusal_names_each_missing_value_once(
    tracker: ConversationTracker, after: After
) -> None:
    """Both choices read the same list, the second in a predicate with choices of its own."""
    state = after(("get_user", {"user_id": "U1"}, {"user_id": "U1", "bookings": ["B1"]}))
    judgement = tracker.judge(state, Call("greet", {"user_id": "U1"}))
    assert judgement.rule == "P-FREE"
    assert judgement.reason.count("no answer has shown the legs of B1 yet") == 1
