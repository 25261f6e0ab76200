"""What the manual forbids never reaches a tool, whichever way the call takes.

The desk of ``desk/world.py`` carries out whatever it is asked to and judges by its own books.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.guard.desk.playing import IDENTIFY, WAYS, as_message, look, new_guard, refund, refused
from tests.guard.desk.world import Desk

KNOWN = [*IDENTIFY, *look("O1", "O2", "O3", "O5", "O6")]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


def play(way: Any, *replies: Any, desk: Desk | None = None) -> tuple[list[bool], Desk]:
    """Which calls were refused after the desk's books were looked up."""
    desk = desk or Desk()
    texts = way(desk, new_guard(), [*KNOWN, *replies])
    assert refused(texts[: len(KNOWN)]) == [False] * len(KNOWN)
    assert desk.forbidden == []
    return refused(texts[len(KNOWN) :]), desk


def test_what_is_right_is_carried_out(way: Any) -> None:
    verdicts, desk = play(way, [refund("O1", 50)], [refund("O2", 80.0, note="sorry")])
    assert verdicts == [False, False] and desk.refunds == [50.0, 80.0]


def test_asked_again_it_is_refused_again(way: Any) -> None:
    verdicts, desk = play(way, *[[refund("O1", 500)]] * 5)
    assert verdicts == [True] * 5 and desk.done == []


def test_with_other_arguments_it_is_refused_again(way: Any) -> None:
    replies = [[refund("O1", usd)] for usd in (51, 500, 0, -5, 50.01)]
    verdicts, desk = play(way, *replies, [refund("O6", 5)], [refund("O5", 5)], [refund("O9", 5)])
    assert verdicts == [True] * 8 and desk.done == []


def test_a_refusal_takes_nothing_from_what_is_right(way: Any) -> None:
    verdicts, desk = play(way, *[[refund("O1", 500)]] * 3, [refund("O1", 50)])
    assert verdicts == [True, True, True, False] and desk.refunds == [50.0]


def test_nothing_is_taken_for_shown_that_no_answer_has_shown(way: Any) -> None:
    desk = Desk()
    texts = way(desk, new_guard(), [[refund("O1", 50)], *IDENTIFY, [refund("O1", 50)],
                                    *look("O1"), [refund("O1", 50)]])  # fmt: skip
    assert refused(texts) == [True, False, False, True, False, False]
    assert desk.refunds == [50.0] and desk.forbidden == []


ODD_NUMBERS: list[Any] = [
    float("nan"), float("inf"), float("-inf"), 1e400, "nan", "inf", "1e3", "1_0", "0x10", " 500 ",
    "\u0665\u0660\u0660", "\u00bd", True, False, None, [], [500], {}, {"usd": 5}, "", "O1", "50\n",
    Decimal("NaN"), 10**15, -0.0, "5 usd=5", b"500",
]  # fmt: skip


def test_what_is_no_number_is_no_amount(way: Any) -> None:
    verdicts, desk = play(way, *([refund("O1", usd)] for usd in ODD_NUMBERS), [refund("O1", 5)])
    assert verdicts == [*[True] * len(ODD_NUMBERS), False] and desk.refunds == [5.0]


ODD_NAMES: list[Any] = [
    "", " ", "\n", "O1\n", "O1 usd=5", "O1' usd='5", "O1\x00", "\uff2f\uff11", "o1", " O1 ", None,
    True, 1, ["O1"], [], {"order_id": "O1"}, "O1, O2", "order", "O1.total", "count(refund)", "now",
    "{order}", "%s", "O1\u200b", "../O1", "O" * 10_000,
]  # fmt: skip


def test_no_name_of_an_order_gets_around_what_it_may_cost(way: Any) -> None:
    verdicts, desk = play(way, *([refund(order, 500)] for order in ODD_NAMES), [refund("O1", 5)])
    assert verdicts == [*[True] * len(ODD_NAMES), False] and desk.refunds == [5.0]


def test_free_text_changes_nothing(way: Any) -> None:
    notes = ["a\nb", "", "usd=5", "order_id=O1 usd=5", "\u2028", "'\"", "nan"]
    wrong = [[refund("O1", 500, note=note)] for note in notes]
    verdicts, desk = play(way, *wrong, [refund("O1", 50, note=notes[0])])
    assert verdicts == [*[True] * len(notes), False] and desk.refunds == [50.0]


def test_the_spelling_of_a_name_does_not_matter(way: Any) -> None:
    """The desk takes all of them for the same order."""
    replies = [[("get_order", {"order_id": name})] for name in ("o1", " O1", "\tO1 ")]
    spellings = ["O1", "o1", " o1", "O1 ", " O1", "\tO1 "]
    verdicts, desk = play(way, *replies, *[[refund(name, 20)] for name in spellings])
    assert verdicts == [False] * 4 + [True] * 5 and desk.refunds == [20.0]


def test_names_that_differ_by_case_share_their_counts(way: Any) -> None:
    def voucher(name: str) -> list[Any]:
        return [("send_voucher", {"customer_id": name, "usd": 5})]

    known = [[("get_customer", {"customer_id": name})] for name in ("c1", "C1 ")]
    verdicts, desk = play(way, *known, *map(voucher, ("C1", "c1", "C1 ", "C1")))
    assert verdicts == [False] * 4 + [True] * 2 and len(desk.vouchers) == 2


def test_two_equal_calls_in_one_reply(way: Any) -> None:
    verdicts, desk = play(way, [refund("O1", 20), refund("O1", 20)])
    assert verdicts == [False, True] and desk.refunds == [20.0]


@pytest.mark.parametrize(
    ("reply", "carried_out"),
    [
        ([refund("O2", 80), refund("O3", 80)], {1}),  # more than 150 together
        ([refund("O1", 5), refund("O2", 5), refund("O3", 5)], {2}),  # more than two
        ([refund("O1", 5), ("return_items", {"customer_id": "C1", "order_id": "O1",
                                             "items": ["O1-1"]})], {1}),  # one order, two states
        ([("close_account", {"customer_id": "C1"}), refund("O1", 5)], {1}),
        # Right in this order, which nobody promises but who calls one after the other.
        ([refund("O1", 5), ("close_account", {"customer_id": "C1"})], {1, 2}),
        ([("send_voucher", {"customer_id": "C1", "usd": 5})] * 4, {2}),
        ([("send_voucher", {"customer_id": name, "usd": 5}) for name in ("C1", "c1", "C1 ")], {1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("slow", [0.0, 0.005])
def test_calls_that_are_right_alone_and_wrong_together(
    way: Any, reply: Any, carried_out: set[int], slow: float
) -> None:
    verdicts, desk = play(way, reply, desk=Desk(slow=slow))
    assert verdicts.count(False) == len(desk.done) and len(desk.done) in carried_out


def test_calls_that_have_nothing_to_do_with_each_other_run_side_by_side(way: Any) -> None:
    reply = [refund("O1", 5), refund("O2", 5), ("send_voucher", {"customer_id": "C1", "usd": 5}),
             *look("O4")[0]]  # fmt: skip
    verdicts, desk = play(way, reply)
    assert verdicts == [False] * 4 and len(desk.done) == 3


@pytest.mark.parametrize("name", [name for name in WAYS if name != "plain calls"])
def test_calls_of_one_id_cannot_be_told_apart(name: str) -> None:
    same = as_message([refund("O1", 5), refund("O2", 5)], ["same", "same"])
    verdicts, desk = play(WAYS[name], same, [refund("O1", 5)])
    assert verdicts == [True, True, False] and desk.refunds == [5.0]


def test_ids_may_come_again_in_later_replies(way: Any) -> None:
    replies = [as_message([refund(order, 60)], ["call"]) for order in ("O2", "O3", "O3")]
    verdicts, desk = play(way, *replies)
    assert verdicts == [False, False, True] and desk.refunds == [60.0, 60.0]


def test_a_default_is_judged_like_an_argument(way: Any) -> None:
    voucher = ("send_voucher", {"customer_id": "C1"})
    cancel = ("cancel_order", {"customer_id": "C1", "order_id": "O4"})
    verdicts, desk = play(way, *look("O4"), [voucher], [cancel])
    assert verdicts == [False, True, True] and desk.done == []
    meant = {**cancel[1], "reason": "no longer needed"}
    verdicts, desk = play(way, *look("O4"), [("cancel_order", meant)])
    assert verdicts == [False, False]


def test_a_value_is_judged_as_the_tool_takes_it(way: Any) -> None:
    """All of these are true for the tool."""
    given = [{"customer_id": "C1", "usd": "5", "lasting": lasting}
             for lasting in (True, "true", "yes", "on", 1, 1.0, "1", "T")]  # fmt: skip
    verdicts, desk = play(way, *([("send_voucher", each)] for each in given))
    assert verdicts == [True] * 8 and desk.done == []


def test_an_argument_that_the_manual_does_not_have(way: Any) -> None:
    verdicts, desk = play(way, [refund("O1", 5, discount=500)], [("refund", {})])
    assert verdicts == [True, True] and desk.done == []


@pytest.mark.parametrize("name", ["agent", "tool node"])
def test_every_item_of_a_list_has_to_be_right(name: str) -> None:
    def back(items: Any) -> list[Any]:
        return [("return_items", {"customer_id": "C1", "order_id": "O1", "items": items})]

    wrong: list[Any] = [["O1-1", "O2-1"], ["O1-1", 5], [], ["O1"], None, [["O1-1"]]]
    verdicts, desk = play(WAYS[name], *map(back, [*wrong, ["O1-2", "O1-1"]]))
    assert verdicts == [*[True] * len(wrong), False] and len(desk.done) == 1


def test_a_refusal_says_the_rule_the_reason_and_what_helps(way: Any) -> None:
    texts = way(Desk(), new_guard(), [*IDENTIFY, [refund("O1", 60)], *look("O1"),
                                      [refund("O1", 60)]])  # fmt: skip
    assert "no answer has shown" in texts[2] and "get_order(order_id='O1')" in texts[2]
    assert (
        "refund(customer_id='C1', order_id='O1', usd=60) was not carried out [P-AMOUNT]: "
        in (texts[4])
    )
    assert "A refund is at most what the order cost" in texts[4]
    assert json.loads(texts[3])["total"] == 50.0
