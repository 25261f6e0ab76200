"""Arms in words that are true."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.records.conditions import ON_THE_CARD, described, effective
from rpms.evals.running.plan_file import condition_contexts
from rpms.vocabulary.context import CONDITIONS, RunContext

HINTS = get_type_hints(RunContext)
# Whatever a setting may be; a new setting joins in by itself.
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    float: st.floats(0, 1, allow_nan=False),
    int: st.integers(0, 2),
    str: st.text(max_size=8),
}
BEHAVIOUR = [field.name for field in fields(RunContext) if field.name not in ON_THE_CARD]


def value_of(name: str) -> st.SearchStrategy[Any]:
    hint = HINTS[name]
    return VALUES[hint] if hint in VALUES else st.sampled_from(hint.__args__)


CONTEXTS = st.fixed_dictionaries({name: value_of(name) for name in BEHAVIOUR}).map(
    lambda settings: RunContext(**settings)
)


def behaviour(context: RunContext) -> dict[str, Any]:
    played = context.with_(history=context.turns_shown).plain
    return {k: v for k, v in effective(played).items() if k not in ON_THE_CARD}


@given(CONTEXTS, CONTEXTS)
def test_two_contexts_that_behave_differently_never_share_a_description(
    context: RunContext, other: RunContext
) -> None:
    same = behaviour(context) == behaviour(other)
    assert (described(context.plain) == described(other.plain)) == same


@given(CONTEXTS, st.sampled_from(list(CONDITIONS)))
def test_a_bare_letter_is_said_of_nothing_else(context: RunContext, letter: str) -> None:
    under = context.under(letter)
    pure = behaviour(under) == behaviour(RunContext.for_condition(letter))
    assert (described(under.plain) in CONDITIONS) == pure


BASE = RunContext(max_steps=9, model="openai:x")


@pytest.mark.parametrize(("conditions", "settings", "said"), [
    # The label is as written; a policy never comes without its control.
    ("A,D", {"guard": "procedure", "temperature": 0.5},
     {"A": "A+procedure", "A control (random)": "A+procedure",
      "D": "E", "D control (random)": "E"}),
    ("E", {"guard": "verify", "model": "last"}, {"E": "E"}),
    ("b+verify,A+offer,C", {}, {"B+verify": "B+verify", "A+offer": "A+offer", "C": "C"}),
    # Only what has an effect is told.
    ("A,B,D", {"scf": "off", "theta": 0.8, "layout": "cache_friendly"},
     {"A": "A", "B": "B layout=cache_friendly", "D": "D scf=off layout=cache_friendly theta=0.8"}),
    ("B,D", {"memory_method": "reflexion", "arbitration": "soft"},
     {"B": "B", "D": "D arbitration=soft memory_method=reflexion"}),
    ("D,D+verify", {"max_retries": 0}, {"D": "D", "D+verify": "D+verify max_retries=0"}),
    ("D,D+verify", {"check_answers": True}, {"D": "D", "D+verify": "D+verify check_answers=on"}),
])  # fmt: skip
def test_arms_of_letters(conditions: str, settings: dict[str, Any], said: dict[str, str]) -> None:
    base = BASE.with_(**settings)
    contexts = condition_contexts(conditions.split(","), base)
    assert {label: described(context.plain) for label, context in contexts.items()} == said
    for label, context in contexts.items():
        assert context.model == ("random" if "control" in label else base.model)
        assert context.max_steps == 9
