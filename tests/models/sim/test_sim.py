from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, convert_to_messages
from langgraph.runtime import Runtime

import rpms.models.sim
from rpms.graph import build_graph, run_episode
from rpms.models import SimPlanner
from rpms.models.sim import LABEL
from rpms.nodes import prompt_build
from rpms.nodes.context import RunContext
from rpms.nodes.state import EpisodeState

FOLDER = Path(rpms.models.sim.__file__).parent
ROOT = FOLDER.parents[1]
Pair = tuple[list[dict[str, str]], str]


def record(task: int, context: RunContext) -> list[Pair]:
    """The prompts of an episode with the replies they got."""
    prompts: list[Any] = []

    def keep(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        update = prompt_build(state, runtime)
        prompts.append(update["prompt"])
        return update

    result = run_episode(task, context=context, graph=build_graph(nodes={"prompt_build": keep}))
    said = [f"Thought: {t['thought']}\nAction: {t['action']}" for t in result["history"]]
    return list(zip(prompts, said, strict=True))


@pytest.fixture(scope="module")
def recorded() -> list[Pair]:
    found: list[Pair] = []
    for condition in "ABD":
        for task in (1, 8, 11):
            found += record(task, RunContext.for_condition(condition))
    assert len(found) > 50
    return found


@pytest.mark.engine
def test_a_fresh_planner_needs_nothing_but_the_messages(recorded: list[Pair]) -> None:
    """Asked in another order, a planner that never saw an episode replies the same."""
    for messages, reply in reversed(recorded):
        assert SimPlanner().invoke(convert_to_messages(messages)).text == reply


@pytest.mark.engine
def test_another_process_replies_the_same(recorded: list[Pair], tmp_path: Path) -> None:
    """Neither this process's memory nor its hash seed plays a part."""
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps([messages for messages, _ in recorded]))
    program = (
        "import json, sys\n"
        "from langchain_core.messages import convert_to_messages\n"
        "from models.sim import SimPlanner\n"
        "for messages in json.load(open(sys.argv[1])):\n"
        "    print(json.dumps(SimPlanner().invoke(convert_to_messages(messages)).text))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONHASHSEED": "123", "PYTHONPATH": str(ROOT)},
        check=True,
    ).stdout
    assert [json.loads(line) for line in out.splitlines()] == [reply for _, reply in recorded]


@pytest.mark.engine
@pytest.mark.parametrize("condition", ["A", "B"])
def test_the_layout_changes_nothing_for_it(condition: str) -> None:
    for task in (2, 5):
        results = [
            run_episode(task, context=RunContext.for_condition(condition, layout=layout))
            for layout in ("paper", "cache_friendly")
        ]
        assert results[0]["history"] == results[1]["history"]


@pytest.mark.engine
def test_episodes_repeat_exactly() -> None:
    context = RunContext.for_condition("A")
    assert run_episode(3, context=context) == run_episode(3, context=context)


@pytest.mark.engine
def test_rules_help_it() -> None:
    """The demo rests on this: the same beginner does better with the manual than without."""
    won = {"A": 0, "B": 0}
    steps = {"A": 0, "B": 0}
    for condition in won:
        for task in range(12):
            result = run_episode(task, context=RunContext.for_condition(condition))
            won[condition] += result["success"]
            steps[condition] += result["steps"]
    assert won["B"] > won["A"]
    assert steps["B"] < steps["A"]


def test_it_knows_nothing_of_the_rest_of_the_program() -> None:
    """It may only read the prompt; importing the world or the manual would be cheating."""
    imported = set()
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported.add(node.module or "")
    inside = {name for name in imported if name.split(".")[0] == "rpms"}
    assert inside
    assert all(name.startswith("rpms.models.sim") for name in inside)
    assert not imported & {"os", "pathlib", "random", "time", "datetime", "secrets"}


def test_it_is_a_chat_model_like_any_other() -> None:
    reply = SimPlanner().invoke([HumanMessage("x" * 400)])
    assert reply.text.startswith("Thought: ")
    assert reply.text.endswith("\nAction: look")
    assert reply.usage_metadata is not None
    assert 90 < reply.usage_metadata["input_tokens"] < 130
    assert reply.usage_metadata["output_tokens"] > 0
    assert reply.response_metadata["model_name"] == "sim"


async def test_it_answers_asynchronously_too() -> None:
    messages = [HumanMessage("hello")]
    assert (await SimPlanner().ainvoke(messages)).text == SimPlanner().invoke(messages).text


def test_its_name_says_what_it_is() -> None:
    assert "not a language model" in LABEL
