"""Plans: shipped ones by name, files of one's own, and arms that are typed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.evals.running.plan_file import (
    Chosen,
    choose_arms,
    condition_contexts,
    plan_arms,
    plan_context,
    plan_tasks,
    read_plan,
    round_file,
    shipped_plans,
)
from rpms.memory_store.controls import CONTROLS
from rpms.memory_store.methods import METHODS
from rpms.prompts.examples import check_prompts
from rpms.vocabulary.context import RunContext, declarations
from rpms.vocabulary.errors import RpmsError
from tests.command_line import in_process

BASE = RunContext(max_steps=9, model="openai:x")
PUBLISHED = ["paper", "reflexion", "scienceworld"]
NEED_MEMORY = {"rounds", "paper-rounds", "rivals"}


def contexts(plan: str, base: RunContext = BASE) -> dict[str, RunContext]:
    chosen, context = plan_context(plan, base, ())
    return {label: arm.settings() for label, arm in plan_arms(chosen.arms, context, plan).items()}


def choose(plan: str = "", *, base: RunContext | None = None, **typed: Any) -> Chosen:
    return choose_arms({}, base or RunContext(), plan=plan, **typed)


def test_the_ablation_is_the_default_and_a_label_stays_as_written() -> None:
    _, arms, pairs = choose(base=RunContext(k=1, scf="off"))
    assert list(arms) == list("ASBCD")
    assert [arm.settings().name for arm in arms.values()] == ["A", "S", "B", "C", "D"]
    assert pairs == [("A", "S"), ("S", "B"), ("S", "C"), ("B", "D"), ("C", "D")]
    _, typed, _ = choose(base=RunContext(k=1), arms=["mine:scf=off", "D x:scf=off"])
    assert list(typed) == ["mine", "D x"] and {a.settings().k for a in typed.values()} == {1}


def test_typed_pairs_replace_those_of_the_plan() -> None:
    assert choose(conditions="B,D", compare=["D:B"]).compare == [("D", "B")]
    assert choose("paper", compare=["D: C"]).compare == [("D", "C")]
    assert choose("paper", conditions="A,B").compare == read_plan("paper").compare
    with pytest.raises(RpmsError, match="--compare 'D:mime': no arm 'mime'"):
        choose(conditions="D", compare=["D:mime"])


@pytest.mark.parametrize("name", [*shipped_plans()])
def test_every_shipped_plan_says_what_it_is_for_and_can_be_opened(name: str) -> None:
    assert read_plan(name).about
    if name in NEED_MEMORY or name in PUBLISHED or name == "paper-2x2":
        return
    base = BASE.with_(max_steps=0) if name.startswith("paper") else BASE
    arms = contexts(name, base)
    models = {label: context.model for label, context in arms.items()}
    controls = {label: models.pop(label) for label in list(models) if "control" in label}
    assert set(controls.values()) <= {"random"}
    assert len(controls) == sum(arms[label].guard == "procedure" for label in models)
    assert set(models.values()) == {"openai:x"}
    assert all(context.max_steps == base.max_steps for context in arms.values())
    assert len(set(arms.values())) == len(arms)


@pytest.mark.parametrize(("plan", "setting", "values"), [
    ("ablation", "condition", {letter: letter for letter in "ASBCD"}),
    ("memory_controls", "memory_control",
     {f"{letter} memory={name}".removesuffix(" memory=none"): name
      for letter in "CD" for name in CONTROLS if name != "conflict"}),
    ("conflict", "memory_control",
     {"B": "none", "D": "none", **{f"D conflict arbitration={mode}": "conflict"
                                   for mode in ("none", "soft", "hard", "hard+soft")}}),
])  # fmt: skip
def test_an_arm_is_what_its_label_says(plan: str, setting: str, values: dict[str, str]) -> None:
    arms = contexts(plan)
    assert {label: getattr(context, setting) for label, context in arms.items()} == values
    assert all(context.condition == label[0] for label, context in arms.items())


@pytest.mark.parametrize(("plan", "before"), [("rounds", "SB"), ("paper-rounds", "AB")])
def test_the_learning_curves_take_one_snapshot_per_round(
    plan: str, before: str, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"m.round{number}.jsonl").write_text("")
    arms = contexts(plan, RunContext(memory_file=str(tmp_path / "m.jsonl")))
    for condition, start in zip("CD", before, strict=True):
        rounds = [f"{condition} round {number}" for number in (1, 2, 3)]
        assert [arms[label].condition for label in (start, *rounds)] == [start, *condition * 3]
        assert [Path(arms[label].memory_file).name for label in rounds] == [
            f"m.round{number}.jsonl" for number in (1, 2, 3)
        ]
    assert len(arms) == 8
    with pytest.raises(RpmsError, match=r"no memory of round 4: .*m\.round4\.jsonl"):
        round_file(str(tmp_path / "m.jsonl"), 4)


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
    for name in set(METHODS) - {"reflexion", "awm"}:
        (tmp_path / f"m.{name}.jsonl").touch()
    with pytest.raises(RpmsError, match="'rpms learn --method awm --out "):
        contexts("rivals", base)
    (tmp_path / "m.awm.jsonl").touch()
    arms = contexts("rivals", base)
    files = {label: Path(context.memory_file).name for label, context in arms.items()}
    # LangMem needs a package of its own, so a plan that everyone can run leaves it out.
    others = [name for name in METHODS if name not in ("rpms", "langmem")]
    assert list(arms) == [*"ASBCD", *(f"{c} memory={name}" for name in others for c in "CD")]
    assert files["A"] == files["B"] == files["D memory=reflexion"] == ""
    assert files["D"] == "m.rpms.jsonl" and files["C memory=expel"] == "m.expel.jsonl"
    for label, context in arms.items():
        assert context.memory_method == (label.partition("=")[2] or "rpms")
        assert context.condition == label[0]


PLAN = """
tasks: {split: generated_seen, limit: 3, types: [pick_and_place_simple], repeats: 2}
settings: {k: 2, model: sim, guard: off}
arms:
  ours: {condition: D}
  mine: {condition: B, scf: off, theta: 0.8, rules: my/rules}
  theirs: {condition: A, k: 5}
compare: [[ours, mine]]
"""


def test_a_plan_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    selection, arms, pairs = choose_arms({"env": "alfworld"}, RunContext(), plan=str(file))
    assert (selection.split, selection.limit, selection.repeats, selection.env) == (
        "generated_seen", 3, 2, "alfworld"
    )  # fmt: skip
    assert list(arms) == ["ours", "mine", "theirs"] and pairs == [("ours", "mine")]
    mine = arms["mine"].settings()
    assert (mine.k, mine.scf, mine.theta, mine.rules_dir) == (2, "off", 0.8, "my/rules")
    assert mine.condition == "B" and arms["ours"].settings() == RunContext(k=2)
    assert arms["theirs"].settings().k == 5, "an arm may change a setting of the plan"
    # Arms that are typed replace those of the file, and keep its tasks and settings.
    selection, arms, pairs = choose(str(file), conditions="D+verify", arms=["x:scf=off"])
    assert selection.limit == 3 and list(arms) == ["D+verify", "x"]
    assert {arm.settings().k for arm in arms.values()} == {2} and pairs == [("ours", "mine")]


def test_a_plan_extends_another(tmp_path: Path) -> None:
    (tmp_path / "below.yaml").write_text(PLAN)
    file = tmp_path / "above.yaml"

    def extended(more: str) -> Chosen:
        file.write_text(f"extends: {tmp_path}/below.yaml\n{more}")
        return choose(str(file))

    chosen = extended("settings: {theta: 0.9}\narms: {D+verify: {condition: D+verify}}")
    assert (chosen.tasks.split, chosen.tasks.repeats) == ("generated_seen", 2)
    assert list(chosen.arms) == ["D+verify"] and chosen.compare == []
    settings = chosen.arms["D+verify"].settings()
    assert (settings.k, settings.theta, settings.guard) == (2, 0.9, "verify")
    whole = extended("tasks: {limit: 9}")
    assert list(whole.arms) == ["ours", "mine", "theirs"] and whole.compare == [("ours", "mine")]
    assert (whole.tasks.limit, whole.tasks.split) == (9, "generated_seen")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms: {}", "arms: "),
        ("tasks: {limits: 3}", r":1: tasks.* unknown key 'limits'; did you mean 'limit'\?"),
        ("arms: {x: {}}\ncompare: [[x, y]]", "compare: no arm 'y'"),
        ("arms: {x: {}}\ncompare: [[x]]", ":2: compare"),
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
        ("extends: nowhere", "'nowhere' is neither a plan"),
    ],
)
def test_a_mistake_in_a_plan_is_reported_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(RpmsError, match=message) as caught:
        choose(str(file))
    assert "\n" not in str(caught.value)
    if "extends" not in text:
        assert str(file) in str(caught.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_protocol_is_cited_and_can_be_run(name: str) -> None:
    plan = read_plan(name)
    assert plan.differs and any(sign in plan.source for sign in ("arXiv", "paper"))
    env = plan.tasks.env or "alfworld"
    selection, arms, _ = choose(name, base=RunContext(model="openai:m"))
    assert list(arms) == list("ACBD" if name == "paper" else "ASBCD")
    assert not plan.tasks.split or selection.split in get_environment(env).splits()
    for arm in arms.values():
        context = arm.settings()
        assert {key: context.plain[key] for key in plan.settings} == plan.settings
        assert context.model == "openai:m"
        check_prompts(env, context)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_typed_setting_may_not_contradict_the_plan_and_an_arm_may(name: str) -> None:
    plan, usual = read_plan(name), RunContext()
    for setting, value in plan.settings.items():
        declared = declarations()[setting]
        others = [*declared.choices, usual.plain[setting], 2, 1, True, False, 0.5]
        kind = str if declared.choices else declared.kind
        other = next(o for o in others if type(o) is kind and o != value)
        refusal = f"plan {name} sets {setting}={value}, not {other}; "
        with pytest.raises(RpmsError, match=re.escape(refusal)):
            choose(name, base=RunContext(**{setting: other}), typed_settings=[setting])
        same = RunContext(**{setting: value})
        assert choose(name, base=same, typed_settings=[setting]).arms["D"].settings().plain[
            setting] == value  # fmt: skip
        arms = choose(name, arms=[f"own:{setting}={other}"]).arms
        assert arms["own"].settings().plain[setting] == other


def test_the_tables_of_the_paper_have_its_arms_and_pairs() -> None:
    modes = contexts("paper-arbitration", RunContext())
    assert {label: context.arbitration for label, context in modes.items()} == {
        "no arbitration": "none", "soft only": "soft", "hard only": "hard", "hard+soft": "hard+soft"
    }  # fmt: skip
    filters = contexts("paper-scf", RunContext())
    assert {label: (c.condition, c.scf) for label, c in filters.items()} == {
        "C": ("C", "occupancy"), "C without SCF": ("C", "off"),
        "D": ("D", "occupancy"), "D without SCF": ("D", "off"),
    }  # fmt: skip
    for plan in ("paper", "paper-2x2"):
        pairs = {*map(frozenset, choose(plan).compare)}
        assert pairs >= {frozenset("A" + other) for other in "BCD"}
    fixed = read_plan("paper").settings
    for context in (
        *modes.values(),
        *filters.values(),
        *contexts("paper-2x2", RunContext()).values(),
    ):
        free = {"arbitration", "scf"}
        assert all(context.plain[name] == fixed[name] for name in {*fixed} - free)


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        (["--set", "memory_form=grounded"], "memory_form=recorded, not grounded"),
        (["--set", "history=3"], "history=-1, not 3"),
        (["--guard", "verify"], "guard=off, not verify"),
        (["--set", "memory_tokens=1200"], "memory_tokens=0, not 1200"),
        (["--trials", "2"], "trials=1, not 2"),
        (["--plan", "reflexion", "--trials", "1"], "trials=10, not 1"),
        (["--plan", "reflexion", "--env", "scienceworld"], "env=alfworld, not scienceworld"),
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
    plan = [] if "--plan" in typed else ["--plan", "paper"]
    done = rpms("eval", *plan, "--out", tmp_path / "run", *typed)
    assert done.code == 2 and refusal in done.err and done.err.count("\n") == 1
    if "--trials" not in typed:
        assert rpms("run", *plan, *typed).err == done.err
        assert rpms("learn", *plan, "--out", tmp_path / "m.jsonl", *typed).err == done.err


def test_a_plan_extends_one_that_extends_another(tmp_path: Path) -> None:
    def write(name: str, text: str) -> str:
        file = tmp_path / f"{name}.yaml"
        file.write_text(text)
        return str(file)

    below = write("below", PLAN)
    middle = write("middle", f"extends: {below}\nsettings: {{theta: 0.9}}\ntasks: {{limit: 9}}")
    plan = read_plan(write("top", f"extends: {middle}\nsettings: {{k: 7}}"))
    assert (plan.settings["k"], plan.settings["theta"], plan.settings["guard"]) == (7, 0.9, "off")
    assert (plan.tasks.limit, plan.tasks.split) == (9, "generated_seen")
    assert [*plan.arms] == ["ours", "mine", "theirs"] and plan.compare == [("ours", "mine")]
    write("below", f"extends: {middle}")
    circle = f"plan {middle} extends itself: {middle} -> {below} -> {middle}"
    with pytest.raises(RpmsError, match=re.escape(circle)):
        read_plan(middle)


def test_a_typed_split_replaces_that_of_the_plan() -> None:
    for name in ("paper", *(each for each in shipped_plans() if each.startswith("paper-"))):
        plan = read_plan(name)
        assert plan_tasks(name, plan, {}).split == "valid_unseen"
        assert plan_tasks(name, plan, {"split": "generated_unseen"}).split == "generated_unseen"
