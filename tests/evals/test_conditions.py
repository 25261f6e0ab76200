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
from rpms.memory_store.controls import CONTROLS
from rpms.memory_store.methods import METHODS
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
    ("C,D", {"note_conflicts": "drop", "memory_method": "clin"},
     ["C memory_method=clin", "D note_conflicts=drop memory_method=clin"]),
    ("D", {"note_conflicts": "drop", "writer": "openai:y"}, ["D"]),
    ("D", {"writer": "openai:y", "memory_method": "clin"},
     ["D memory_method=clin writer=openai:y"]),
    ("D", {"note_conflicts": "drop", "memory_method": "clin", "arbitration": "soft"},
     ["D arbitration=soft memory_method=clin"]),
    ("D+verify", {"fallback": False}, ["D+verify fallback=off"]),
    ("D+verify", {"fallback": False, "max_retries": 0}, ["D+verify max_retries=0"]),
    ("D", {"fallback": False}, ["D"]),
    ("D+verify", {"check_answers": True}, ["D+verify check_answers=on"]),
    ("D,E,D+offer", {"check_answers": True}, ["D", "E", "E control (random)", "D+offer"]),
    ("A,D+verify", {"history": 3}, ["A", "D+verify history=3"]),
])  # fmt: skip
def test_labels_of_letters(conditions: str, settings: dict[str, Any], labels: list[str]) -> None:
    base = BASE.with_(**settings)
    contexts = letters(conditions.split(","), base)
    assert list(contexts) == labels
    for label, context in contexts.items():
        assert context.model == ("random" if "control" in label else base.model)
        assert context.max_steps == 9 and label.startswith(context.name.removesuffix("+policy"))
    with pytest.raises(RpmsError, match="guard='reask' is called 'verify' now"):
        letters(["B+reask"], BASE)


def test_a_sweep_tells_what_the_whole_run_was_given_besides() -> None:
    contexts = preset_contexts("scf", RunContext(k=1, guard="verify"))
    assert list(contexts)[:2] == ["D+verify scf=off k=1", "D+verify scf=occupancy k=1"]
    assert list(preset_contexts("2x2", RunContext())) == list("ASBCD")


def test_rules_x_memory_is_still_made_where_all_four_depart_alike(tmp_path: Path) -> None:
    labels = [f"{letter}+verify" for letter in "ABCD"]
    wins = {label: [True, False] for label in labels}
    tables = {t.id: t for t in read_report(write_run(tmp_path / "1", wins, logs=False)).tables}
    assert any("A+verify; B+verify" in note for note in tables["square"].notes)
    wins = {label: [True, False] for label in ["A", "B", "C", "D+verify"]}
    other = read_report(write_run(tmp_path / "2", wins, logs=False))
    assert "square" not in {table.id for table in other.tables}


def test_every_preset_but_rounds_opens_without_anything_else() -> None:
    names = list(load_presets())
    assert names == [
        "2x2", "arbitration", "scf", "filter_arbiter", "memory_forms", "tiers", "rounds",
        "memory_rounds", "memory_controls", "conflict", "layouts", "history", "guard",
        "guard_modes", "verify", "demo", "rivals", "rivals_unfiltered",
    ]  # fmt: skip
    for name in set(names) - {"rounds", "memory_rounds", "rivals", "rivals_unfiltered"}:
        contexts = preset_contexts(name, BASE)
        models = {label: context.model for label, context in contexts.items()}
        controls = {label: models.pop(label) for label in list(models) if "control" in label}
        assert set(controls.values()) <= {"random"}
        guarded = [label for label in models if contexts[label].guard == "policy"]
        assert len(controls) == len(guarded)
        assert set(models.values()) == {"openai:x"}
        assert all(context.max_steps == 9 for context in contexts.values())
        assert len(set(contexts.values())) == len(contexts)


@pytest.mark.parametrize(("preset", "setting", "values"), [
    ("arbitration", "arbitration",
     {f"D arbitration={mode}": mode for mode in ("none", "soft", "hard", "hard+soft")}),
    ("scf", "scf", {**{f"D scf={mode}": mode for mode in ("off", "occupancy", "preconditions")},
                    **{f"C scf={mode}": mode for mode in ("off", "occupancy")}}),
    ("2x2", "condition", {letter: letter for letter in "ASBCD"}),
    ("history", "history", {"D": -1, **{f"D history={turns}": turns for turns in (10, 3, 0)}}),
    ("memory_controls", "memory_control",
     {f"{letter} memory={name}".removesuffix(" memory=none"): name
      for letter in "CD" for name in CONTROLS if name != "conflict"}),
    ("conflict", "memory_control",
     {"B": "none", "D": "none", **{f"D conflict arbitration={mode}": "conflict"
                                   for mode in ("none", "soft", "hard", "hard+soft")}}),
    ("tiers", "without_rules",
     {**{"B": "", "D": ""}, **{f"{letter} without_rules={name}": name
                               for letter in "BD" for name in TIERS}}),
    ("verify", "guard", {label: guard for letter in "ASBCD"
                         for label, guard in ((letter, "off"), (f"{letter}+verify", "verify"))}),
])  # fmt: skip
def test_a_sweep_changes_what_its_labels_say(
    preset: str, setting: str, values: dict[str, str]
) -> None:
    contexts = preset_contexts(preset, BASE)
    assert {label: getattr(context, setting) for label, context in contexts.items()} == values
    assert all(context.condition == label[0] for label, context in contexts.items())


def test_the_learning_curve_takes_one_snapshot_per_round(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"m.round{number}.jsonl").write_text("")
    base = BASE.with_(memory_file=str(tmp_path / "m.jsonl"))
    curve = preset_contexts("rounds", base)
    alone = preset_contexts("memory_rounds", base)
    assert list(curve) == [f"round {number}" for number in range(4)]
    assert list(alone) == [f"C round {number}" for number in range(4)]
    assert curve["round 0"].condition == "B" and alone["C round 0"].condition == "S"
    for number in (1, 2, 3):
        file = str(tmp_path / f"m.round{number}.jsonl")
        contexts = curve[f"round {number}"], alone[f"C round {number}"]
        assert [(c.condition, c.memory_file) for c in contexts] == [("D", file), ("C", file)]


@pytest.mark.parametrize(("preset", "message"), [
    ("nope", r"unknown preset 'nope', and no .*; known: 2x2, arbitration"),
    ("rounds", "give --memory"),
    ("rivals", r"give --memory a pattern such as 'm\.\{method\}\.jsonl'"),
    ("gone.yaml:mine", r"cannot read .*gone\.yaml: No such file"),
])  # fmt: skip
def test_what_a_sweep_lacks_is_named(preset: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=message):
        preset_contexts(preset, BASE)
    with pytest.raises(RpmsError, match=r"no memory of round 2: .*m\.round2\.jsonl"):
        round_file(str(tmp_path / "m.jsonl"), 2)
    with pytest.raises(RpmsError, match="unknown condition 'F'; choose from A, S, B, C, D, E"):
        letters(["A", "F"], BASE)


def test_rivals_stand_beside_ours_each_with_a_memory_of_its_own(tmp_path: Path) -> None:
    base = BASE.with_(memory_file=str(tmp_path / "m.{method}.jsonl"))
    with pytest.raises(RpmsError, match=r"no memory of method 'rpms': .*m\.rpms\.jsonl is missing"):
        preset_contexts("rivals", base)
    for name in set(METHODS) - {"clin", "reflexion", "awm"}:
        (tmp_path / f"m.{name}.jsonl").touch()
    with pytest.raises(RpmsError, match="'rpms learn --method awm --out "):
        preset_contexts("rivals", base)
    (tmp_path / "m.awm.jsonl").touch()
    contexts = preset_contexts("rivals", base)
    files = {label: Path(context.memory_file).name for label, context in contexts.items()}
    others = [name for name in METHODS if name != "rpms"]
    assert list(contexts) == [*"ASBCD", *(f"{c} memory={name}" for name in others for c in "CD")]
    assert files["A"] == files["B"] == files["D memory=reflexion"] == files["C memory=clin"] == ""
    assert files["D"] == "m.rpms.jsonl" and files["C memory=expel"] == "m.expel.jsonl"
    for label, context in contexts.items():
        assert context.memory_method == (label.partition("=")[2] or "rpms")
        assert context.condition == label[0]
    # All of them once more, the baselines as they are and under the same labels.
    bare = preset_contexts("rivals_unfiltered", base)
    names = {"C": " scf=off", "D": " scf=off arbitration=none"}
    assert list(bare) == [f"{label}{names.get(label[0], '')}" for label in contexts]
    changes = {"C": {"scf": "off"}, "D": {"scf": "off", "arbitration": "none"}}
    for context, filtered in zip(bare.values(), contexts.values(), strict=True):
        assert context == filtered.with_(**changes.get(context.condition, {}))
    (tmp_path / "m.clin.jsonl").touch()
    assert preset_contexts("rivals", base)["D memory=clin"].memory_file.endswith("m.clin.jsonl")


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
        contexts = preset_contexts(name, BASE)
        assert list(contexts) == ["D greedy", "B"]
        assert contexts["D greedy"] == BASE.with_(theta=0.9) and contexts["B"].condition == "B"
    file.write_text(OWN + OWN.replace("mine:", "other:"))
    with pytest.raises(RpmsError, match=r"own\.yaml has no preset ''; known: mine, other"):
        preset_contexts(str(file), BASE)


@pytest.mark.parametrize(
    ("text", "message"),
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
        (f"{OWN}  set: {{kk: 1}}\n", r":6: mine\.set: unknown setting 'kk'"),
    ],
)
def test_a_mistake_in_it_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(RpmsError, match=message) as caught:
        preset_contexts(f"{file}:mine", BASE)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)
