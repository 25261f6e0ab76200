"""Arms as people write them, with code, rules and models of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.evals.analysis.step_analysis import analyses
from rpms.evals.records.run_folder import EPISODES
from rpms.evals.running.arms import Variant, listed, make_arm, parse_arm
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import lines_of


@pytest.mark.parametrize(("text", "fields", "settings"), [
    ("mine:nodes=pkg.mod:stages,scf=off,k=5,theta=0.5", {"nodes": "pkg.mod:stages"},
     {"scf": "off", "k": 5, "theta": 0.5, "condition": "D"}),
    # Any value can be said.
    ("mine:without_rules='domain, U-1',k=5", {}, {"without_rules": "domain, U-1", "k": 5}),
    ("""mine:memory="a 'b',#c=1.jsonl",rules=C:\\d""",
     {"memory": "a 'b',#c=1.jsonl", "rules": "C:\\d"}, {}),
    # Rules and memory are switches or files.
    ("mine:rules=off,memory=on", {}, {"condition": "C"}),
    ("mine:rules=my/rules,memory=my.jsonl", {},
     {"rules_dir": "my/rules", "memory_file": "my.jsonl", "condition": "D"}),
])  # fmt: skip
def test_an_arm_of_the_command_line(
    text: str, fields: dict[str, Any], settings: dict[str, Any]
) -> None:
    label, parsed = parse_arm(text)
    arm = make_arm(parsed, RunContext())
    assert label == "mine" and {name: getattr(arm, name) for name in fields} == fields
    assert {name: getattr(arm.settings(), name) for name in settings} == settings
    assert parse_arm("b+Verify") == ("B+verify", {"condition": "B+verify"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":scf=off", "has no label"),
        ("x:scf", "'scf' is not SETTING=VALUE"),
        ("x:k=many", "k=many is not a number"),
        ("x:k=-1", "k=-1 is not possible"),
        ("x:colour=red", "unknown setting 'colour'; known: action_list"),
        ("x:condition=Z", "unknown condition 'Z'"),
        ("Z", "unknown condition 'Z'"),
        ("x:model='a,b", "--arm 'x:model='a,b': a quote is not closed"),
    ],
)
def test_a_mistake_is_told(text: str, message: str) -> None:
    with pytest.raises(RpmsError, match=message):
        make_arm(parse_arm(text)[1], RunContext())


def test_names_come_by_comma_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("a/1\n\n b/2 \nc/3\tgoal\n")
    assert listed("a/1, b/2,,c/3") == listed(f"@{file}") == ["a/1", "b/2", "c/3"]
    with pytest.raises(RpmsError, match="cannot read the list"):
        listed("@/nowhere")


STAGES = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


def scf(state):
    return {"recalls": [{**r, "dropped_by": "scf", "reason": "mine"} for r in state["recalls"]]}


def forever():
    while True:
        yield AIMessage("Thought: mine.\\nAction: look")


def make_model(seed=0):
    return GenericFakeChatModel(messages=forever())


def not_a_model():
    return 7


stages = {"scf": scf}
wrong = {"no_such_stage": scf}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's own, beside the folder the run is started from."""
    name = f"variant_{abs(hash(tmp_path))}"  # a process imports a module once
    (tmp_path / f"{name}.py").write_text(STAGES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return name


@pytest.mark.engine
def test_own_stages_and_an_own_model_are_played(module: str, tmp_path: Path) -> None:
    """By another process; on Ray, ``test_wheel.py`` plays a stage of somebody's own."""
    execution = rpms.ExecutionOptions(workers=1)
    arms: dict[str, rpms.Arm] = {
        "D": RunContext(max_steps=4),
        "mine": Variant(RunContext(max_steps=4), nodes=f"{module}:stages"),
        "theirs": Variant(RunContext(max_steps=4), model=f"{module}:make_model"),
    }
    report = rpms.evaluate(arms, out=tmp_path / "run", limit=1, execution=execution, show=False)
    lines = {line["condition"]: line for line in lines_of(tmp_path / "run")}
    assert len(lines) == 3 and report.run.complete
    (mine,) = analyses(report.run, report.run.played("mine")).values()
    assert mine.dropped["scf"] == mine.recalled > 0
    assert {turn["action"] for turn in lines["theirs"]["history"]} == {"look"}
    swapped = report.run.manifest.swapped
    assert swapped["mine"]["nodes scf"]["path"] == f"{module}:scf"
    assert swapped["theirs"]["model"]["path"] == f"{module}:make_model"
    for table in report.tables:
        assert f"mine has nodes scf from {module}:scf (" in table.source
    assert "make_model" in report.run.manifest.model_label


def own_scf(state: dict[str, Any]) -> dict[str, Any]:
    """A stage of this very module."""
    return state


def test_what_cannot_travel_is_refused_with_what_to_do() -> None:
    assert Variant(nodes={"scf": own_scf}).paths() == {"scf": f"{__name__}:own_scf"}
    for variant, what in (
        (Variant(nodes={"scf": lambda state: state}), "stage 'scf' cannot travel"),
        (Variant(model=rpms.SimPlanner()), "the model cannot travel"),  # type: ignore[arg-type]
    ):
        with pytest.raises(RpmsError, match=rf"{what}.*package\.module:name"):
            rpms.evaluate({"mine": variant}, out="never", limit=1)
    with pytest.raises(RpmsError, match="a RunContext or a Variant, not a str"):
        rpms.evaluate({"mine": "D"}, out="never")  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ({"nodes": "{}:wrong"}, "no stage called no_such_stage"),
        ({"nodes": "{}:scf"}, "a function without arguments that returns one"),
        ({"nodes": "{}:nothing"}, "cannot load the stages"),
        ({"model": "{}:not_a_model"}, "makes a int, not a LangChain chat model"),
        ({"rules": "/no/such/folder"}, "/no/such/folder"),
        ({"memory": "/no/such/file"}, "/no/such/file"),
    ],
)
def test_what_is_wrong_with_an_arm_is_said_before_anything_is_played(
    arm: dict[str, str], message: str, module: str, tmp_path: Path
) -> None:
    variant = Variant(**{name: path.format(module) for name, path in arm.items()})  # type: ignore[arg-type]
    with pytest.raises(RpmsError, match=message):
        rpms.evaluate({"mine": variant}, out=tmp_path / "run", limit=1, show=False)
    assert not (tmp_path / "run" / EPISODES).exists()
