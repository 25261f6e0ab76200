"""Conditions by letter and by sweep, under labels that are true."""

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
    load_presets,
    preset_contexts,
    round_file,
    true_label,
)
from rpms.evals.report import read_report
from rpms.evals.report.source import names
from rpms.memory_store.controls import CONTROLS
from rpms.nodes.memories import METHODS
from rpms.rules.manual import TIERS
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


BASE = RunContext(max_steps=9, model="openai:x")


def test_every_preset_but_rounds_opens_without_anything_else() -> None:
    names = list(load_presets())
    assert names == [
        "2x2", "arbitration", "scf", "tiers", "rounds", "memory_rounds", "memory_controls",
        "layouts", "guard", "guard_modes", "verify", "demo", "rivals",
    ]  # fmt: skip
    for name in set(names) - {"rounds", "memory_rounds", "rivals"}:
        contexts = preset_contexts(name, BASE)
        models = {label: context.model for label, context in contexts.items()}
        controls = {label: models.pop(label) for label in list(models) if "control" in label}
        assert set(controls.values()) <= {"random"}
        guarded = [label for label in models if contexts[label].guard == "policy"]
        assert len(controls) == len(guarded)
        assert set(models.values()) == {"openai:x"}
        assert all(context.max_steps == 9 for context in contexts.values())
        assert len(set(contexts.values())) == len(contexts)


def test_a_sweep_changes_what_its_labels_say() -> None:
    arbitration = preset_contexts("arbitration", BASE)
    assert {label: context.arbitration for label, context in arbitration.items()} == {
        f"D arbitration={mode}": mode for mode in ("none", "soft", "hard", "hard+soft")
    }
    scf = preset_contexts("scf", BASE)
    assert {label: (context.condition, context.scf) for label, context in scf.items()} == {
        **{f"D scf={mode}": ("D", mode) for mode in ("off", "occupancy", "preconditions")},
        **{f"C scf={mode}": ("C", mode) for mode in ("off", "occupancy")},
    }
    layouts = preset_contexts("layouts", BASE)
    assert {context.layout for context in layouts.values()} == {"paper", "cache_friendly"}
    square = preset_contexts("2x2", BASE)
    assert {label: context.condition for label, context in square.items()} == {
        letter: letter for letter in "ABCD"
    }
    assert square == letters(list("ABCD"), BASE)


def test_each_memory_control_stands_beside_the_memory_itself() -> None:
    found = preset_contexts("memory_controls", BASE)
    assert found["D"] == BASE.under("D")
    assert {label: context.memory_control for label, context in found.items()} == {
        "D": "none",
        **{f"D memory={control}": control for control in CONTROLS if control != "none"},
    }
    assert {context.with_(memory_control="none") for context in found.values()} == {found["D"]}


def test_the_guarded_condition_never_comes_without_its_control() -> None:
    found = letters(["A", "E"], BASE)
    assert list(found) == ["A", "E", "E control (random)"]
    assert found["E control (random)"] == found["E"].with_(model="random")
    assert found["E"] == preset_contexts("guard", BASE)["E"]
    assert found["E control (random)"] == preset_contexts("guard", BASE)["E control (random)"]
    assert list(letters(["E"], BASE.with_(model="last"))) == ["E"]


def test_conditions_carry_a_guard_in_their_name() -> None:
    found = letters(["B+verify", "D+verify", "A+offer", "D+policy", "C"], BASE)
    assert list(found) == ["B+verify", "D+verify", "A+offer", "E", "E control (random)", "C"]
    assert found["B+verify"] == BASE.under("B").with_(guard="verify")
    assert found["C"].guard == "off"
    with pytest.raises(RpmsError, match="guard='reask' is called 'verify' now"):
        letters(["B+reask"], BASE)


@pytest.mark.parametrize("guard", ["off", "offer"])
def test_the_preset_verify_has_each_letter_plain_and_verified(guard: str) -> None:
    found = preset_contexts("verify", BASE.with_(guard=guard, reasks=1))
    plain = ["A", "B", "C", "D"]
    labels = [name for one in plain for name in (one, f"{one}+verify reasks=1")]
    assert list(found) == labels
    for letter in plain:
        assert found[letter].guard == "off"
        assert found[f"{letter}+verify reasks=1"] == found[letter].with_(guard="verify")


@pytest.mark.parametrize("given", ["m.jsonl", "m.round{round}.jsonl"])
def test_the_learning_curve_takes_one_snapshot_per_round(tmp_path: Path, given: str) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"m.round{number}.jsonl").write_text("")
    base = BASE.with_(memory_file=str(tmp_path / given))
    curve = preset_contexts("rounds", base)
    alone = preset_contexts("memory_rounds", base)
    assert list(curve) == [f"round {number}" for number in range(4)]
    assert list(alone) == [f"C round {number}" for number in range(4)]
    assert curve["round 0"].condition == "B" and alone["C round 0"].condition == "A"
    for number in (1, 2, 3):
        file = str(tmp_path / f"m.round{number}.jsonl")
        found = curve[f"round {number}"], alone[f"C round {number}"]
        assert [one.condition for one in found] == ["D", "C"]
        assert [one.memory_file for one in found] == [file, file]


def test_a_missing_snapshot_is_named(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="give --memory"):
        preset_contexts("rounds", BASE)
    with pytest.raises(RpmsError, match=r"no memory of round 2: .*m\.round2\.jsonl"):
        round_file(str(tmp_path / "m.jsonl"), 2)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(
        RpmsError, match=r"unknown preset 'nope', and no .*; known: 2x2, arbitration"
    ):
        preset_contexts("nope", BASE)
    with pytest.raises(RpmsError, match="unknown condition 'F'; choose from A, B, C, D, E"):
        letters(["A", "F"], BASE)


def test_each_tier_is_left_out_in_turn() -> None:
    found = preset_contexts("tiers", BASE)
    for letter in "BD":
        mine = {label: one.without_rules for label, one in found.items() if one.condition == letter}
        assert mine == {
            letter: "",
            **{f"{letter} without_rules={name}": name for name in TIERS},
        }


def test_rivals_stand_beside_ours_each_with_a_memory_of_its_own(tmp_path: Path) -> None:
    base = BASE.with_(memory_file=str(tmp_path / "m.{method}.jsonl"))
    with pytest.raises(RpmsError, match=r"no memory of method 'rpms': .*m\.rpms\.jsonl is missing"):
        preset_contexts("rivals", base)
    for name in set(METHODS) - {"clin", "reflexion", "awm"}:
        (tmp_path / f"m.{name}.jsonl").touch()
    with pytest.raises(RpmsError, match="'rpms learn --method awm --out "):
        preset_contexts("rivals", base)
    (tmp_path / "m.awm.jsonl").touch()
    found = preset_contexts("rivals", base)
    files = {label: Path(context.memory_file).name for label, context in found.items()}
    others = [name for name in METHODS if name != "rpms"]
    assert list(found) == [*"ABCD", *(f"{c} memory={name}" for name in others for c in "CD")]
    assert files["A"] == files["B"] == files["D memory=reflexion"] == files["C memory=clin"] == ""
    assert files["D"] == "m.rpms.jsonl" and files["C memory=expel"] == "m.expel.jsonl"
    assert all(c.memory_method == label.partition("=")[2] for label, c in found.items() if "=" in
               label)  # fmt: skip
    assert {label[0]: c.condition for label, c in found.items()} == {c: c for c in "ABCD"}
    (tmp_path / "m.clin.jsonl").touch()
    assert preset_contexts("rivals", base)["D memory=clin"].memory_file.endswith("m.clin.jsonl")


def test_rivals_need_a_pattern() -> None:
    with pytest.raises(RpmsError, match=r"give --memory a pattern such as 'm\.\{method\}\.jsonl'"):
        preset_contexts("rivals", BASE)


OWN = """\
mine:
  about: a sweep of one's own
  conditions:
    - {label: D greedy, condition: D, set: {theta: 0.9}}
    - {label: B, condition: B}
"""


def test_a_sweep_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    for name in (f"{file}:mine", str(file)):  # the only one of a file needs no name
        found = preset_contexts(name, BASE)
        assert list(found) == ["D greedy", "B"]
        assert found["D greedy"] == BASE.with_(theta=0.9) and found["B"].condition == "B"
    file.write_text(OWN + OWN.replace("mine:", "other:"))
    with pytest.raises(RpmsError, match=r"own\.yaml has no preset ''; known: mine, other"):
        preset_contexts(str(file), BASE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN.replace("label: D greedy, ", ""), r":4: mine\.conditions\.0\.label: Field required"),
        (OWN.replace("about", "abuot"), r":2: mine: unknown key 'abuot'; did you mean 'about'\?"),
        (OWN + OWN, r":6: the key 'mine' is given a second time"),
        ("- mine", r":1: Input should be a valid dictionary"),
        ("mine: [", r":1: not valid YAML"),
        ("{}", r": no preset in it"),
        (OWN.replace("theta: 0.9", "theta: 9"), r":4: mine\.conditions\.0\.set: theta=9 is not "),
        (
            OWN.replace("theta", "thteta"),
            r":4: .*set: unknown setting 'thteta'; did you mean 'theta'",
        ),
        (OWN.replace("condition: B", "condition: X"), r":5: .*condition: unknown condition 'X'"),
    ],
)
def test_a_mistake_in_it_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(RpmsError, match=said) as caught:
        preset_contexts(f"{file}:mine", BASE)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"cannot read .*gone\.yaml: No such file"):
        preset_contexts(f"{tmp_path / 'gone.yaml'}:mine", BASE)
