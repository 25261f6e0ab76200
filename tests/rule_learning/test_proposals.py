"""What a model proposes is held against what was seen."""

from __future__ import annotations

import pytest

from rpms.rule_learning.hypotheses import Hypotheses
from rpms.rule_learning.induction import induce
from rpms.rule_learning.proposals import question, take_proposals
from rpms.rule_learning.templates import Literal
from rpms.rule_learning.transitions import Experience, Use

SYNTAX = "read {thing}"


@pytest.fixture
def rules() -> Hypotheses:
    """It works at the thing or with it in hand; too few uses to see either by itself."""
    experience = Experience([SYNTAX])
    evidence = experience.evidence[SYNTAX]
    numbers = {atom.name: at for at, atom in enumerate(evidence.template.atoms)}
    at, holding = 1 << numbers["at"], 1 << numbers["holding"]
    evidence.uses[Use(at, holding, ("book",), True)] += 1
    evidence.uses[Use(holding, at, ("book",), True)] += 1
    evidence.uses[Use(0, at | holding, ("book",), False)] += 1
    return Hypotheses(experience)


def test_the_prompt_has_the_statements_and_what_is_known(rules: Hypotheses) -> None:
    text = question(rules.rules[SYNTAX])
    assert SYNTAX in text and "- holding(thing)" in text
    assert "worked 2 times and was refused 1 times; 1 refusals" in text


def test_only_what_rejects_nothing_and_explains_something_is_kept(rules: Hypotheses) -> None:
    reply = "1. at(thing)\n- at(thing) or holding(thing)\nplace(thing)\nbook is heavy\nat(lamp)"
    (found,) = take_proposals(rules, lambda prompt: reply).values()
    assert found.kept == ["at(thing) or holding(thing)"]
    assert found.dropped == {
        "at(thing)": "it rejects a use that was accepted",
        "place(thing)": "it explains no refusal",
        "book is heavy": "it is no statement of the list",
        "at(lamp)": "it is no statement of the list",
    }
    rule = rules.rules[SYNTAX]
    assert rule.about == "thing" and len(rule.ways) == 2 and rule.unexplained == 0


def test_a_single_statement_becomes_a_condition() -> None:
    experience = Experience([SYNTAX])
    evidence = experience.evidence[SYNTAX]
    numbers = {atom.name: at for at, atom in enumerate(evidence.template.atoms)}
    at, holding = 1 << numbers["at"], 1 << numbers["holding"]
    evidence.uses[Use(at | holding, 0, ("book",), True)] += 1
    evidence.uses[Use(holding, at, ("book",), False)] += 1
    rules = Hypotheses(experience)
    rule = induce(evidence)
    assert rule is not None
    rule.kept, rule.unexplained = [], 1
    rules.rules[SYNTAX] = rule
    (found,) = take_proposals(rules, lambda prompt: "at(thing)").values()
    assert found.kept == ["at(thing)"] and rule.kept == [Literal(numbers["at"], True)]
    assert rule.unexplained == 0
