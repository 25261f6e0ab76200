"""Of two readings of a rule the one counts that allows less: every condition, place, polarity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import ToolMessage

import rpms
from rpms.guard import Call
from rpms.guard.conversation import ConversationState, ConversationTracker
from rpms.rules.predicates import Condition, reading
from rpms.vocabulary.errors import RpmsError

VALUES = {"number": "5", "date": "2026-01-10", "value": "red", "pattern": "red*"}
CONDITIONS = [each for each in reading("values") if not each.quantifies]
LISTS: list[Any] = [[5], [], ["red", "blue"], ["2026-01-10"], [["red"]], [None]]


def tracker(folder: Path, actions: Any = (), **rules: Any) -> ConversationTracker:
    class World(rpms.ToolWorld):
        name = "shop"
        rules = folder

    folder.mkdir(exist_ok=True)
    act = {"id": "T-ACT", "name": "act", "arguments": {"order_id": "order", "x": "x", "one": "one"}}
    look = {"id": "T-LOOK", "name": "look", "arguments": {"order_id": "order"}, "shows": "order"}
    listed = {each["id"]: each for each in (act, look, *actions)}
    manual = {"tier": "environment", "now": "2026-01-10T12:00", "actions": [*listed.values()]}
    (folder / "environment.yaml").write_text(yaml.safe_dump({**manual, **rules}))
    (folder / "domain.yaml").write_text("tier: domain\nprocedures: {help: [help]}\n")
    return ConversationTracker.open(World())


def after(desk: ConversationTracker, **order: Any) -> ConversationState:
    answer = ToolMessage(json.dumps(order), tool_call_id="")
    return desk.take(desk.begin(), Call("look", {"order_id": "O1"}), answer)


def written(condition: Condition, term: str) -> str:
    more = [VALUES[kind] for kind in (condition.takes * 2)[1:2]] if condition.arity != 1 else []
    return f"{condition.name}({', '.join([term, *more])})"


NEVER = "equal(one, 2)"
PLACES: dict[str, Any] = {
    "needs": lambda text: {"policy": [{"id": "P-X", "action": "act", "needs": [text]}]},
    "when": lambda text: {
        "policy": [{"id": "P-X", "action": "act", "when": [text], "needs": [NEVER]}]
    },
    "preconditions": lambda text: {
        "actions": [{"id": "T-ACT", "name": "act", "preconditions": [text],
                     "arguments": {"order_id": "order", "x": "x", "one": "one"}}]
    },
    "named": lambda text: {
        "predicates": {"named": [[text]]},
        "policy": [{"id": "P-X", "action": "act", "needs": ["named"]}],
    },
    "forbidden": lambda text: {
        "forbidden": [{"id": "P-X", "for": ["all"], "action": "act", "where": {}, "when": [text]}],
        "rules": [{"id": "P-X", "text": "Never."}],
    },
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("no", ["", "not "])
@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda each: each.name)
def test_what_a_condition_cannot_say_never_lets_a_call_pass(
    condition: Condition, no: str, place: str, tmp_path: Path
) -> None:
    """A bare condition on a list, of an argument or a field, and one on what nobody knows."""
    for number, (term, values) in enumerate(
        [
            ("x", LISTS),
            ("order.kinds", LISTS),
            ("order.lines.kind", LISTS),
            ("order.lines.kind", []),
        ]
    ):
        rules = PLACES[place](f"{no}{written(condition, term)}")
        desk = tracker(tmp_path / f"{number}", **rules)
        desk = desk._replace(manual=desk.manual)
        for value in values or [None]:
            lines = [{"kind": each} for each in value] if isinstance(value, list) else None
            known = {"kinds": value, **({"lines": lines} if lines is not None else {})}
            state = after(desk, **known) if values else after(desk)
            state = {**state, "goal": desk.world.parse_goal("help")}
            given = {"order_id": "O1", "x": value, "one": 1}
            judgement = desk.judge(state, Call("act", given))
            if condition.whole:  # it may be about a list: then both polarities cannot hold
                continue
            assert judgement.verdict == "refuse", (term, value, judgement)
            if values and place in ("needs", "preconditions") and lines and "lines" in term:
                assert "is a list" in judgement.reason, judgement


@pytest.mark.parametrize(
    ("has", "allowed"), [(["zinc"], True), (["zinc", "nuts"], False), (["nuts"], False), ([], True)]
)
def test_none_of_a_list(has: list[str], allowed: bool, tmp_path: Path) -> None:
    rule = {"id": "P-X", "action": "act", "needs": ["none(order.has, one_of(item, nuts, milk))"]}
    desk = tracker(tmp_path, policy=[rule])
    verdict = desk.judge(after(desk, has=has), Call("act", {"order_id": "O1"})).verdict
    assert (verdict == "allow") is allowed
    assert desk.judge(desk.begin(), Call("act", {"order_id": "O1"})).verdict == "refuse"


@pytest.mark.parametrize(
    ("condition", "value", "allowed"),
    [
        ("equal(order.held_by, null)", None, True),
        ("equal(order.held_by, null)", "null", False),
        ("equal(order.held_by, null)", "", False),
        ("not equal(order.held_by, null)", "null", False),
        ("not equal(order.held_by, null)", "M1", True),
    ],
)
def test_the_text_null_is_null_only_where_that_refuses(
    condition: str, value: Any, allowed: bool, tmp_path: Path
) -> None:
    desk = tracker(tmp_path, policy=[{"id": "P-X", "action": "act", "needs": [condition]}])
    judgement = desk.judge(after(desk, held_by=value), Call("act", {"order_id": "O1"}))
    assert (judgement.verdict == "allow") is allowed, judgement


def test_a_refusal_states_each_fact_once_and_values_as_json_has_them(tmp_path: Path) -> None:
    free = [["equal(order.held_by, null)"], ["equal(order.held_by, x)"]]
    rules = [
        {"id": "P-X", "action": "act", "needs": ["free"]},
        {"id": "P-Y", "action": "act", "needs": ["equal(order.open, false)"]},
    ]
    desk = tracker(tmp_path, policy=rules, predicates={"free": free})
    call = Call("act", {"order_id": "O1", "x": "M1"})
    judgement = desk.judge(after(desk, held_by="M2", open=True), call)
    reasons = dict([(judgement.rule, judgement.reason), *judgement.also])
    assert reasons["P-X"].count("the held_by of O1 is M2") == 1
    assert reasons["P-Y"].endswith("the open of O1 is true")


def test_one_line_is_enough_to_make_a_rule_apply(tmp_path: Path) -> None:
    when = ["any(order.lines, equal(item.kind, controlled))"]
    rule = {"id": "P-X", "action": "act", "when": when, "needs": [NEVER]}
    desk = tracker(tmp_path, policy=[rule])
    call = Call("act", {"order_id": "O1", "one": 1})
    for kinds, refused in ((["plain", "controlled"], True), (["Controlled "], True),
                           (["plain"], False), ([], False)):  # fmt: skip
        state = after(desk, lines=[{"kind": kind} for kind in kinds])
        assert (desk.judge(state, call).verdict == "refuse") is refused, kinds


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("before(now, 20:00)", "at_least(hour(now), 20)"),
        ("before(order.at, 2026-1-5)", "write 2026-01-05"),
        ("before(order.at, soon)", "2026-01-10, or now"),
        ("within_hours(order.at, 30d)", "write 720, in hours"),
        ("within_hours(order.at, 2 weeks)", "write 336, in hours"),
        ("at_most(x, 1,000 USD)", "argument(s)"),
        ("at_most(x, 50 USD)", "write 50"),
        ("at_most(total(x, $5), 10)", "write 5"),
        ("at_most(x, ten)", "is no number"),
        ("equal(order.status, 'paid')", "write paid"),
        ('one_of(order.status, paid, "sent")', "write sent"),
    ],
)
def test_a_constant_that_can_never_be_right_does_not_load(
    condition: str, advice: str, tmp_path: Path
) -> None:
    for place in ("needs", "when", "named"):
        with pytest.raises(RpmsError) as error:
            tracker(tmp_path / place, **PLACES[place](condition))
        assert advice in str(error.value), error.value


def test_a_bare_condition_on_a_known_list_does_not_load(tmp_path: Path) -> None:
    bare = {"id": "P-X", "action": "act", "needs": ["equal(order.lines.kind, plain)"]}
    example = {"order_id": "O1", "after": [{"tool": "look", "order_id": "O1",
               "answer": {"lines": [{"kind": "plain"}]}}]}  # fmt: skip
    typed = {"id": "T-ACT", "name": "act", "arguments": {
        "order_id": "order", "x": {"as": "lines", "type": "list"}, "one": "one"}}  # fmt: skip
    for number, rules in enumerate([
        {"policy": [bare], "list": ["lines"]},
        {"policy": [{**bare, "allowed": [example]}]},
        {"policy": [{**bare, "needs": ["at_most(lines, 5)"]}], "actions": [typed]},
        {"policy": [{**bare, "needs": ["not fine(order.lines)"]}], "list": ["lines"],
         "predicates": {"fine": [["equal(thing.kind, plain)"]]}},
    ]):  # fmt: skip
        with pytest.raises(RpmsError, match=r"is a list: say of which items, as in (all|none)\("):
            tracker(tmp_path / f"{number}", **rules)
    right = {**bare, "needs": ["all(order.lines, equal(item.kind, plain))"], "allowed": [example]}
    tracker(tmp_path / "right", policy=[right], list=["lines"])


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("number", [5, 0.5, "7"], [[5], "five", None, True, {}, "nan"]),
        ("text", ["a", ""], [5, ["a"], None]),
        ("boolean", [True, "false"], [1, "yes", [True]]),
        ("date", ["2026-01-10"], ["today", 5, ["2026-01-10"]]),
        ("list", [[], [1]], ["a", {}, None]),
        ("object", [{}], [[], "a"]),
    ],
)
def test_a_value_of_another_type_meets_no_need(
    kind: str, right: list[Any], wrong: list[Any], tmp_path: Path
) -> None:
    act = {"id": "T-ACT", "name": "act", "arguments": {
        "order_id": "order", "x": {"type": kind}, "one": "one"}}  # fmt: skip
    rule = {"id": "P-X", "action": "act", "needs": ["not equal(count(x), 99)"]}
    desk = tracker(tmp_path, actions=[act], policy=[rule])
    for value, verdict in [*((v, "allow") for v in right), *((v, "refuse") for v in wrong)]:
        assert desk.judge(desk.begin(), Call("act", {"x": value})).verdict == verdict, value


def test_attempts_count_calls_that_failed(tmp_path: Path) -> None:
    rule = {"id": "P-TRIES", "action": "look", "needs": ["at_most(attempts(look(order)), 2)"]}
    desk = tracker(tmp_path, policy=[rule])
    state, call = desk.begin(), Call("look", {"order_id": "O1"})
    for status, text in (("success", "Error: wrong code"), ("error", "it broke"),
                         ("success", '{"error": "wrong code"}')):  # fmt: skip
        assert desk.judge(state, call).verdict == "allow"
        answer: Any = ToolMessage(text, tool_call_id="", status=status)
        state = desk.take(state, call, answer)
    assert desk.judge(state, call).verdict == "refuse"
    assert desk.judge(state, Call("look", {"order_id": "O2"})).verdict == "allow"
