"""The company's policy as a manual: what it forbids is stopped, by the rule that says so."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from rpms import StateMemory
from rpms.envs.tau2.domain import all_tasks
from rpms.envs.telecom.adapter import TYPES
from rpms.envs.telecom.belief import read_call
from rpms.graph import build_graph, run_episode
from rpms.guard import RulesGuard
from rpms.guard.guarded_tool import messages_in
from rpms.rules.verdicts import verdicts_on
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.files import read_text
from tests.envs.telecom.conftest import (
    BILLS,
    IDENTIFY,
    LINE,
    MANUAL,
    TRAIN,
    USAGE,
    WORLD,
    Player,
    gold,
    with_name,
)
from tests.examples.release_play import Scripted

CALL_IDS = map(str, count())
REQUEST = "send_payment_request customer_id=C1001 bill_id={}"
RESUME = "resume_line customer_id=C1001 line_id=L1002"
REFUEL = "refuel_data customer_id=C1001 line_id=L1002 gb_amount={}"
HAND_OVER = "transfer_to_human_agents summary=unresolved"
SUSPENDED = ("airplane_mode_on|overdue_bill_suspension",)
ENDED = ("contract_end", "unseat")
EXCEEDED = ("mms_issue", "data_usage_exceeded")
OVERDUE = "B1234321"
# What is broken, what was done so far, what the policy does not allow then, and the rule.
VIOLATIONS = {
    "a bill that nobody has seen": (SUSPENDED, [IDENTIFY], REQUEST.format(OVERDUE), "T-REQUEST"),
    "a bill that is not overdue": (SUSPENDED, [IDENTIFY, BILLS], REQUEST.format("B1002"),
                                   "T-REQUEST"),
    "a second request": (SUSPENDED, [IDENTIFY, BILLS, REQUEST.format(OVERDUE)],
                         REQUEST.format("B1002"), "T-REQUEST"),
    "paying without permission": (EXCEEDED, [IDENTIFY], "make_payment", "T-PAY"),
    "resuming before the bills are seen": (SUSPENDED, [IDENTIFY, LINE], RESUME, "T-RESUME"),
    "resuming before all is paid": (SUSPENDED, [IDENTIFY, LINE, BILLS], RESUME, "T-RESUME"),
    "resuming before what was asked for is paid": (
        SUSPENDED, [IDENTIFY, LINE, BILLS, REQUEST.format(OVERDUE)], RESUME, "T-RESUME"),
    "resuming when only one bill was seen": (
        SUSPENDED, [LINE, "get_bills_for_customer customer_id=C1001 limit=1"], RESUME, "T-RESUME"),
    "resuming after the contract": (ENDED, [IDENTIFY, LINE, BILLS], RESUME, "T-RESUME"),
    "more than two gigabytes": (EXCEEDED, [IDENTIFY, LINE, USAGE], REFUEL.format(2.5), "T-REFUEL"),
    "refuelling within the limit": (("bad_vpn", "user_abroad_roaming_enabled_off"),
                                    [IDENTIFY, LINE], REFUEL.format(1.0), "T-REFUEL"),
    "refuelling twice": (EXCEEDED, [IDENTIFY, LINE, USAGE, REFUEL.format(0.5)], REFUEL.format(2),
                         "T-REFUEL"),
    "handing over at once": (SUSPENDED, [IDENTIFY], HAND_OVER, "T-HUMAN"),
}  # fmt: skip


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_of_the_policy_is_vetoed(name: str) -> None:
    broken, before, action, rule = VIOLATIONS[name]
    player = Player(with_name(*broken))
    assert [step.veto for step in player.play(*before)] == [None] * len(before)
    against = player.veto(action)
    assert against and against.rule == rule and against.reason.startswith("it needs ")


def test_no_rule_names_a_customer_or_a_task() -> None:
    text = "".join(map(read_text, WORLD.rules.glob("*.yaml")))
    calls = (read_call(action) for task in TRAIN.values() for action in gold(task))
    values = {value for _, arguments in calls for value in arguments.values()}
    ids = {value for value in values if value[0].isalpha() and value[1:].isdigit()}
    assert {"C1001", "L1002"} <= ids
    broken = {
        part
        for name in all_tasks("telecom")
        for part in name.split("]")[1].split("[")[0].split("|")
    }
    assert [word for word in {*ids, *broken, "John", "555"} if word in text] == []


def as_calls(actions: Any) -> list[dict[str, Any]]:
    calls = []
    for tool, texts in map(read_call, actions):
        arguments = {name: TYPES.get(name, str)(text) for name, text in texts.items()}
        calls.append({"name": tool, "args": arguments, "id": next(CALL_IDS), "type": "tool_call"})
    return calls


def agent(task: Any, *actions: str) -> tuple[list[str], Player]:
    """LangChain's agent over the real tools; which of the calls were stopped."""
    player = Player(task)
    calls = as_calls(actions)
    replies = [*(AIMessage("", tool_calls=[call]) for call in calls), AIMessage("It is over.")]
    middleware: Any = [StateMemory("telecom"), RulesGuard("telecom")]
    model = Scripted(messages=iter(replies), sent=[])
    ended = create_agent(model, player.game.tools(), middleware=middleware).invoke(
        {"messages": [("user", task["goal"])]}, {"recursion_limit": 200}
    )
    answers = [message for message in ended["messages"] if isinstance(message, ToolMessage)]
    assert len(answers) == len(actions) and "P-HUMAN" in model.sent[0][0].text
    assert WORLD.belief_errors(ended["episode"]["belief"], player.game.facts()) == []
    return [m.text for m in answers if " was not carried out [" in m.text], player


def test_a_tool_calling_agent_is_stopped_at_every_violation() -> None:
    rules = Counter[str]()
    for broken, before, action, rule in VIOLATIONS.values():
        stopped, _ = agent(with_name(*broken), *before, *[action] * 4)
        assert len(stopped) == 4
        rules[rule] += all(f"[{rule}]" in text for text in stopped)
    assert rules == Counter(rule for *_, rule in VIOLATIONS.values())


def test_and_never_in_gold_play() -> None:
    for task in [*TRAIN.values()][::9]:
        stopped, player = agent(task, *gold(task))
        assert stopped == [] and player.game.won()


def test_gold_play_of_every_ticket_passes_the_guard() -> None:
    """As an agent's tool node calls it, of both splits."""
    guard, vetoes, made = RulesGuard("telecom"), Counter[str](), 0
    tickets = [*TRAIN.values(), *WORLD.tasks("test")]
    for task in tickets:
        player = Player(task)
        tools = {tool.name: tool for tool in player.game.tools()}
        state: Any = {"messages": [HumanMessage(task["goal"], id="0")]}
        for call in as_calls(gold(task)):
            state |= guard.before_model(state, None)  # type: ignore[arg-type]
            said: Any = AIMessage("", tool_calls=[call], id=f"reply-{call['id']}")
            state["messages"] = [*state["messages"], said]
            state |= guard.after_model(state, None)  # type: ignore[arg-type]
            request: Any = ToolCallRequest(call, tools[call["name"]], state, None)  # type: ignore[arg-type]
            ran = guard.wrap_tool_call(request, lambda made: made.tool.invoke(made.tool_call))
            answer = next(messages_in(ran))
            state["guard_seen"] = getattr(ran, "update", None) and ran.update["guard_seen"]
            answer.id, made = f"answer-{call['id']}", made + 1
            state["messages"] = [*state["messages"], answer]
            vetoes[answer.text] += " was not carried out [" in answer.text
        assert player.game.won()
    assert (len(tickets), +vetoes) == (114, Counter()) and made > 1000


@pytest.mark.parametrize("condition", ["A", "S", "B", "C", "D+verify", "E"])
def test_every_condition_plays(condition: str) -> None:
    """The policy wins; the built-in planner, which is no evidence, at least imitates."""
    context = RunContext.for_condition(
        condition,
        model="first" if condition == "E" else "sim",
        max_steps=12,
        memory_tokens=400,
    )
    task = with_name("service_issue", "airplane_mode_on|unseat_sim_card[")
    result = run_episode(task["id"], env="telecom", split="train", context=context,
                         graph=build_graph())  # fmt: skip
    assert result["history"][0]["action"] == IDENTIFY
    assert result["success"] or condition != "E"


def test_what_is_done_against_the_policy_is_counted_where_the_tool_lets_it_pass() -> None:
    player = Player(with_name("service_issue", "overdue_bill"))
    [*_] = player.play(IDENTIFY, LINE)
    action = "send_payment_request customer_id=C1001 bill_id=B1001"
    judged = verdicts_on(MANUAL, action, player.belief, player.goal)
    (step,) = player.play(action)
    assert judged["T-REQUEST"] == "broken"
    assert not WORLD.failed(step.outcome.observation)
