"""Names for terms: a rule that uses one reads, and refuses, as if the term were written out."""

from __future__ import annotations

from pathlib import Path

import pytest

import rpms
from rpms.guard.conversation import ConversationTracker
from rpms.guard.decision import Judgement
from rpms.rules.check import check_manual
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

RULES = """
records: [order_id, user_id, id]
things: [customer]
actions:
  - {id: T-FIND, name: find_user, arguments: [email], effects: ["begins(customer.user_id, answer)"]}
  - {id: T-ORDER, name: get_order, arguments: {order_id: order}}
  - {id: T-USER, name: get_user, arguments: {user_id: user}, gives: [balance]}
  - {id: T-TYPES, name: list_types, arguments: []}
  - id: T-PAY
    name: pay
    arguments: {order_id: order, card_id: card}
    effects: ["changed(record(first_card).balance)"]
definitions:
  prices: order.items.price
  first_card: first(order.cards)
  full_price: total(prices)
policy:
  - {id: P-WHO, action: pay, needs: ["shown(customer.user_id)"]}
  - {id: P-CARD, action: pay, needs: ["not equal(card, first_card)"]}
  - {id: P-PRICE, action: pay, needs: ["at_most(full_price, card.balance)"]}
"""
PAY = Call("pay", {"order_id": "O1", "card_id": "K2"})
ORDER = {"order_id": "O1", "cards": ["K1"], "items": [{"price": 0.1}, {"price": 0.2}]}
CUSTOMER = {"customer": {"user_id": "U1"}}


def tracker(folder: Path, rules: str = RULES) -> ConversationTracker:
    class Desk(rpms.ToolWorld):
        name = "desk"

    Desk.rules = folder  # type: ignore[assignment]
    (folder / "domain.yaml").write_text("tier: domain\nprocedures: {service: [service]}\n")
    (folder / "environment.yaml").write_text(rules)
    return ConversationTracker.open(Desk())


def judged(desk: ConversationTracker, call: Call = PAY, **records: object) -> Judgement:
    belief = {**empty_belief(), "records": {**CUSTOMER, **records}}
    return desk.judge({**desk.begin(), "belief": belief}, call)  # type: ignore[typeddict-item]


def test_a_defined_term_is_evaluated_and_worded_by_its_name(tmp_path: Path) -> None:
    desk = tracker(tmp_path)
    assert judged(desk, O1=ORDER, K2={"balance": 0.3}).verdict == "allow"
    less = judged(desk, O1=ORDER, K2={"balance": 0.29})
    assert (less.verdict, less.rule) == ("refuse", "P-PRICE")
    assert "the full price to be at most the balance of K2" in less.reason
    assert "the full price is 0.3" in less.reason
    same = judged(desk, Call("pay", {"order_id": "O1", "card_id": "K1"}), O1=ORDER)
    assert same.rule == "P-CARD" and "the first card is K1" in same.reason


def test_a_refusal_names_the_look_up_behind_a_definition(tmp_path: Path) -> None:
    desk = tracker(tmp_path)
    unknown = judged(desk, K2={"balance": 1})
    assert unknown.uninformed and unknown.repair == "first: get_order(order_id='O1')"


def test_a_look_up_is_filled_in_from_a_shared_thing(tmp_path: Path) -> None:
    desk = tracker(tmp_path)
    missing = judged(desk, O1=ORDER)  # nothing in the call names the user
    assert (missing.rule, missing.repair) == ("P-PRICE", "first: get_user(user_id='U1')")
    # A tool without arguments is not the look-up of everything.
    both = "first: get_order(order_id='O1'), then: find_user(email=<email>)"
    unlocated = desk.judge(desk.begin(), PAY)
    assert unlocated.rule == "P-WHO" and unlocated.repair.startswith(both)


def test_effects_may_use_definitions(tmp_path: Path) -> None:
    desk = tracker(tmp_path)
    records = {**CUSTOMER, "O1": ORDER, "K1": {"balance": 5, "brand": "visa"}}
    assert desk.manual.by_name["pay"].effects == ["changed(record(first_card).balance)"]
    from rpms.rules.calls import assume

    later = assume(desk.manual, [PAY], {**empty_belief(), "records": records})
    assert later["records"]["K1"] == {"brand": "visa"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("full_price: total(prices", "full_price"),
        ("full_price: total(later)\n  later: order.items.price", "'full_price' uses 'later'"),
        ("full_price: total(full_price)", "'full_price' uses 'full_price'"),
        ("full_price: total(parcel.prices)", "'parcel'"),
    ],
)
def test_mistakes_in_definitions_are_errors(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(RpmsError, match=error):
        tracker(tmp_path, RULES.replace("full_price: total(prices)", text))


def test_a_definition_that_an_action_cannot_use_is_a_problem(tmp_path: Path) -> None:
    tracker(tmp_path)
    rule = '  - {id: P-OTHER, action: get_user, needs: ["at_most(full_price, 5)"]}\n'
    (tmp_path / "environment.yaml").write_text(RULES + rule)
    problems = [*check_manual(tmp_path, played=False)]
    assert [finding.rule for finding in problems] == ["P-OTHER"]
    assert "'order'" in problems[0].problem
