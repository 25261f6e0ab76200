"""What policies say: roles, opening hours, windows, forms of texts, dates, rounded sums."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from rpms.guard import Call, RulesGuard
from rpms.rules.scalars import matches
from rpms.vocabulary.errors import RpmsError
from tests.guard.desk.playing import ASKED, answers, graph_of, refused, script
from tests.rules.test_fail_closed import after, tracker


def allowed(folder: Path, need: str, now: str = "2026-01-10T12:00", zone: str = "UTC",
            context: Any = None, **given: Any) -> bool:  # fmt: skip
    rule = {"id": "P-X", "action": "act", "needs": [need]}
    desk = tracker(folder, policy=[rule], now=now, timezone=zone)
    state: Any = {**after(desk, at="2026-01-05T23:30", total=10.005, paid=4), "context": context}
    return desk.judge(state, Call("act", {"order_id": "O1", **given})).verdict == "allow"


@pytest.mark.parametrize(
    ("need", "now", "zone", "expected"),
    [
        ("at_least(hour(now), 9)", "2026-01-10T08:59", "UTC", False),
        ("at_least(hour(now), 9)", "2026-01-10T09:00", "UTC", True),
        ("at_least(hour(now), 9)", "2026-01-10T08:00", "Europe/Berlin", True),
        ("at_most(hour(now), 16)", "2026-07-10T15:30", "Europe/Berlin", False),
        ("one_of(weekday(now), saturday, sunday)", "2026-01-10", "UTC", True),
        ("one_of(weekday(now), saturday, sunday)", "2026-01-09T23:30", "Europe/Berlin", True),
        ("not equal(weekday(now), saturday)", "2026-01-10", "UTC", False),
        ("at_most(days_between(order.at, now), 5)", "2026-01-10T00:10", "UTC", True),
        ("at_most(days_between(order.at, now), 4)", "2026-01-10T00:10", "UTC", False),
        ("at_most(days_between(order.at, now), 4)", "2026-01-01", "UTC", True),
        ("at_most(days_between(order.at, now), 3)", "2026-01-01", "UTC", False),
        ("at_most(days_between(order.unseen, now), 99)", "2026-01-01", "UTC", False),
        ("at_most(hour(order.paid), 24)", "2026-01-01", "UTC", False),
        ("equal(round(order.total, 2), 10.01)", "2026-01-01", "UTC", True),
        ("equal(round(order.total), 10)", "2026-01-01", "UTC", True),
        ("equal(round(difference(order.total, order.paid), 1), 6)", "2026-01-01", "UTC", True),
        ("equal(round(total(order.total, order.paid, 1), 0), 15)", "2026-01-01", "UTC", True),
    ],
)
def test_times_and_numbers(need: str, now: str, zone: str, expected: bool, tmp_path: Path) -> None:
    assert allowed(tmp_path, need, now, zone) is expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [({"role": "clerk"}, True), ({"role": "Clerk"}, False), ({"role": "guest"}, False),
     ({"role": ["clerk"]}, False), ({}, False), (None, False)],
)  # fmt: skip
def test_the_runtime_context_says_who_is_logged_in(
    context: Any, expected: bool, tmp_path: Path
) -> None:
    need = "equal(context.role, clerk)"
    assert allowed(tmp_path / "a", need, context=context) is expected
    # An argument of that name is no context.
    assert allowed(tmp_path / "b", need, context=context, x="clerk") is expected
    assert not allowed(tmp_path / "c", "not equal(context.role, guest)", context={})


@dataclass
class Who:
    role: str = "guest"


@pytest.mark.parametrize("kind", ["agent", "protected", "node"])
def test_the_context_comes_from_the_run_and_from_no_message(kind: str, tmp_path: Path) -> None:
    done: list[str] = []

    @tool
    def act(order_id: str, x: str = "", one: str = "") -> str:
        """Act."""
        done.append(x)
        return '{"context": {"role": "clerk"}, "order_id": "context", "role": "clerk"}'

    rule = {"id": "P-X", "action": "act", "needs": ["equal(context.role, clerk)"]}
    world = tracker(tmp_path, policy=[rule], records=["order_id"]).world
    guard = RulesGuard(world, partial=True)
    for who, ran in ((Who("guest"), False), (Who("clerk"), True), (None, False)):
        done.clear()
        replies: Any = [[("act", {"order_id": "context"})], [("act", {"order_id": "O1"})]]
        if kind == "node":
            agent = graph_of(guard.protect([act]), script(replies))
        elif kind == "protected":
            agent = create_agent(script(replies), guard.protect([act]), context_schema=Who)
        else:
            middleware: Any = [guard]
            agent = create_agent(script(replies), [act], middleware=middleware, context_schema=Who)
        ended = agent.invoke(ASKED, context=who)
        assert refused(answers(ended)) == [not ran, not ran] and bool(done) is ran


@pytest.mark.parametrize("term", ["count(act(order)", "total(act(order).x", "attempts(act(order)"])
def test_a_window_over_own_calls(term: str, tmp_path: Path) -> None:
    rule = {"id": "P-X", "action": "act", "needs": [f"at_most({term}, within_hours=24), 1)"]}
    desk = tracker(tmp_path, policy=[rule])
    call, done = Call("act", {"order_id": "O1", "x": 1}), ToolMessage("done", tool_call_id="")
    for times, verdict in (
        (["2026-01-08T12:00", "2026-01-09T11:59"], "allow"),
        (["2026-01-08T12:00", "2026-01-09T12:00", "2026-01-10T11:00"], "refuse"),
        (["", ""], "refuse"),  # nobody knows when: it may have been today
    ):
        state = desk.begin()
        for at in times:
            state = desk.take_at(state, call, done, at)
        assert desk.judge(state, call).verdict == verdict, times


def test_the_guard_keeps_the_time_of_what_ran(tmp_path: Path) -> None:
    @tool
    def act(order_id: str, x: str = "", one: str = "") -> str:
        """Act."""
        return "done"

    rule = {"id": "P-X", "action": "act",
            "needs": ["at_most(count(act, within_hours=0.0000001), 0)"]}  # fmt: skip
    world = tracker(tmp_path, policy=[rule], now="").world
    guard: Any = RulesGuard(world, partial=True)
    replies: Any = [[("act", {"order_id": str(number)})] for number in range(3)]
    agent: Any = create_agent(script(replies), [act], middleware=[guard])
    assert refused(answers(agent.invoke(ASKED))) == [False, False, False]


def test_a_misspelt_option_does_not_load(tmp_path: Path) -> None:
    rule = {"id": "P-X", "action": "act", "needs": ["at_most(count(act, within_hour=24), 1)"]}
    with pytest.raises(RpmsError, match="did you mean 'within_hours'"):
        tracker(tmp_path, policy=[rule])
    rule["needs"] = ["like(x, emial)"]
    with pytest.raises(RpmsError, match="did you mean 'email'"):
        tracker(tmp_path / "like", policy=[rule])
    with pytest.raises(RpmsError, match="no time zone"):
        tracker(tmp_path / "zone", timezone="Mars/Base")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("ada@example.com", "*@example.com", True),
        ("ada@example.com.evil.org", "*@example.com", False),
        ("ab", "a?", True), ("a", "a?", False), ("abc", "a*c", True), ("", "*", True),
        ("a.c", "a.c*", True), ("abc", "a.c*", False), ("axbxc", "a*b*c", True),
        ("ada@example.com", "email", True), ("a@b@c.de", "email", False),
        ("a b@c.de", "email", False),
        ("ada@localhost", "email", False), ("ada@.com", "email", False),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "uuid", True), ("3f2504e0", "uuid", False),
        ("2026-01-10", "date", True), ("10.1.2026", "date", False),
        ("+49 (30) 123-4567", "phone", True), ("12", "phone", False), ("call me", "phone", False),
        ("DE89 3704 0044 0532 0130 00", "iban", True), ("DE89370400440532013001", "iban", False),
    ],
)  # fmt: skip
def test_forms_of_texts(text: str, pattern: str, expected: bool) -> None:
    assert matches(text, pattern) is expected


def test_a_pattern_cannot_be_made_slow(tmp_path: Path) -> None:
    """With exponential time this would not end."""
    assert not matches("a" * 5000, "*a" * 50 + "b")
    assert allowed(tmp_path, 'like(x, "*@Example.com")', x="ada@Example.com")
    assert not allowed(tmp_path, 'like(x, "*@example.com")', x="ada@Example.com")
    assert not allowed(tmp_path, 'not like(x, "*@example.com")', x="ada@Example.com")
    assert not allowed(tmp_path, "like(x, *@example.com)", x=["a@example.com"])
