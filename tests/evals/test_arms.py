"""Arms as people write them, with code, rules and models of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rpms
from rpms.envs import Task, get_environment
from rpms.evals.records.run_folder import EPISODES
from rpms.evals.running.arms import Variant, listed, make_arm, parse_arm
from rpms.evals.running.plan_file import choose_arms
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import analysis_of, lines_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("text", "fields", "settings"), [
    (f"mine={__name__}:own_graph,scf=off,k=5,theta=0.5", {"graph": f"{__name__}:own_graph"},
     {"scf": "off", "k": 5, "theta": 0.5, "condition": "C", "max_steps": 4}),
    (f"mine:graph={__name__}:own_graph,condition=B", {}, {"condition": "B", "max_steps": 4}),
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
        ("x:colour=red", "unknown setting 'colour'; known: arbitration"),
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
    file.write_text("\n")
    with pytest.raises(RpmsError, match="is empty"):  # every task would be played
        listed(f"@{file}")


def own_scf(state: dict[str, Any]) -> dict[str, Any]:
    """A stage of this very module."""
    return state


def own_graph() -> rpms.RpmsGraph:
    return rpms.build_graph({"scf": own_scf}, context=RunContext.for_condition("C", max_steps=4))


def test_an_arm_of_a_plan_is_a_graph_with_the_settings_of_the_run_and_its_own(
    tmp_path: Path,
) -> None:
    file = tmp_path / "plan.yaml"
    path = f"{__name__}:own_graph"
    file.write_text(
        f"settings: {{seed: 5}}\narms: {{mine: {{graph: '{path}'}}, "
        f"B: {{graph: '{path}', condition: B, max_steps: 9}}}}\n"
    )
    arms = choose_arms({}, RunContext(), plan=str(file)).arms
    expected = RunContext.for_condition("C", max_steps=4, seed=5)
    assert arms["mine"].settings() == expected and arms["mine"].graph == path
    assert arms["B"].settings() == expected.under("B").with_(max_steps=9)


@pytest.mark.parametrize(
    ("settings", "arm", "message"),
    [
        ("max_steps: 4, k: 9", {}, ""),
        ("arbitration: none", {}, ""),
        ("max_steps: 20", {}, "the run sets max_steps=20, and the graph of this arm max_steps=4"),
        ("max_steps: 0", {}, "the run sets max_steps=0, and the graph of this arm max_steps=4"),
        ("max_steps: 20", {"max_steps": "7"}, ""),
        ("memory: true, rules: true", {}, "rules=True, and the graph of this arm rules=False"),
        ("rules: true", {"condition": "D"}, ""),
    ],
)
def test_a_graph_and_a_plan_that_contradict_each_other_need_a_choice(
    settings: str, arm: dict[str, str], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    fields = ", ".join(f"{name}: {value}" for name, value in arm.items())
    graph = f"graph: '{__name__}:own_graph'"
    file.write_text(f"settings: {{{settings}}}\narms: {{mine: {{{graph}, {fields}}}}}\n")
    if message:
        with pytest.raises(RpmsError, match=message) as caught:
            choose_arms({}, RunContext(), plan=str(file))
        assert str(caught.value).startswith(f"plan {file}: arm 'mine': ")
        return
    arms = choose_arms({}, RunContext(), plan=str(file)).arms
    assert arms["mine"].settings().max_steps == int(arm.get("max_steps", 4))
    arms = choose_arms(
        {}, RunContext(k=9), arms=[f"mine={__name__}:own_graph"], typed_settings=["k"]
    ).arms
    assert arms["mine"].settings() == RunContext.for_condition("C", max_steps=4, k=9)


MODULE = """
import rpms
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


def scf(state):
    return {"recalls": [{**r, "dropped_by": "scf", "reason": "mine"} for r in state["recalls"]]}


def seen(state):
    return {}


def forever():
    while True:
        yield AIMessage("Thought: mine.\\nAction: look")


def make_model(seed=0):
    return GenericFakeChatModel(messages=forever())


def not_a_model():
    return 7


def mine():
    context = rpms.RunContext(max_steps=4)
    return rpms.build_graph({"scf": scf}, before={"env_step": seen}, context=context)


def wrong():
    return rpms.build_graph({"no_such_stage": scf})


def failing():
    raise ValueError("not today")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's own, beside the folder the run is started from."""
    name = f"variant_{abs(hash(tmp_path))}"  # a process imports a module once
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    return name


@pytest.mark.engine
def test_own_stages_and_an_own_model_are_played(module: str, tmp_path: Path) -> None:
    """By another process; on Ray, ``test_wheel.py`` plays a stage of somebody's own."""
    execution = rpms.ExecutionOptions(workers=1)
    arms: dict[str, rpms.Arm] = {
        "D": RunContext(max_steps=4),
        "mine": f"{module}:mine",
        "theirs": Variant(RunContext(max_steps=4), model=f"{module}:make_model"),
    }
    report = rpms.evaluate(arms, out=tmp_path / "run", limit=1, execution=execution, show=False)
    lines = {line["condition"]: line for line in lines_of(tmp_path / "run")}
    assert len(lines) == 3 and report.run.complete
    (mine,) = (analysis_of(report.run, each) for each in report.run.played("mine"))
    assert mine.dropped["scf"] == mine.recalled > 0
    assert {turn["action"] for turn in lines["theirs"]["history"]} == {"look"}
    swapped = report.run.manifest.swapped
    assert {part: code["path"] for part, code in swapped["mine"].items()} == {
        "graph": f"{module}:mine", "nodes scf": f"{module}:scf", "added seen": f"{module}:seen"
    }  # fmt: skip
    assert all(code["hash"] for code in swapped["mine"].values())
    assert swapped["theirs"]["model"]["path"] == f"{module}:make_model"
    for table in report.tables:
        assert f"{module}:scf (" in table.source and f"{module}:mine (" in table.source
    assert "make_model" in report.run.manifest.model_label


@pytest.mark.engine
def test_in_one_process_functions_and_graphs_of_the_script_are_arms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no episode lists the split that the run has listed."""
    here = rpms.ExecutionOptions(workers=0)
    seen: list[str] = []

    def watched(state: rpms.EpisodeState) -> rpms.EpisodeState:
        seen.append(state["action"])
        return {}

    def local() -> rpms.RpmsGraph:
        return rpms.build_graph(after={"llm_call": watched}, context=RunContext(max_steps=2))

    def tasks(split: str, count: int | None = None) -> list[Task]:
        listings.append(split)
        return list_tasks(split, count)

    world, listings = get_environment("alfworld"), list[str]()
    list_tasks = world.tasks
    monkeypatch.setattr(world, "tasks", tasks)
    arms: dict[str, rpms.Arm] = {"D": RunContext(max_steps=2), "function": local, "graph": local()}
    report = rpms.evaluate(arms, out=tmp_path, limit=1, execution=here, show=False)
    assert len(listings) == 1
    lines = {line["condition"]: line for line in lines_of(tmp_path)}
    actions = [turn["action"] for turn in lines["D"]["history"]]
    assert sorted(seen) == sorted([*actions, *actions])
    alone = rpms.run_episode(lines["D"]["task"], split=lines["D"]["split"], graph=local())
    assert [turn["action"] for turn in alone["history"]] == actions
    assert report.run.manifest.swapped["function"].keys() == {"graph", "added watched"}


SCRIPT = """
import sys
import rpms

print("begun", flush=True)


def mine():
    return rpms.build_graph(context=rpms.RunContext.for_condition("A", max_steps=1))


{guard}rpms.evaluate({{"A": rpms.RunContext.for_condition("A", max_steps=1), "mine": mine}},
    out=sys.argv[1], limit=1, show=False, execution=rpms.ExecutionOptions(workers=1))
"""


@pytest.mark.engine
def test_a_script_without_a_main_guard_is_refused_before_anything_runs_twice(
    tmp_path: Path,
) -> None:
    for guard, code in (("", 1), ('if __name__ == "__main__":\n    ', 0)):
        script = tmp_path / "some_script.py"
        script.write_text(SCRIPT.format(guard=guard))
        words = [sys.executable, str(script), str(tmp_path / "run")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        if code:
            assert "some_script.py, line 12: worker processes import this script" in done.stderr
            assert done.stdout == "begun\n" and not (tmp_path / "run").exists()
        else:
            assert {line["condition"] for line in lines_of(tmp_path / "run")} == {"A", "mine"}


@pytest.mark.engine
def test_the_command_line_plays_a_graph_in_worker_processes(module: str, tmp_path: Path) -> None:
    words = [
        sys.executable, "-m", "rpms", "eval", "--arm", "D",
        "--arm", f"mine={module}:mine,max_steps=2", "--limit", "1", "--max-steps", "2",
        "--workers", "1", "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = {line["condition"]: line["steps"] for line in lines_of(tmp_path / "run")}
    assert steps == {"D": 2, "mine": 2}


def test_what_cannot_travel_is_refused_with_what_to_do() -> None:
    arms: list[tuple[Any, str]] = [
        (
            lambda: own_graph(),
            "graph of arm 'mine' cannot travel.*package.module:name.*workers",
        ),
        (own_graph(), "arm 'mine': a graph object cannot travel.*workers=0"),
        (Variant(model=rpms.SimPlanner()), r"the model cannot travel.*package\.module:name"),  # type: ignore[arg-type]
        (7, "an arm is a condition, a RunContext, a Variant, or a graph.*not a int"),
        ("Z", "unknown condition 'Z'"),
    ]
    for arm, words in arms:
        with pytest.raises(RpmsError, match=words):
            rpms.evaluate({"mine": arm}, out="never", limit=1)


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ({"graph": "{}:wrong"}, "no stage called no_such_stage"),
        ({"graph": "{}:scf"}, "scf.*missing 1 required positional argument"),
        ({"graph": "{}:not_a_model"}, "what rpms.build_graph returns, .*it is a int"),
        ({"graph": "{}:failing"}, "failing: ValueError: not today"),
        ({"graph": "{}:nothing"}, "cannot load the graph"),
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
