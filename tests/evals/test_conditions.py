"""Arms under labels that are true."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.analysis.report import read_report
from rpms.evals.records.conditions import ON_THE_CARD, effective, true_label
from rpms.evals.running.plan_file import condition_contexts
from rpms.vocabulary.context import CONDITIONS, RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import write_run

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
def test_two_contexts_that_behave_differently_never_share_a_label(
    context: RunContext, other: RunContext
) -> None:
    same = behaviour(context) == behaviour(other)
    assert (true_label(context) == true_label(other)) == same


@given(CONTEXTS, st.sampled_from(list(CONDITIONS)))
def test_a_bare_letter_is_said_of_nothing_else(context: RunContext, letter: str) -> None:
    under = context.under(letter)
    pure = behaviour(under) == behaviour(RunContext.for_condition(letter))
    assert (true_label(under, letter) in CONDITIONS) == pure


BASE = RunContext(max_steps=9, model="openai:x")


@pytest.mark.parametrize(("conditions", "settings", "labels"), [
    # A guard joins the letter, and a policy never comes without its control.
    ("A,D", {"guard": "policy", "temperature": 0.5},
     ["A+policy", "A+policy control (random)", "E", "E control (random)"]),
    ("E", {"guard": "verify", "model": "last"}, ["E"]),
    ("B+verify,D+verify,A+offer,D+policy,C", {},
     ["B+verify", "D+verify", "A+offer", "E", "E control (random)", "C"]),
    # Only what has an effect is told.
    ("A,B,D", {"scf": "off", "theta": 0.8, "layout": "cache_friendly"},
     ["A", "B layout=cache_friendly", "D scf=off layout=cache_friendly theta=0.8"]),
    ("A,S,S+verify", {"scf": "off", "layout": "cache_friendly"},
     ["A", "S layout=cache_friendly", "S+verify layout=cache_friendly"]),
    ("A,B,D", {"token_budget": 900, "memory_method": "reflexion"},
     ["A", "B", "D token_budget=900 memory_method=reflexion"]),
    ("B,D", {"token_budget": 900, "memory_token_budget": 800}, ["B", "D memory_token_budget=800"]),
    ("D", {"memory_method": "clin", "arbitration": "soft"},
     ["D arbitration=soft memory_method=clin"]),
    ("D,D+verify", {"max_retries": 0}, ["D", "D+verify max_retries=0"]),
    ("D+verify", {"check_answers": True}, ["D+verify check_answers=on"]),
    ("D,E,D+offer", {"check_answers": True}, ["D", "E", "E control (random)", "D+offer"]),
    ("A,D+verify", {"history": 3}, ["A", "D+verify history=3"]),
])  # fmt: skip
def test_labels_of_letters(conditions: str, settings: dict[str, Any], labels: list[str]) -> None:
    base = BASE.with_(**settings)
    contexts = condition_contexts(conditions.split(","), base)
    assert list(contexts) == labels
    for label, context in contexts.items():
        assert context.model == ("random" if "control" in label else base.model)
        assert context.max_steps == 9 and label.startswith(context.name.removesuffix("+policy"))
    with pytest.raises(RpmsError, match="guard='reask' is called 'verify' now"):
        condition_contexts(["B+reask"], BASE)


def test_rules_x_memory_is_still_made_where_all_four_depart_alike(tmp_path: Path) -> None:
    labels = [f"{letter}+verify" for letter in "ABCD"]
    wins = {label: [True, False] for label in labels}
    tables = {t.id: t for t in read_report(write_run(tmp_path / "1", wins, logs=False)).tables}
    assert any("A+verify; B+verify" in note for note in tables["square"].notes)
    wins = {label: [True, False] for label in ["A", "B", "C", "D+verify"]}
    other = read_report(write_run(tmp_path / "2", wins, logs=False))
    assert "square" not in {table.id for table in other.tables}
