"""What a prompt says of a ticket: once, true, in plain English, and only what is known of it."""

from __future__ import annotations

import importlib
import random
import re
from itertools import chain
from typing import Any

import pytest
from langchain_core.messages import convert_to_openai_messages

from rpms.envs.telecom import belief as beliefs
from rpms.graph import build_graph, run_episode
from rpms.guard.repair import find_repair
from rpms.nodes.state import EpisodeState
from rpms.rules import already_done, check_action, explain_rejection
from rpms.rules.schema import ActionRule
from rpms.rules.things import UNSHOWN
from rpms.rules.wording import statement
from rpms.vocabulary.context import RunContext
from tests.envs.telecom.conftest import (
    BILLS,
    IDENTIFY,
    LINE,
    MANUAL,
    TRAIN,
    WORLD,
    Player,
    gold,
    with_name,
)

FACTS: dict[str, str] = beliefs.read_table("facts")
FAMILIES = [frozenset(family) for family in beliefs.read_table("families")]
NEW_TASK = "A new task begins."


def spoken_facts() -> set[str]:
    """The states that preconditions and effects of Tier 3 speak of."""
    predicates = chain.from_iterable((*rule.needs, *rule.outcomes) for rule in MANUAL.actions)
    return {p.arguments[1] for p in predicates if p.name in ("state", "seen")}


def test_belief_and_manual_mean_the_same_by_a_fact_and_say_it_alike() -> None:
    world = MANUAL.facts
    assert [frozenset(family) for family in world.alternatives] == FAMILIES
    assert beliefs.read_table("words") == MANUAL.domain.categories["words"]
    assert spoken_facts() <= {*world.wording.facts}
    plain = {
        fact: text for fact, text in world.wording.facts.items() if not fact.startswith("not ")
    }
    plain["not refuelled"] = world.wording.facts["not refuelled"]
    assert plain.items() <= FACTS.items()
    whose = {"of the ticket", "of another number"}  # said by the label of the line
    assert {*chain(*FAMILIES)} - whose <= {*FACTS}
    assert {*beliefs.read_table("steps")} == {*chain(*MANUAL.domain.procedures.values())}


def test_every_need_is_a_statement_that_can_be_turned_into_a_need() -> None:
    """One verb, "is" or "are": "airplane mode is on" -> "airplane mode to be on"."""
    for rule in MANUAL.actions:
        blanks = {name: f"<{name}>" for name in rule.parameters}
        for need in rule.needs:
            words = statement(need, blanks, MANUAL.facts)
            assert len(re.findall(r"\b(?:is|are)\b", words)) == 1, words
            assert not re.search(r"\b(phone|account|ticket)\b:|counts as|not:", words), words
    assert all(re.search(r"\b(is|are)\b", text) for text in FACTS.values())


def test_whatever_is_so_instead_of_a_need_has_a_sentence() -> None:
    """No fact that excludes one of a need's is printed as "ticket is payment not allowed"."""
    needs = chain.from_iterable(rule.needs for rule in MANUAL.actions)
    spoken = {p.arguments[1] for p in needs if p.name in ("state", "seen")} | {"sim locked"}
    rivals = {fact for family in FAMILIES if family & spoken for fact in family}
    assert rivals - {*MANUAL.facts.wording.facts} == set()


def test_missing_evidence_is_said_to_be_missing_and_explains_no_error() -> None:
    player = Player(with_name("mms_issue", "airplane_mode_on"))
    [*_] = player.play(IDENTIFY, LINE)
    resume = "resume_line customer_id={} line_id=L1002"
    against = player.veto(resume.format("C1001"))
    assert against
    active, unseen = against.reason.split("; ")
    assert "L1002" in active and UNSHOWN not in active
    assert "bill" in unseen and unseen.endswith(UNSHOWN)
    assert find_repair(MANUAL, "make_payment", player.belief) is None
    said = explain_rejection(MANUAL, resume.format("L1003"), player.belief)
    account, suspended = said.split("; ")
    assert "C1001" in account and suspended == active, "the unseen bill is not told as a reason"


def true_clauses(facts: dict[str, list[str]], thing: str) -> set[str]:
    sentences = (FACTS.get(fact, fact) for fact in facts[thing])
    return {text.removeprefix("{0} is ").replace(" of {0}", "") for text in sentences}


def check_state(player: Player) -> int:
    """Every clause of the state block holds by tau2's own databases; how many there were."""
    facts, count = player.game.facts(), 0
    own = next(name for name, known in facts.items() if "of the ticket" in known)
    for line in WORLD.describe_belief(player.belief, player.goal):
        label, _, text = line.partition(": ")
        clauses = text.split("; ")
        if label == "The ticket's line":
            assert clauses.pop(0) == own
        thing = {"Phone": "phone", "Account": "account", "The ticket's line": own}.get(
            label, label.removeprefix("Bill ")
        )
        if label in ("Ticket", "Customer") or "not looked up" in label:
            continue
        assert {*clauses} <= true_clauses(facts, thing), line
        count += len(clauses)
    return count


def test_the_state_block_is_true_in_gold_and_in_random_play() -> None:
    chance, clauses = random.Random(40), 0
    rules = [rule for rule in MANUAL.actions if rule.name != "transfer_to_human_agents"]
    for task in chance.sample([*TRAIN.values()], 8):
        player = Player(task)
        for _ in player.play(*gold(task)):
            clauses += check_state(player)
        player = Player(task)
        for _ in range(40):
            rule = chance.choice(rules)
            names = {name: chance.choice(player.belief["visible"]) for name in rule.parameters}
            for _ in player.play(rule.syntax.format(**names)):
                clauses += check_state(player)
    assert clauses > 1000


def test_the_state_block_names_what_belongs_to_the_ticket_alone() -> None:
    player = Player(with_name("airplane_mode_on|overdue_bill_suspension"))
    [*_] = player.play(IDENTIFY)
    text = "\n".join(WORLD.describe_belief(player.belief, player.goal))
    assert "Lines not looked up yet: L1001, L1002, L1003" in text and "B1" not in text
    [*_] = player.play(LINE)
    text = "\n".join(WORLD.describe_belief(player.belief, player.goal))
    assert "The ticket's line: L1002; number 555-123-2002; plan P1002; suspended" in text
    assert "L1001" not in text and "Bills not looked up yet: B1001" in text
    [*_] = player.play(BILLS)
    text = "\n".join(WORLD.describe_belief(player.belief, player.goal))
    assert re.search(r"Bill B1234321: overdue; amount [\d.]+$", text)
    assert re.findall(r"B1\d+", text) == ["B1234321"] and "Account: a bill is overdue" in text


def prompts_of(task: Any, condition: str, steps: int = 8, **more: Any) -> list[str]:
    """What the model is sent at each step, after the examples."""
    sent: list[str] = []

    def llm_call(state: EpisodeState) -> EpisodeState:
        messages: Any = convert_to_openai_messages(state["prompt"])
        text = "\n".join(message["content"] for message in messages[1:])
        sent.append(text.rpartition(NEW_TASK)[2])
        action = actions[min(len(sent), len(actions)) - 1]
        return EpisodeState(reply=f"Action: {action}", action=action)

    actions = gold(task)
    context = RunContext.for_condition(condition, max_steps=steps, **more)
    graph = build_graph(nodes={"llm_call": llm_call})
    run_episode(task["id"], env="telecom", split="train", context=context, graph=graph)
    return sent


@pytest.mark.parametrize("condition", ["A", "S", "B", "C", "D"])
def test_the_ticket_is_printed_once(condition: str) -> None:
    task = with_name("mms_issue", "airplane_mode_on")
    prompts = prompts_of(task, condition)
    assert len(prompts) == 8 and {text.count(task["goal"]) for text in prompts} == {1}


TOGGLES = [
    rule
    for rule in MANUAL.actions
    if rule.name.startswith("toggle_") and rule.name != "toggle_wifi"
]


@pytest.mark.parametrize("rule", TOGGLES, ids=[rule.name for rule in TOGGLES])
def test_a_toggle_is_known_to_switch_back_what_is_right(rule: ActionRule) -> None:
    """By the manual it works from one state to the other, and so it does on the phone."""
    (need,), (outcome,) = rule.needs, rule.outcomes
    before, after = need.arguments[1], outcome.arguments[1]
    assert (need.arguments[0], outcome.arguments[0]) == ("phone", "phone")
    assert any({before, after} <= family for family in FAMILIES)
    player = Player(with_name("mms_issue", "airplane_mode_on"))
    if before not in player.game.facts()["phone"]:
        [*_] = player.play(rule.syntax)
    assert before in player.game.facts()["phone"]
    # What is not known is not held against it.
    beliefs.forget(player.belief, "phone", before)
    assert check_action(MANUAL, rule.syntax, player.belief).verdict == "open"
    [step] = player.play(rule.syntax)
    assert not WORLD.failed(step.outcome.observation) and after in player.game.facts()["phone"]
    assert check_action(MANUAL, rule.syntax, player.belief).verdict == "broken"
    assert already_done(MANUAL, rule.syntax, player.belief)


def test_without_rules_nothing_reads_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Belief, sub-goal and prompts of A, S and C are the same without Tiers 2 and 3."""
    task = with_name("service_issue", "overdue_bill_suspension", "unseat_sim")
    usual = {condition: prompts_of(task, condition) for condition in "ASC"}
    assert not any("sub-goal" in text for text in chain(*usual.values()))
    assert all("Goal: resolve the ticket" in text for text in [*usual["S"], *usual["C"]])
    assert "[Current Sub-Goal] identify_customer - look" in prompts_of(task, "D")[0]

    def read(state: EpisodeState) -> Any:
        raise AssertionError("with rules off no stage asks the manual")

    for stage in ("rule_assembly", "arbitration", "scf", "llm_call", "prompt_build"):
        module = importlib.import_module(f"rpms.nodes.{stage}")
        if hasattr(module, "manual_of"):
            monkeypatch.setattr(module, "manual_of", read)
    with pytest.raises(AssertionError, match="no stage asks"):
        prompts_of(task, "D")
    assert {condition: prompts_of(task, condition) for condition in "ASC"} == usual


def test_a_guard_without_rules_in_the_prompt_still_has_the_procedure() -> None:
    result = run_episode(
        with_name("service_issue", "airplane_mode_on|unseat_sim_card[")["id"], env="telecom",
        split="train", context=RunContext.for_condition("S", guard="procedure", model="first",
                                                        max_steps=3),
    )  # fmt: skip
    assert result["history"][0]["action"] == IDENTIFY
