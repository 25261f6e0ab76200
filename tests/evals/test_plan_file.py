"""Plans: shipped ones by name, files of one's own, and arms that are typed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.evals.running.plan_file import (
    TaskSelection,
    choose_arms,
    condition_contexts,
    plan_arms,
    read_plan,
    round_file,
    shipped_plans,
)
from rpms.memory_store.controls import CONTROLS
from rpms.memory_store.methods import METHODS
from rpms.prompts.examples import check_prompts
from rpms.rules.manual import TIERS
from rpms.vocabulary.context import RunContext, declarations
from rpms.vocabulary.errors import RpmsError
from tests.command_line import in_process

DOCS = Path(__file__).resolve().parents[2] / "docs" / "evaluation.md"
BASE = RunContext(max_steps=9, model="openai:x")
PUBLISHED = [
    name for name in shipped_plans() if (plan := read_plan(name)).source and not plan.extends
]
NEED_MEMORY = {"rounds", "memory_rounds", "rivals", "rivals_unfiltered"}


def contexts(plan: str, base: RunContext = BASE) -> dict[str, RunContext]:
    return {label: arm.settings() for label, arm in plan_arms(read_plan(plan), base, plan).items()}


def test_the_ablation_is_the_default() -> None:
    _, arms = choose_arms(TaskSelection(), RunContext(k=1))
    assert list(arms) == ["A", "S", "B", "C k=1", "D k=1"]
    assert [arm.settings().name for arm in arms.values()] == ["A", "S", "B", "C", "D"]
    assert list(contexts("ablation", RunContext())) == list("ASBCD")


@pytest.mark.parametrize("name", [*shipped_plans()])
def test_every_shipped_plan_says_what_it_is_for_and_can_be_opened(name: str) -> None:
    assert read_plan(name).about and f"`{name}`" in DOCS.read_text()
    if name in NEED_MEMORY or name in PUBLISHED or name == "paper_arbitration":
        return
    arms = contexts(name)
    models = {label: context.model for label, context in arms.items()}
    controls = {label: models.pop(label) for label in list(models) if "control" in label}
    assert set(controls.values()) <= {"random"}
    assert len(controls) == sum(arms[label].guard == "policy" for label in models)
    assert set(models.values()) == {"openai:x"}
    assert all(context.max_steps == 9 for context in arms.values())
    assert len(set(arms.values())) == len(arms)


@pytest.mark.parametrize(("plan", "setting", "values"), [
    ("arbitration", "arbitration",
     {f"D arbitration={mode}": mode for mode in ("none", "soft", "hard", "hard+soft")}),
    ("scf", "scf", {**{f"D scf={mode}": mode for mode in ("off", "occupancy", "preconditions")},
                    **{f"C scf={mode}": mode for mode in ("off", "occupancy")}}),
    ("ablation", "condition", {letter: letter for letter in "ASBCD"}),
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
def test_an_arm_is_what_its_label_says(plan: str, setting: str, values: dict[str, str]) -> None:
    arms = contexts(plan)
    assert {label: getattr(context, setting) for label, context in arms.items()} == values
    assert all(context.condition == label[0] for label, context in arms.items())


def test_a_label_names_what_the_command_line_adds() -> None:
    arms = contexts("scf", RunContext(k=1, guard="verify"))
    assert list(arms)[:2] == ["D+verify scf=off k=1", "D+verify scf=occupancy k=1"]
    _, typed = choose_arms(TaskSelection(), RunContext(k=1), arms=["mine:scf=off", "D x:scf=off"])
    assert list(typed) == ["mine", "D x k=1"], "a name of one's own stays"


def test_the_learning_curve_takes_one_snapshot_per_round(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"m.round{number}.jsonl").write_text("")
    base = BASE.with_(memory_file=str(tmp_path / "m.jsonl"))
    curve, alone = contexts("rounds", base), contexts("memory_rounds", base)
    assert list(curve) == [f"round {number}" for number in range(4)]
    assert list(alone) == [f"C round {number}" for number in range(4)]
    assert curve["round 0"].condition == "B" and alone["C round 0"].condition == "S"
    for number in (1, 2, 3):
        file = str(tmp_path / f"m.round{number}.jsonl")
        both = curve[f"round {number}"], alone[f"C round {number}"]
        assert [(c.condition, c.memory_file) for c in both] == [("D", file), ("C", file)]
    with pytest.raises(RpmsError, match=r"no memory of round 4: .*m\.round4\.jsonl"):
        round_file(base.memory_file, 4)


@pytest.mark.parametrize(("plan", "message"), [
    ("nope", r"'nope' is neither a plan nor a YAML file; known: ablation, "),
    ("rounds", "give --memory"),
    ("rivals", r"give --memory a pattern such as 'm\.\{method\}\.jsonl'"),
    ("gone.yaml", r"cannot read .*gone\.yaml: No such file"),
])  # fmt: skip
def test_what_a_plan_lacks_is_named(plan: str, message: str) -> None:
    with pytest.raises(RpmsError, match=message):
        contexts(plan)
    with pytest.raises(RpmsError, match="unknown condition 'F'; choose from A, S, B, C, D, E"):
        condition_contexts(["A", "F"], BASE)


def test_rivals_stand_beside_ours_each_with_a_memory_of_its_own(tmp_path: Path) -> None:
    base = BASE.with_(memory_file=str(tmp_path / "m.{method}.jsonl"))
    with pytest.raises(RpmsError, match=r"no memory of method 'rpms': .*m\.rpms\.jsonl is missing"):
        contexts("rivals", base)
    for name in set(METHODS) - {"clin", "reflexion", "awm"}:
        (tmp_path / f"m.{name}.jsonl").touch()
    with pytest.raises(RpmsError, match="'rpms learn --method awm --out "):
        contexts("rivals", base)
    (tmp_path / "m.awm.jsonl").touch()
    arms = contexts("rivals", base)
    files = {label: Path(context.memory_file).name for label, context in arms.items()}
    # LangMem needs a package of its own, so a plan that everyone can run leaves it out.
    others = [name for name in METHODS if name not in ("rpms", "langmem")]
    assert list(arms) == [*"ASBCD", *(f"{c} memory={name}" for name in others for c in "CD")]
    assert files["A"] == files["B"] == files["D memory=reflexion"] == files["C memory=clin"] == ""
    assert files["D"] == "m.rpms.jsonl" and files["C memory=expel"] == "m.expel.jsonl"
    for label, context in arms.items():
        assert context.memory_method == (label.partition("=")[2] or "rpms")
        assert context.condition == label[0]
    # All of them once more, the baselines as they are and under the same labels.
    bare = contexts("rivals_unfiltered", base)
    names = {"C": " scf=off", "D": " scf=off arbitration=none"}
    assert list(bare) == [f"{label}{names.get(label[0], '')}" for label in arms]
    changes = {"C": {"scf": "off"}, "D": {"scf": "off", "arbitration": "none"}}
    for context, filtered in zip(bare.values(), arms.values(), strict=True):
        assert context == filtered.with_(**changes.get(context.condition, {}))
    (tmp_path / "m.clin.jsonl").touch()
    assert contexts("rivals", base)["D memory=clin"].memory_file.endswith("m.clin.jsonl")


PLAN = """
split: generated_seen
limit: 3
types: [pick_and_place_simple]
repeats: 2
settings: {k: 2, model: sim, guard: off}
varies: [guard]
arms:
  ours: {condition: D}
  mine: {condition: B, scf: off, theta: 0.8, rules: my/rules}
"""


def test_a_plan_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    selection, arms = choose_arms(TaskSelection(env="alfworld"), RunContext(), plan=str(file))
    assert (selection.split, selection.limit, selection.repeats, selection.env) == (
        "generated_seen", 3, 2, "alfworld"
    )  # fmt: skip
    assert list(arms) == ["ours", "mine"]
    mine = arms["mine"].settings()
    assert (mine.k, mine.scf, mine.theta, mine.rules_dir) == (2, "off", 0.8, "my/rules")
    assert mine.condition == "B" and arms["ours"].settings() == RunContext(k=2)
    # Arms that are typed replace those of the file, and keep its tasks and settings.
    selection, arms = choose_arms(
        TaskSelection(), RunContext(), "D+verify", ["x:scf=off"], str(file)
    )
    assert selection.limit == 3 and list(arms) == ["D+verify", "x"]
    assert {arm.settings().k for arm in arms.values()} == {2}


def test_a_plan_that_extends_another_is_held_to_it(tmp_path: Path) -> None:
    (tmp_path / "below.yaml").write_text(PLAN)
    file = tmp_path / "above.yaml"

    def extended(more: str) -> tuple[TaskSelection, dict[str, Any]]:
        file.write_text(f"extends: {tmp_path}/below.yaml\n{more}")
        return choose_arms(TaskSelection(), RunContext(), plan=str(file))

    selection, arms = extended("settings: {theta: 0.9}\narms: {D+verify: {condition: D+verify}}")
    assert (selection.split, selection.repeats) == ("generated_seen", 2)
    assert list(arms) == ["D+verify"]
    assert (arms["D+verify"].settings().k, arms["D+verify"].settings().theta) == (2, 0.9)
    assert list(extended("")[1]) == ["ours", "mine"]
    for more, refusal in {
        "settings: {k: 3}": "sets k=2, not 3",
        "repeats: 1": "sets repeats=2, not 1",
        "arms: {D: {condition: D, k: 3}}": "sets k=2, not 3",
    }.items():
        with pytest.raises(RpmsError, match=refusal):
            extended(more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms: {}", "arms: "),
        ("arms: {x: {}}\nlimits: 3", r":2: unknown key 'limits'; did you mean 'limit'\?"),
        ("arms: [A]", r":1: arms: "),
        ("- A", ":1: "),
        ("arms: {x: {}}\narms: {x: {}}", ":2: the key 'arms' is given a second time"),
        ("arms: [", ":1: not valid YAML"),
        ("arms: {x: {colour: red}}", "arm 'x': unknown setting 'colour'"),
        ("arms: {x: {condition: X}}", "arm 'x': unknown condition 'X'"),
        ("arms: {x: {theta: 9}}", "arm 'x': theta=9.0 is not possible"),
        ("arms: {x: {memory_round: last}}", "arm 'x': memory_round=last is not a number"),
        ("settings: {thteta: 1}", "settings: unknown setting 'thteta'; did you mean 'theta'"),
        ("settings: {theta: 9}", "settings: theta=9.0 is not possible"),
        ("varies: [colour]", "unknown setting 'colour'"),
        ("extends: nowhere", "'nowhere' is neither a plan"),
    ],
)
def test_a_mistake_in_a_plan_is_reported_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(RpmsError, match=message) as caught:
        choose_arms(TaskSelection(), RunContext(), plan=str(file))
    assert "\n" not in str(caught.value)
    if "extends" not in text:
        assert str(file) in str(caught.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_protocol_is_cited_and_can_be_run(name: str) -> None:
    plan = read_plan(name)
    assert plan.differs and any(sign in plan.source for sign in ("arXiv", "paper"))
    env = plan.env or "alfworld"
    selection, arms = choose_arms(TaskSelection(), RunContext(model="openai:m"), plan=name)
    assert list(arms) == list("ASBCD"), "what the plan fixes is on the card"
    assert not plan.split or selection.split in get_environment(env).splits()
    for arm in arms.values():
        context = arm.settings()
        assert {key: context.plain[key] for key in plan.settings} == plan.settings
        assert context.model == "openai:m"
        check_prompts(env, context)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_setting_of_a_plan_refuses_another_value_be_it_the_default(name: str) -> None:
    """In Python or typed; only what the plan says that it varies may differ, and by arm."""
    plan, usual = read_plan(name), RunContext()
    for setting, value in plan.settings.items():
        declared = declarations()[setting]
        others = [*declared.choices, usual.plain[setting], 2, 1, True, False, 0.5]
        kind = str if declared.choices else declared.kind
        other = next(o for o in others if type(o) is kind and o != value)
        refusal = f"plan {name} sets {setting}={value}, not {other}; "
        with pytest.raises(RpmsError, match=re.escape(refusal)) as caught:
            choose_arms(
                TaskSelection(), RunContext(**{setting: other}), plan=name, typed_settings=[setting]
            )
        context = RunContext(**{setting: value})
        _, arms = choose_arms(TaskSelection(), context, plan=name, typed_settings=[setting])
        assert arms["D"].settings().plain[setting] == value
        arm = f"own:{setting}={other}"
        if setting in plan.varies:
            assert "vary it in an arm: --arm" in str(caught.value)
            _, arms = choose_arms(TaskSelection(), RunContext(), arms=[arm], plan=name)
            assert arms["own"].settings().plain[setting] == other
        else:
            with pytest.raises(RpmsError, match=re.escape(f"arm 'own': {refusal}")):
                choose_arms(TaskSelection(), RunContext(), arms=[arm], plan=name)


def test_a_condition_with_a_guard_contradicts_the_paper() -> None:
    for condition, guard in {"D+verify": "verify", "a+offer": "offer", "E": "policy"}.items():
        label = condition[0].upper() + condition[1:]
        refusal = f"arm '{label}': plan paper sets guard=off, not {guard}"
        with pytest.raises(RpmsError, match=re.escape(refusal)):
            choose_arms(TaskSelection(), RunContext(), f"A,{condition}", plan="paper")
    _, arms = choose_arms(TaskSelection(), RunContext(), plan="paper_arbitration")
    assert {label: arm.settings().arbitration for label, arm in arms.items()} == {
        f"D arbitration={mode}": mode for mode in ("none", "soft", "hard", "hard+soft")
    }
    assert {arm.settings().memory_form for arm in arms.values()} == {"recorded"}


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        (["--memory-form", "grounded"], "memory_form=recorded, not grounded"),
        (["--history", "3"], "history=-1, not 3"),
        (["--guard", "verify"], "guard=off, not verify"),
        (["--memory-tokens", "400"], "memory_tokens=0, not 400"),
        (["--trials", "2"], "trials=1, not 2"),
        (["--plan", "reflexion", "--trials", "1"], "trials=10, not 1"),
        (["--plan", "react", "--env", "scienceworld"], "env=alfworld, not scienceworld"),
    ],
)
def test_what_is_typed_and_contradicts_the_plan_is_refused(
    typed: list[str],
    refusal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rpms = in_process(monkeypatch, capsys)
    done = rpms("eval", "--plan", "paper", "--out", tmp_path / "run", *typed)
    assert done.code == 2 and refusal in done.err and done.err.count("\n") == 1
