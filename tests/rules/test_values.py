"""Comparisons over arguments, answers and earlier calls: true, false, unknown, or of no use."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from rpms.rules.predicates import StaticFacts, evaluate, may_hold, parse_predicate
from rpms.rules.scalars import ABSENT
from rpms.rules.values import Tools
from rpms.rules.wording import contrary, need
from rpms.vocabulary.belief import Belief, empty_belief

TOOLS = Tools({"refund": {"order": "order_id", "usd": "usd"}}, time="2026-01-10T12:00:00")
WORLD = StaticFacts({}, {}, tools=TOOLS)
ORDER = {
    "total": 50.0, "status": "delivered", "paid": True, "at": "2026-01-09T13:00:00",
    "items": [{"id": "i1", "price": 0.1}, {"id": "i2", "price": 0.2}], "tags": [],
}  # fmt: skip


def believed() -> Belief:
    calls: Any = [
        {"tool": "refund", "arguments": {"order_id": "O1", "usd": 5}},
        {"tool": "refund", "arguments": {"order_id": "O2", "usd": 2.5}},
    ]
    return {**empty_belief(), "records": {"O1": ORDER, "17": {"total": 1}}, "calls": calls}


def truth(text: str, **given: Any) -> bool | None:
    names = {"order": "O1", "usd": 5, **given}
    return evaluate(parse_predicate(text), believed(), WORLD, names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at_most(usd, 5)", True),
        ("at_most(usd, 4.99)", False),
        ("not at_most(usd, 4.99)", True),
        ("at_least(usd, 5)", True),
        ("at_most(usd, order.total)", True),
        ("at_most(order.total, 49)", False),
        ("at_most(usd, order.weight)", None),
        ("not at_most(usd, order.weight)", None),
        ("equal(order.status, delivered)", True),
        ("equal(order.paid, true)", True),
        ("not equal(order.status, lost)", True),
        ("one_of(order.status, lost, delivered)", True),
        ("one_of(order.status, lost)", False),
        ("all(order.items, one_of(item.id, i1, i2, i3))", True),
        ("all(order.items, one_of(item.id, i1))", False),
        ("none(order.items, one_of(item.id, i3))", True),
        ("before(order.at, now)", True),
        ("before(now, order.at)", False),
        ("within_hours(order.at, 24)", True),
        ("within_hours(order.at, 22)", False),
        ("given(usd)", True),
        ("given(order.tags)", False),
        ("at_most(count(order.items), 2)", True),
        ("at_most(count(order.items), 1)", False),
        # Decimal numbers as they are written: in binary 0.1 and 0.2 are more than 0.3.
        ("at_most(total(order.items.price), 0.3)", True),
        ("at_most(count(refund), 2)", True),
        ("at_most(count(refund(order)), 1)", True),
        ("at_most(count(refund(order)), 0)", False),
        ("equal(total(usd, refund.usd), 12.5)", True),
        ("equal(total(refund(order).usd), 5)", True),
    ],
)
def test_a_comparison(text: str, expected: bool | None) -> None:
    assert truth(text) is expected


NO_NUMBERS = [math.nan, math.inf, -math.inf, True, None, "", " 5", "1e3", "0x5", "5,0", "\u0665",
              "five", [], {}, ABSENT, Decimal("NaN"), b"5"]  # fmt: skip


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_meets_no_limit_not_even_a_negated_one(value: Any) -> None:
    for text in ("at_most(usd, 1000)", "not at_most(usd, 1)"):
        assert truth(text, usd=value) is False, text
    assert truth("at_most(total(usd), 1000)", usd=value) is (value == [])  # the sum of nothing
    condition = parse_predicate("at_least(usd, 1000)")  # a rule under this condition may apply
    assert may_hold(condition, believed(), WORLD, {"usd": value})


LISTED = ["at_most(usd, 5)", "at_least(usd, 0)", "equal(usd, 1)", "one_of(usd, 1, 2)",
          "before(usd, now)", "within_hours(usd, 1)", "said(usd)", "at_most(5, usd)",
          "equal(status, usd)"]  # fmt: skip


@pytest.mark.parametrize("text", LISTED)
@pytest.mark.parametrize("value", [[1], [1, 1], [], ["2026-01-10"], (1,)])
def test_a_bare_condition_on_a_list_meets_no_need_and_may_hold(text: str, value: Any) -> None:
    """Of two readings of a rule the one counts that allows less."""
    for positive in (text, f"not {text}"):
        assert truth(positive, usd=value, status="x") is False
        predicate, given = parse_predicate(positive), {"usd": value, "order": "O1", "status": "x"}
        assert may_hold(predicate, believed(), WORLD, given)
    instead = contrary(parse_predicate(text), believed(), WORLD, {"usd": value, "order": "O1"})
    assert "usd is a list" in instead and "all(usd, " in instead


@pytest.mark.parametrize(("word", "loosely"), [("cash", True), ("Cash", True), (" CASH\n", True),
                                               ("card", False)])  # fmt: skip
@pytest.mark.parametrize("text", ["equal(to, cash)", "one_of(to, cash, coin)", "paid_in(to)",
                                  "any(all_of_it, equal(item, cash))"])  # fmt: skip
def test_text_is_exact_where_equality_lifts_a_rule_and_loose_where_it_binds(
    text: str, word: str, loosely: bool
) -> None:
    world = WORLD._replace(predicates={"paid_in": [["equal(thing, cash)"]]})
    given = {"to": word, "all_of_it": [word], "order": "O1"}
    needed, denied = parse_predicate(text), parse_predicate(f"not {text}")
    assert evaluate(needed, believed(), world, given) is (word == "cash")
    assert evaluate(denied, believed(), world, given) is not loosely
    assert may_hold(needed, believed(), world, given) is loosely
    assert may_hold(denied, believed(), world, given) is (word != "cash")


@pytest.mark.parametrize("moment", ["yesterday", 5, None, "2026-13-01", ""])
def test_what_is_no_date_is_neither_before_nor_after(moment: Any) -> None:
    for text in ("before(day, now)", "not before(day, now)", "within_hours(day, 99999999)"):
        assert truth(text, day=moment) is False


def test_an_id_may_be_a_number() -> None:
    assert truth("at_most(order.total, 1)", order=17) is True


@pytest.mark.parametrize(
    ("text", "needed", "instead"),
    [
        ("at_most(usd, order.total)", "usd to be at most the total of O1",
         "usd is 5 and the total of O1 is 50.0"),
        ("at_most(usd, order.weight)", "usd to be at most the weight of O1",
         "usd is 5 and no answer has shown the weight of O1 yet"),
        ("one_of(order.status, a, b)", "the status of O1 to be one of a, b",
         "the status of O1 is delivered"),
        ("at_most(count(refund(order)), 0)",
         "the number of earlier refund calls with this order to be at most 0",
         "the number of earlier refund calls with this order is 1"),
        ("given(note)", "note to be given", "note was not given"),
    ],
)  # fmt: skip
def test_in_words(text: str, needed: str, instead: str) -> None:
    predicate, names = parse_predicate(text), {"order": "O1", "usd": 5, "note": ABSENT}
    assert need(predicate, names, WORLD) == needed
    assert contrary(predicate, believed(), WORLD, names) == instead


@pytest.mark.parametrize("text", ["at_most(usd, (5))", "at_most(usd, f(5)", "at_most(usd)5)"])
def test_parentheses_have_to_match(text: str) -> None:
    with pytest.raises(ValueError, match="is not a predicate"):
        parse_predicate(text)


def test_exact_sums_are_compared_with_the_numbers_of_an_answer() -> None:
    assert truth("at_most(total(order.items.price), usd)", usd=0.3) is True
    assert truth("equal(total(order.items.price), usd)", usd=0.3) is True
    assert truth("at_least(usd, total(order.items.price))", usd=0.29) is False
