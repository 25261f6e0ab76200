"""Arms as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.evals.arms import TaskSelection, choose_arms, listed, parse_arm, read_plan
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError

PLAN = """
split: generated_seen
limit: 3
types: [pick_and_place_simple]
repeats: 2
settings: {k: 2, model: sim}
arms:
  ours: {condition: D}
  mine: {condition: B, scf: off, theta: 0.8, rules: my/rules}
"""


def test_an_arm_of_the_command_line() -> None:
    label, arm = parse_arm("mine:nodes=pkg.mod:stages,scf=off,k=5,theta=0.5", RunContext())
    assert label == "mine" and arm.nodes == "pkg.mod:stages"
    settings = arm.settings()
    assert (settings.scf, settings.k, settings.theta, settings.condition) == ("off", 5, 0.5, "D")


def test_any_value_can_be_said() -> None:
    _, arm = parse_arm("mine:without_rules='domain, U-1',k=5", RunContext())
    assert (arm.settings().without_rules, arm.settings().k) == ("domain, U-1", 5)
    _, arm = parse_arm("""mine:memory="a 'b',#c=1.jsonl",rules=C:\\d""", RunContext())
    assert (arm.memory, arm.rules) == ("a 'b',#c=1.jsonl", "C:\\d")


def test_a_letter_alone_is_that_condition() -> None:
    label, arm = parse_arm("B", RunContext(k=1))
    assert label == "B" and arm.settings() == RunContext(k=1).under("B")


def test_rules_and_memory_are_switches_or_files() -> None:
    _, off = parse_arm("x:rules=off,memory=on", RunContext())
    assert off.settings().condition == "C"
    _, files = parse_arm("x:rules=my/rules,memory=my.jsonl", RunContext())
    settings = files.settings()
    assert (settings.rules_dir, settings.memory_file) == ("my/rules", "my.jsonl")
    assert settings.condition == "D"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (":scf=off", "has no label"),
        ("x:scf", "'scf' is not SETTING=VALUE"),
        ("x:k=many", "k=many is not a number"),
        ("x:k=-1", "k=-1 is not possible"),
        ("x:colour=red", "unknown setting 'colour'; known: action_list"),
        ("x:condition=Z", "unknown condition 'Z'"),
        ("Z", "unknown condition 'Z'"),
        ("x:model='a,b", "--arm 'x:model='a,b': a quote is opened and not closed"),
    ],
)
def test_a_mistake_is_told(text: str, said: str) -> None:
    with pytest.raises(RpmsError, match=said):
        parse_arm(text, RunContext())[1].settings()


def test_a_plan_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    selection, arms = choose_arms(
        TaskSelection(env="alfworld", trials=1), RunContext(k=7), plan=file
    )
    assert (selection.split, selection.limit, selection.repeats, selection.env) == (
        "generated_seen", 3, 2, "alfworld"
    )  # fmt: skip
    assert list(arms) == ["ours", "mine"]
    mine = arms["mine"].settings()
    assert (mine.k, mine.scf, mine.theta, mine.rules_dir) == (2, "off", 0.8, "my/rules")
    assert mine.condition == "B" and arms["ours"].settings() == RunContext(k=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arms: {}", "arms: "),
        ("arms: {x: {}}\nlimits: 3", r":2: unknown key 'limits'; did you mean 'limit'\?"),
        ("arms: [A]", r":1: arms: "),
        ("- A", ":1: "),
        ("arms: {x: {colour: red}}", "arm 'x': unknown setting 'colour'"),
    ],
)
def test_a_mistake_in_a_plan_is_told_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(RpmsError, match=said):
        choose_arms(TaskSelection(), RunContext(), plan=file)


def test_a_plan_names_the_arms_alone(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="--plan names the arms"):
        choose_arms(TaskSelection(), RunContext(), conditions="A", plan=tmp_path / "plan.yaml")
    with pytest.raises(RpmsError, match="cannot read"):
        read_plan(tmp_path / "nowhere.yaml")


def test_a_protocol_sets_the_tasks_too() -> None:
    selection, arms = choose_arms(
        TaskSelection(env="alfworld", protocol="reflexion"), RunContext(), conditions="A"
    )
    assert (selection.split, selection.trials) == ("valid_unseen", 10)
    assert arms["A"].settings().examples == 2
    with pytest.raises(RpmsError, match="reflexion is played with trials=10, not 3"):
        choose_arms(TaskSelection(env="alfworld", protocol="reflexion", trials=3), RunContext())


@given(st.lists(st.text(st.characters(exclude_characters=",@\n\r", codec="utf-8"), min_size=1)))
def test_names_by_comma_are_read_back(names: list[str]) -> None:
    wanted = [name.strip() for name in names if name.strip()]
    assert listed(",".join(wanted)) == wanted


def test_names_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("a/1\n\n b/2 \n")
    assert listed(f"@{file}") == ["a/1", "b/2"]
    with pytest.raises(RpmsError, match="cannot read the list"):
        listed("@/nowhere")
