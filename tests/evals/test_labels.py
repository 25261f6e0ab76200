from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.conditions import (
    ON_THE_CARD,
    effective,
    letters,
    preset_contexts,
    true_label,
)
from rpms.evals.report import read_report
from rpms.evals.report.source import names
from rpms.nodes.context import CONDITIONS, RunContext
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
    return {k: v for k, v in effective(context.plain).items() if k not in ON_THE_CARD}


@given(CONTEXTS, CONTEXTS)
def test_two_contexts_that_behave_differently_never_share_a_label(
    one: RunContext, other: RunContext
) -> None:
    same = behaviour(one) == behaviour(other)
    assert (true_label(one) == true_label(other)) == same


@given(CONTEXTS, st.sampled_from(list(CONDITIONS)))
def test_a_bare_letter_is_said_of_nothing_else(context: RunContext, letter: str) -> None:
    under = context.under(letter)
    pure = behaviour(under) == behaviour(RunContext.for_condition(letter))
    assert (true_label(under, letter) in CONDITIONS) == pure


def test_a_guard_over_the_letters_is_in_their_labels() -> None:
    found = letters(["A", "D"], RunContext(guard="policy", max_steps=9, temperature=0.5))
    assert list(found) == [
        "A+policy", "A+policy control (random)", "E", "E control (random)",
    ]  # fmt: skip
    assert found["E"] == RunContext(guard="policy", max_steps=9, temperature=0.5)
    assert list(letters(["E"], RunContext(guard="verify", model="last"))) == ["E"]


def test_only_what_has_an_effect_is_told() -> None:
    base = RunContext(scf="off", theta=0.8, layout="cache_friendly")
    assert list(letters(list("ABD"), base)) == [
        "A", "B layout=cache_friendly", "D scf=off layout=cache_friendly theta=0.8",
    ]  # fmt: skip
    base = RunContext(ceiling=900, memory_method="reflexion")
    assert list(letters(list("ABD"), base)) == ["A", "B", "D ceiling=900 memory_method=reflexion"]


def test_a_sweep_tells_what_the_whole_run_was_given_besides() -> None:
    found = preset_contexts("scf", RunContext(k=1, guard="verify"))
    assert list(found)[:2] == ["D+verify scf=off k=1", "D+verify scf=occupancy k=1"]
    assert list(preset_contexts("2x2", RunContext())) == list("ABCD")


@pytest.mark.parametrize(("label", "name"), [("A", "A baseline"), ("A+verify",) * 2])
def test_long_names_are_for_pure_letters(label: str, name: str) -> None:
    assert names(label) == name


def test_rules_x_memory_is_still_made_where_all_four_depart_alike(tmp_path: Path) -> None:
    labels = [f"{letter}+verify" for letter in "ABCD"]
    wins = {label: [True, False] for label in labels}
    found = {t.id: t for t in read_report(write_run(tmp_path / "1", wins, logs=False)).tables}
    assert any("A+verify; B+verify" in note for note in found["square"].notes)
    wins = {label: [True, False] for label in ["A", "B", "C", "D+verify"]}
    other = read_report(write_run(tmp_path / "2", wins, logs=False))
    assert "square" not in {table.id for table in other.tables}


def test_a_verifier_that_may_not_fall_back_says_so() -> None:
    strict = RunContext.for_condition("D+verify", fall_back=False)
    assert true_label(strict) == "D+verify fall_back=off"
    assert true_label(strict.with_(reasks=0)) == "D+verify reasks=0"
    assert true_label(strict.with_(guard="off")) == "D"
