"""Examples of rules are run: what comes out otherwise is found, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rpms.envs import get_environment
from rpms.guard.conversation import ConversationTracker
from rpms.guard.examples import example_problems, unexercised, unsourced
from rpms.rules.loader import read_manual
from rpms.vocabulary.errors import RpmsError
from tests.guard.audited.world import WORLD
from tests.guard.desk.world import DeskWorld

SHOWN = "after: [{tool: get_order, order_id: O1, answer: {order_id: O1, total: 50}}]"


def problems(folder: Path, environment: str) -> list[tuple[str, str]]:
    """Of a manual with sections laid over the desk's own."""
    (folder / "environment.yaml").write_text(environment, encoding="utf-8")
    desk = ConversationTracker.open(WORLD, folder)
    return [(rule, text) for _, rule, text in example_problems(desk)]


def limit(examples: str, **more: str) -> str:
    """The rule about the amount, with examples."""
    others = "".join(f", {name}: {value}" for name, value in more.items())
    return f"""policy:
- {{id: P-NEW, action: refund, needs: ["at_most(usd, order.total)"]{others},
   {examples}}}
"""


def test_the_desk_s_own_examples_come_out() -> None:
    assert len(WORLD.rules.joinpath("environment.yaml").read_text().split("refused:")) > 1
    assert [*example_problems(ConversationTracker.open(WORLD))] == []


@pytest.mark.parametrize(
    "examples",
    [
        f"refused: [{{order_id: O1, usd: 51, {SHOWN}}}]",
        f"refused: [{{arguments: {{order_id: O1, usd: 51}}, {SHOWN}}}]",
        "refused: [{tool: refund, order_id: O1, usd: 1}]",
        "refused: [{order_id: O1, usd: .nan}]",
        # That nobody has seen the status is another rule's affair.
        'allowed: [{order_id: O1, usd: 5, facts: ["becomes(order.total, 50)"]}]',
        f"on_violation: warn, refused: [{{order_id: O1, usd: 51, {SHOWN}}}]",
        f"on_violation: ask, refused: [{{order_id: O1, usd: 51, {SHOWN}}}]",
    ],
)
def test_examples_that_come_out(tmp_path: Path, examples: str) -> None:
    assert problems(tmp_path, limit(examples)) == []


@pytest.mark.parametrize(
    ("examples", "problem"),
    [
        (f"refused: [{{order_id: O1, usd: 50, {SHOWN}}}]",
         "example 1 of 'refused': refund(order_id='O1', usd=50) is not against this rule"),
        (f"allowed: [{{order_id: O1, usd: 51, {SHOWN}}}]",
         "example 1 of 'allowed': refund(order_id='O1', usd=51) is against this rule: it needs"),
        ("refused: [{order_id: O1, amount: 5}]",
         "example 1 of 'refused': the rules have no argument 'amount' of 'refund'"),
        ("refused: [{order_id: O1, usd: 5, after: [{tool: get_ordr}]}]",
         "example 1 of 'refused': the rules have no tool 'get_ordr'; did you mean 'get_order'?"),
        ("refused: [{tool: verify, code: '1'}]",
         "example 1 of 'refused': 'verify' is no tool of this rule"),
        ('refused: [{order_id: O1, usd: 5, facts: ["equal(order.total, 50)"]}]',
         "example 1 of 'refused': the fact 'equal(order.total, 50)' cannot be made true; write"),
    ],
)  # fmt: skip
def test_examples_that_do_not(tmp_path: Path, examples: str, problem: str) -> None:
    ((rule, text),) = problems(tmp_path, limit(examples))
    assert rule == "P-NEW" and text.startswith(problem)


def test_a_rule_about_several_tools_needs_the_tool_named(tmp_path: Path) -> None:
    several = """policy:
- id: P-WHO
  action: [refund, get_order]
  needs: ["seen(customer, verified)"]
  refused: [{order_id: O1}, {tool: get_order, order_id: O1}]
  allowed:
  - {tool: get_order, order_id: O1, facts: ["seen(customer, verified)"]}
  - {tool: get_order, order_id: O1, after: [{tool: verify, code: "1", answer: "Error: wrong"}]}
"""
    found = problems(tmp_path, several)
    assert {rule for rule, _ in found} == {"P-WHO"} and len(found) == 2
    unverified, ambiguous = (text for _, text in found)
    assert unverified.startswith(
        "example 2 of 'allowed': get_order(order_id='O1') is against this rule: it needs"
    )
    assert ambiguous == ("example 1 of 'refused': it names no tool; choose from refund, get_order")


def test_the_time_of_an_example(tmp_path: Path) -> None:
    rule = """policy:
- id: P-TIME
  action: refund
  needs: ["within_hours(order.delivered, 48)"]
  refused: [{order_id: O1, facts: ["becomes(order.delivered, 2026-01-01)"], now: 2026-01-04},
            {order_id: O1, facts: ["becomes(order.delivered, 2026-01-01)"], now: 2026-01-02}]
"""
    ((_, text),) = problems(tmp_path, rule)
    assert text.startswith("example 2 of 'refused'")
    with pytest.raises(RpmsError, match="'soon' is no time such as"):
        problems(tmp_path, rule.replace("2026-01-04", "soon"))


def test_actions_and_forbidden_patterns_have_examples_too(tmp_path: Path) -> None:
    both = """rules: [{id: P-NEVER, text: Never.}]
actions:
- {id: E-ORDER, name: get_order, arguments: {order_id: order}, preconditions: ["given(order)"],
   refused: [{order_id: ""}, {order_id: O1}], allowed: [{order_id: O1}]}
forbidden:
- {id: P-NEVER, for: [refund], action: verify, where: {}, refused: [{customer_id: C1}]}
"""
    ((rule, text),) = problems(tmp_path, both)
    assert rule == "E-ORDER" and text.startswith("example 2 of 'refused'")


@pytest.mark.parametrize("name", ["airline", "retail", "rpms.commands.desk_template.world:WORLD"])
def test_every_rule_of_our_desks_has_examples_that_exercise_it(name: str) -> None:
    tracker = ConversationTracker.open(get_environment(name))  # type: ignore[arg-type]
    assert [*unexercised(tracker)] == [] and [*example_problems(tracker)] == []
    assert [*unsourced(tracker.manual)] == []


def test_what_no_example_shows_is_found(tmp_path: Path) -> None:
    rule = {"id": "P-LOW", "action": "refund", "needs": ["at_most(usd, 5)", "given(note)"]}
    fine, dear = {"usd": 5, "note": "a"}, {"usd": 6, "note": "a"}
    for given, problems in (
        ({}, ["no example under 'allowed'", "no example under 'refused'"]),
        ({"allowed": [fine]}, ["no example under 'refused'"]),
        ({"allowed": [fine], "refused": [dear]}, ["no example makes 'given(note)' false"]),
        ({"allowed": [fine], "refused": [dear, {"usd": 1}]}, []),
    ):
        folder = tmp_path / str(len(problems)) / str(len(given))
        folder.mkdir(parents=True)
        manual = {"tier": "environment", "policy": [{**rule, **given}]}
        (folder / "environment.yaml").write_text(yaml.safe_dump(manual))
        tracker = ConversationTracker.open(DeskWorld(), folder)
        assert [text for _, found, text in unexercised(tracker) if found == "P-LOW"] == problems


def test_a_tool_that_does_not_say_what_its_answers_show_is_found(tmp_path: Path) -> None:
    actions = [
        {"id": "E-ORDER", "name": "get_order", "arguments": {"order_id": "order"}},
        {"id": "E-OWN", "name": "own", "arguments": [], "records": ["order_id"]},
        {"id": "E-NONE", "name": "none", "arguments": [], "records": []},
        {"id": "E-ABOUT", "name": "about", "arguments": ["order"], "shows": "order"},
        {"id": "E-WEB", "name": "web", "arguments": [], "answers": "outside"},
    ]
    for records, found in ((["order_id"], ["E-ORDER"]), ([], [])):
        manual = {"tier": "environment", "records": records, "actions": actions}
        (tmp_path / "environment.yaml").write_text(yaml.safe_dump(manual))
        (tmp_path / "domain.yaml").write_text("tier: domain\nprocedures: {help: [help]}\n")
        assert [rule for _, rule, _ in unsourced(read_manual(tmp_path))] == found
