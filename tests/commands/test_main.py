"""Every command, once: what it shows, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from rpms import RunContext
from rpms.commands import main as cli
from rpms.commands.help_text import PANELS
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.evals.running.arms import parse_arm
from rpms.evals.running.evaluate import as_arms
from rpms.evals.running.plan_file import Plan, plan_arms, read_plan, shipped_plans
from rpms.graph import STAGES
from tests.command_line import Rpms
from tests.commands.conftest import ROOT
from tests.evals.sample_runs import write_run
from tests.openai_server import Answer, OpenAIServer

REQUIRED = {
    "task", "condition", "success", "score", "steps", "invalid_actions", "failure_mode",
    "prompt_tokens",
}  # fmt: skip


@pytest.fixture
def rpms(rpms: Rpms, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rpms:
    """Also without official games."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    return rpms


def commands(group: Any, *above: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*above, name)
        if hasattr(command, "commands"):
            yield from commands(command, *above, name)


def test_every_command_explains_itself(rpms: Rpms) -> None:
    names = list(commands(typer.main.get_command(cli.app)))
    assert {("run",), ("tasks",), ("graph",), ("demo",), ("rules", "check")} <= set(names)
    for words in [(), *names]:
        done = rpms(*words, "--help")
        assert (done.code, done.err) == (0, "")
        assert "Usage: " in done.out and " ".join(words) in done.out
        described = done.out.split("Usage: ")[1].splitlines()
        assert any(line.strip() for line in described[1:])
        assert "..." not in done.out.partition("Commands:")[2], "every sentence is whole"
        assert "range>" not in done.out and "RANGE" not in done.out
    for words in ((), ("rules",)):  # no command at all is a question for help
        done = rpms(*words)
        assert (done.code, done.err) == (0, "") and "Commands:" in done.out


def test_the_options_of_an_evaluation_stand_in_groups(rpms: Rpms) -> None:
    text = rpms("eval", "--help").out
    groups = [line.removesuffix(":") for line in text.splitlines() if line.endswith(":")]
    assert tuple(name for name in groups if name in PANELS) == PANELS[:-1]
    options: Any = typer.main.get_command(cli.app)
    for option in options.commands["eval"].params:
        assert option.help.endswith(".") and option.help[0].isupper(), option.name


def test_in_a_process_of_its_own() -> None:
    """Also ``rpms tasks | head -1``, where nobody reads on."""
    done = subprocess.run(
        f"{sys.executable} -m rpms tasks --json | head -1; "
        f"{sys.executable} -m rpms run --task nosuch; echo $?",
        shell=True, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout == "[\n2\n"
    assert done.stderr.startswith("rpms: ") and done.stderr.count("\n") == 1


@pytest.mark.engine
def test_run_shows_each_decision_or_one_object(rpms: Rpms) -> None:
    words = ("run", "--condition", "B")
    done = rpms(*words, "--json", "--prompts")
    result = json.loads(done.out)
    assert (done.code, done.err) == (0, "") and set(result) >= REQUIRED
    assert result["success"] is (result["failure_mode"] is None)
    assert (result["condition"], result["model"]) == ("B", "sim")
    assert len(result["history"]) == result["steps"]
    done = rpms(*words, "--task", result["task"].split("/")[1], "--prompts")
    assert done.code == 0
    shown = " ".join(done.out.split())
    assert result["task"] in shown and "not a language model" in shown
    for turn in result["history"]:
        assert f" action {turn['action']} " in shown
    assert f" after {result['steps']} steps, score " in done.out
    assert f", {result['invalid_actions']} rejected" in done.out
    assert "--- system" in done.out and "[U-STATE-001]" in done.out
    assert "[RULES - CRITICAL, Always Follow]" in done.out
    row = json.loads(rpms("tasks", "--json").out)[3]
    for name in ("3", row["id"]):
        done = rpms("run", "--task", name, "--json", "--max-steps", "1")
        assert json.loads(done.out)["task"] == row["id"]


@pytest.mark.engine
def test_run_shows_a_veto_that_the_model_took(rpms: Rpms) -> None:
    """Also where the decision that stands in the end is to accept another action."""
    done = rpms("run", "--task", "14", "--condition", "D+verify")
    shown = " ".join(done.out.split())
    assert re.search(r"vetoed [\w /]+ \(retried\) because \[O-ACT-", shown)
    assert " success after " in shown


def test_tasks(rpms: Rpms) -> None:
    rows = json.loads(rpms("tasks", "--json", "--limit", "12").out)
    assert [row["index"] for row in rows] == list(range(12))
    assert {row["type"] for row in rows} == set(GOAL_TYPES)
    assert set(rows[0]) == {
        "index", "id", "goal", "type", "object", "state", "count", "destination",
    }  # fmt: skip
    done = rpms("tasks", "--limit", "12")
    assert done.err.startswith("12 tasks: ")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == [row["id"] for row in rows]
    done = rpms("tasks", "--env", "scienceworld", "--split", "test")
    assert done.err == "241 tasks: 40 F1, 30 F2, 62 F3, 109 F4\n"
    assert done.out.startswith("boil/21\t")


def test_plans_are_listed_with_their_arms_and_comparisons(rpms: Rpms) -> None:
    shown = " ".join(rpms("plans").out.split())
    for name in shipped_plans():
        plan = read_plan(name)
        shown = shown[shown.index(f" {plan.about}") :]
        for first, second in plan.compare:
            assert f" {first} with {second}" in shown, name
        for label, fields in plan.arms.items():
            bare = fields == {"condition": label}
            assert f" {label}{'' if bare else f': {next(iter(fields))}='}" in shown, name


def test_graph(rpms: Rpms) -> None:
    done = rpms("graph")
    assert done.code == 0 and "graph TD" in done.out
    assert all(stage in done.out for stage in STAGES)


MINE = """
import rpms

def my_filter(state):
    return {"recalls": state["recalls"]}

def referee(state):
    return {}

def mine():
    context = rpms.RunContext.for_condition("C")
    return rpms.build_graph({"scf": my_filter}, before={"env_step": referee}, context=context)
"""


def test_the_path_of_a_condition_is_drawn_in_full_and_the_rest_pale(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b.mmd"
    assert rpms("graph", "--condition", "B", "--out", str(file)).code == 0
    text = file.read_text()
    assert "class arbitration,goal_retrieval,guard_check,memory_selection,scf pale" in text
    assert "linkStyle" in text and "__error_handler__" not in text
    assert "pale" not in rpms("graph", "--condition", "E").out.replace("linkStyle", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "drawn_variants.py").write_text(MINE)
    own = rpms("graph", "--graph", "drawn_variants:mine").out
    assert "\treferee --> env_step;" in own and "class arbitration,guard_check,rule_assembly" in own
    for arguments, words in (
        (("--out", "b.gif"), "the ending must be one of .mmd"),
        (("--graph", "drawn_variants:my_filter"), "drawn_variants:my_filter"),
        (("--graph", "drawn_variants:none"), "cannot load the graph"),
        (("--condition", "X"), "unknown condition 'X'"),
    ):
        failed = rpms("graph", *arguments)
        assert failed.code == 2 and words in failed.err


def test_pictures_are_drawn_by_graphviz(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the program, which machines for tests lack: it hands back what it is given."""
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho $1\ncat\n")
    program.chmod(0o755)
    file = tmp_path / "b.svg"
    monkeypatch.setenv("PATH", "")
    assert "needs Graphviz" in rpms("graph", "--out", str(file)).err
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert rpms("graph", "--condition", "A", "--out", str(file)).code == 0
    text = file.read_text()
    assert text.startswith("-Tsvg\ndigraph {") and '"prompt_build" -> "llm_call"' in text
    assert '"scf" [color=' in text and '"llm_call" [color=' not in text


def test_rules_are_checked_and_shown(rpms: Rpms) -> None:
    done = rpms("rules", "check")
    assert (done.code, done.err) == (0, "")
    problems = {line.split()[0]: line.split()[-1] for line in done.out.splitlines()}
    assert {problems[world] for world in ("alfworld", "scienceworld", "telecom")} == {"0"}
    for goal_type in GOAL_TYPES:
        shown = rpms("rules", "show", "--type", goal_type, "--about", "mug").out
        assert "[RULES - CRITICAL, Always Follow]" in shown
        assert "mug is usually at: " in shown
    for family in ("F1", "F2", "F3", "F4"):
        shown = rpms("rules", "show", "--env", "scienceworld", "--type", family).out
        assert f"[RULES - Tier 2: Domain ({family}_" in shown
        assert f"O{family[1:]}-PROC-001: Canonical procedure:" in shown


@pytest.mark.engine
def test_rules_of_ones_own(rpms: Rpms, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    own = ("--rules", str(tmp_path))
    checked = rpms("rules", "check", *own)
    heads, _, counts = (line.split() for line in checked.out.splitlines()[-3:])
    assert checked.code == 0 and counts[0] == "alfworld" and "mine" in heads
    words = ("rules", "show", "--type", "pick_and_place_simple")
    shown = rpms(*words, *own, "--without-rule", "domain").out
    assert "=== mine ===\n  [L-001] Sing." in shown and "Domain Knowledge" not in shown
    play = ("run", "--condition", "B", "--prompts", "--max-steps", "1", *own)
    assert "[L-001] Sing." in rpms(*play).out
    assert "[L-001] Sing." not in rpms(*play, "--set", "without_rules=mine").out
    file = tmp_path / "mine.yaml"
    file.write_text("tier: mine\nrules:\n  - {id: U-FAIL-001, text: Sing., for: [juggle]}")
    refused = rpms("rules", "check", *own)
    for problem in ("the id is used 2 times", "unknown goal type 'juggle'"):
        assert f"{file}:3: U-FAIL-001: {problem}" in refused.out and refused.code == 2


@pytest.mark.engine
def test_models_that_talk_nonsense_or_refuse(rpms: Rpms, openai_server: OpenAIServer) -> None:
    openai_server.plays("Bla bla bla.", "", "I would rather not.")
    words = ("run", "--model", "openai:m", "--base-url", openai_server.url, "--condition", "B")
    done = rpms(*words, "--json", "--max-steps", "5")
    result = json.loads(done.out)
    assert done.code == 0 and result["failure_mode"] == "format"
    assert result["format_errors"] == result["steps"] == 5
    assert (result["prompt_tokens"], result["output_tokens"]) == (500, 35)
    assert len(openai_server.requests) == 5
    openai_server.plays(Answer(status=401, error="invalid key"))
    done = rpms(*words)
    shown = " ".join(done.out.split())
    assert " failed model_error after 0 steps, " in shown and "invalid key" in shown
    assert done.code == 2 and done.err.count("\n") == 1
    assert "the episode ended in a model error: " in done.err and "invalid key" in done.err
    plain = rpms(*words, "--json")
    assert json.loads(plain.out)["failure_mode"] == "model_error" and plain.code == 2


@pytest.mark.engine
def test_a_server_that_is_not_there_is_named(rpms: Rpms, tmp_path: Path) -> None:
    """By its address, less the password in it."""
    few = ("--limit", "1", "--workers", "0", "--out")
    server = ("--model", "openai:any", "--base-url", "http://me:hide-and-seek@127.0.0.1:9/v1")
    answer = "no reply from http://***@127.0.0.1:9/v1/chat/completions; check the address, and that"
    for words in (
        ["run"], ["eval", "--conditions", "A", *few, tmp_path], ["learn", *few, tmp_path / "m"],
    ):  # fmt: skip
        done = rpms(*words, *server)
        assert done.code == 2 and answer in done.err.splitlines()[-1]
        assert "hide-and-seek" not in done.out + done.err


def test_conditions_in_small_letters(rpms: Rpms, tmp_path: Path) -> None:
    assert RunContext.for_condition("b") == RunContext.for_condition("B")
    assert RunContext().under(" b+Verify ").name == "B+verify"
    assert list(as_arms("a, b+verify")) == ["A", "B+verify"]
    assert parse_arm("d")[0] == "D"
    plan = Plan(arms={"mine": {"condition": "b+verify"}})
    assert plan_arms(plan.arms, RunContext())["mine"].context.name == "B+verify"
    first = write_run(tmp_path / "1", {"A": [True] * 3, "D scf=off": [True] * 3},
                      split="generated_seen")  # fmt: skip
    words = ("export", first, "--conditions", "d scf=OFF")
    assert rpms(*words, "--out", tmp_path / "x.jsonl").code == 0
