"""The retail desk behind the guard, with tau2's real tools and database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

pytest.importorskip("tau2")

from rpms.envs.tau2.retail import DESK
from rpms.guard import Call, RulesGuard
from rpms.guard.audit import audit_conversation, read_messages
from rpms.guard.conversation import ConversationTracker
from rpms.guard.decision import Judgement
from rpms.guard.sources import compare_policy
from rpms.rules.schema import ExampleCall
from tests.envs.tau2.random_retail import compare
from tests.guard.test_audit import answer, call, reply
from tools.desk_gold import DeskConversation, play

PLANTED = yaml.safe_load((Path(__file__).parent / "retail_violations.yaml").read_text("utf-8"))

# The calls of tau2's reference solutions that the policy forbids: task, call, rule and reason.
GOLD_REFUSED = {
    ("12", 4): ("P-REFUND", "PayPal is not the original payment; tau2's tool rejects it too"),
    ("13", 4): ("P-REFUND", "the same call as in task 12"),
    ("64", 6): ("P-EXCHANGE-DELIVERED", "the order is pending; tau2's tool rejects it too"),
    ("105", 0): ("P-ITEMS-GIFT", "21.10 USD more, 17.00 on the card; tau2's tool rejects it too"),
    ("18", 4): ("P-ITEMS-DIFFERENT", "an item for the same item; tau2's tool accepts it"),
    ("91", 1): ("P-ITEMS-DIFFERENT", "an item for the same item; tau2's tool accepts it"),
    ("107", 0): ("P-ITEMS-DIFFERENT", "an item for the same item; tau2's tool accepts it"),
}


class Planted(NamedTuple):
    """A call of the file, its rule, and what happens before it."""

    rule: str
    call: dict[str, Any]
    customer: str = "olivia"
    after: list[dict[str, Any]] = []  # noqa: RUF012
    without: list[str] = []  # noqa: RUF012

    def neighbour(self, changes: dict[str, Any]) -> Planted:
        """The same call with other fields or arguments."""
        fields = {name: value for name, value in changes.items() if name in Planted._fields}
        arguments = {name: value for name, value in changes.items() if name not in fields}
        return self._replace(**fields, call={**self.call, **arguments})


def violations() -> Iterator[tuple[Planted, list[Planted]]]:
    for entry in PLANTED["cases"]:
        case = Planted(**{name: value for name, value in entry.items() if name != "allowed"})
        yield case, [case.neighbour(changes) for changes in entry["allowed"]]


def as_call(written: dict[str, Any]) -> Call:
    example = ExampleCall.model_validate(written)
    return Call(example.tool, example.arguments)


def before(case: Planted) -> DeskConversation:
    """The conversation when the call is made."""
    conversation = DeskConversation(DESK, words="Hello.")
    email = PLANTED["customers"][case.customer]
    user = conversation.desk.call("find_user_id_by_email", {"email": email})
    look_ups = [Call("find_user_id_by_email", {"email": email})]
    look_ups.append(Call("get_user_details", {"user_id": user}))
    orders = {each["order_id"] for each in (case.call, *case.after) if "order_id" in each}
    for order in conversation.desk.rows(orders):
        look_ups.append(Call("get_order_details", {"order_id": order["order_id"]}))
        products = [item["product_id"] for item in order["items"]]
        look_ups += [Call("get_product_details", {"product_id": product}) for product in products]
    made = (*(c for c in look_ups if c.tool not in case.without), *map(as_call, case.after))
    for each in made:
        conversation.run(each)
    return conversation


def judged(case: Planted) -> tuple[Judgement, str]:
    """The guard's judgement of the call, and tau2's own answer to it."""
    conversation, made = before(case), as_call(case.call)
    return conversation.judge(made), conversation.run(made)


def test_every_sentence_of_the_policy_is_a_rule_or_excused() -> None:
    manual = ConversationTracker.open(DESK).manual
    found = compare_policy(manual, DESK.policy.read_text("utf-8"))
    assert (found.uncited, found.strange) == ([], [])
    assert len(found.sentences) - len(found.excused) == 31


def test_every_planted_violation_is_refused_by_its_rule() -> None:
    """The figures are those of docs/guard-your-agent.md."""
    found = [(case, *judged(case)) for case, _ in violations()]
    assert [
        (case, judgement)
        for case, judgement, _ in found
        if (judgement.verdict, case.rule in judgement.rules) != ("refuse", True)
    ] == []
    accepted = [answer for _, _, answer in found if not answer.startswith("Error")]
    uninformed = [judgement for _, judgement, _ in found if judgement.uninformed]
    assert (len(found), len(accepted), len(uninformed)) == (75, 25, 6)


def test_every_legal_neighbour_passes_and_tau2_accepts_it() -> None:
    found = [(case, *judged(case)) for _, neighbours in violations() for case in neighbours]
    assert [
        (case, judgement, answer)
        for case, judgement, answer in found
        if judgement.verdict != "allow" or answer.startswith("Error")
    ] == []
    assert len(found) == 91


def test_every_tool_that_writes_has_effects() -> None:
    tools, tracker = DESK.open().env.tools, ConversationTracker.open(DESK)
    written = {name for name in tools.get_tools() if tools.tool_type(name).value == "write"}
    assert len(written) == 7
    assert {name for name in tracker.manual.by_name if tracker.changes(name)} == written


def test_every_rule_has_planted_violations() -> None:
    manual = ConversationTracker.open(DESK).manual
    assert {rule.id for rule in manual.environment.policy} == {c.rule for c, _ in violations()}


def test_gold_play_has_no_veto_but_the_listed_ones() -> None:
    played = [each for task in DESK.task_ids() for each in play(DESK, task)]
    refused = {(each.task, each.number): each for each in played if each.refusals}
    found = {key: [refusal.rule for refusal in each.refusals] for key, each in refused.items()}
    assert found == {key: [rule] for key, (rule, _) in GOLD_REFUSED.items()}
    for key, (_, reason) in GOLD_REFUSED.items():
        rejected = refused[key].answer.startswith("Error")
        assert rejected == ("accepts" not in reason), key
    # Nothing but what the guard named was looked up: no call was refused for want of evidence.
    assert len({each.task for each in played}) == 112
    assert not any(refusal.uninformed for each in played for refusal in each.refusals)
    tracker = ConversationTracker.open(DESK)
    carried_out = [each for each in played if not each.answer.startswith("Error")]
    changed = {each.task for each in carried_out if tracker.changes(each.call.tool)}
    assert len({*DESK.task_ids()} - changed) == 11  # the right answer is no
    assert (len(played), sum(len(each.look_ups) for each in played)) == (553, 205)


def test_after_all_look_ups_the_guard_allows_what_the_tools_carry_out() -> None:
    """tau2's tools check most of the policy themselves; they accept an item for the same item."""
    compared = [*compare(250)]
    assert 80 < sum(each.judgement.verdict == "allow" for each in compared) < 170
    for each in compared:
        arguments = each.call.arguments
        pairs = zip(arguments.get("item_ids", ()), arguments.get("new_item_ids", ()), strict=False)
        if each.call.tool.startswith("exchange") and any(old == new for old, new in pairs):
            assert each.judgement.verdict == "refuse", each
        else:
            assert each.agrees, each
        assert not each.judgement.uninformed, each


def test_one_conversation_does_not_change_the_database_of_the_next() -> None:
    first, second = DESK.open(), DESK.open()
    before = second.fingerprint()
    cancelled = {"order_id": "#W5442520", "reason": "no longer needed"}
    assert '"cancelled"' in first.call("cancel_pending_order", cancelled)
    assert first.fingerprint() != before == second.fingerprint() == DESK.open().fingerprint()


NAMES = ("order_id", "user_id", "item_ids", "new_item_ids", "payment_method_id", "reason")
WRONG: list[Any] = [None, "", " ", "x", 5, 1.5, True, [], {}, [[]], [None], {"a": 1}]


def test_an_argument_of_the_wrong_type_is_refused() -> None:
    """Each argument that names something, of every kind of change: no error and no pass."""
    legal = {case.call["tool"]: case for _, cases in violations() for case in cases}
    changes = [case for tool, case in legal.items() if not tool.startswith(("get_", "list_"))]
    assert len(changes) == 7
    for case in changes:
        conversation, (tool, arguments) = before(case), as_call(case.call)
        assert conversation.judge(Call(tool, arguments)).verdict == "allow"
        for name in arguments.keys() & {*NAMES}:
            others = {key: value for key, value in arguments.items() if key != name}
            for bad in (others, *({**others, name: value} for value in WRONG)):
                assert conversation.judge(Call(tool, bad)).verdict == "refuse", (tool, bad)


def test_a_guarded_agent_changes_nothing_before_the_look_ups() -> None:
    desk = DESK.open()
    before = desk.fingerprint()
    tools = {tool.name: tool for tool in RulesGuard(DESK).protect(desk.tools())}
    cancel = {"order_id": "#W5442520", "reason": "no longer needed"}
    assert "[P-AUTHENTICATED]" in tools["cancel_pending_order"].invoke(cancel)
    tools["find_user_id_by_email"].invoke({"email": PLANTED["customers"]["olivia"]})
    refused = tools["cancel_pending_order"].invoke(cancel)
    assert "[P-CANCEL-PENDING]" in refused
    assert refused.endswith("First: get_order_details(order_id='#W5442520').")
    tools["get_order_details"].invoke({"order_id": "#W5442520"})
    assert desk.fingerprint() == before
    assert '"cancelled"' in tools["cancel_pending_order"].invoke(cancel)
    assert desk.fingerprint() != before
    assert "[P-CANCEL-PENDING]" in tools["cancel_pending_order"].invoke(cancel)


# Bad input


FOUND = [
    {"role": "user", "content": "Hello."},
    reply(call(0, "find_user_id_by_email", email="olivia.ito5204@example.com")),
]
LOOK = reply(call(1, "get_order_details", order_id="#W5442520"))
CANCEL = reply(call(2, "cancel_pending_order", order_id="#W5442520", reason="no longer needed"))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        # An error, and an answer that is not JSON, are no evidence.
        ([LOOK, answer(1, "Error: Order not found"), CANCEL], ("uninformed", "P-CANCEL-PENDING")),
        ([LOOK, answer(1, '{"order_id": "#W5442520",'), CANCEL],
         ("uninformed", "P-CANCEL-PENDING")),
        ([LOOK, answer(1, ""), CANCEL], ("uninformed", "P-CANCEL-PENDING")),
        ([LOOK, answer(1, '{"order_id": "#W5442520", "user_id": "olivia_ito_3591"}'), CANCEL],
         ("uninformed", "P-CANCEL-PENDING")),
        ([LOOK, answer(1, json.dumps({"order_id": "#W5442520", "status": ["pending"],
                                      "user_id": {}})), CANCEL], ("against", "P-CANCEL-PENDING")),
        ([CANCEL, answer(2, "Error: Order not found"), CANCEL],
         ("uninformed", "P-CANCEL-PENDING")),
        ([reply(call(3, "cancel_pending_order", order_id=None, reason="no longer needed"))],
         ("uninformed", "P-CANCEL-PENDING")),
        ([reply(call(3, "exchange_delivered_order_items", order_id="#W5442520",
                     item_ids="6242772310", new_item_ids={"a": 1}))],
         ("against", "P-PAYMENT-OWN")),
    ],
)  # fmt: skip
def test_bad_input_is_reported(messages: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    located = [*FOUND, answer(0, "olivia_ito_3591")]
    read = read_messages({"messages": [*located, *messages]}, "log:1")
    *_, last = audit_conversation(ConversationTracker.open(DESK), read)
    assert (last.verdict, last.rule) == expected


def test_a_user_who_was_not_found_is_not_authenticated() -> None:
    for text in ("Error: User not found", "", " \n", "null", '{"error": "no such user"}'):
        read = read_messages({"messages": [*FOUND, answer(0, text), LOOK]}, "log:1")
        *_, last = audit_conversation(ConversationTracker.open(DESK), read)
        assert (last.verdict, last.rule) == ("against", "P-AUTHENTICATED"), text
