"""``rpms demo``: two episodes of one task as they happen, and one folder with both."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms import Demo, RunContext
from rpms.commands.demo import meaning
from rpms.commands.guarded_story import plan, planted
from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.envs.registry import find_task
from rpms.evals.analysis.report import read_report
from rpms.evals.records.run_folder import read_log
from rpms.models import SimPlanner, open_model, opening, weights
from rpms.vocabulary.output import quantity
from tests.command_line import Rpms
from tests.commands.conftest import Start
from tests.evals.sample_runs import analysis_of, write_run
from tests.openai_server import Answer, OpenAIServer, serving
from tools.reply_margins import least_margin

WITH_SIM = ("demo", "--model", "sim")
REJECTED = "open countertop 99"
# In nats; llama.cpp's code for other instructions of a processor moved the demo's margins by 0.1.
CLEAR = 0.1


@pytest.fixture
def choice(monkeypatch: pytest.MonkeyPatch) -> Demo:
    """A task in which the planner meets memory, filter and guard; the shown one suits its model."""
    world = get_environment("alfworld")
    changed = world.demo._replace(story=14)
    monkeypatch.setattr(type(world), "demo", changed)
    return changed


@pytest.fixture
def language_model(openai_server: OpenAIServer) -> Iterator[tuple[str, ...]]:
    """A server that repeats a rejected action without rules, and plans well enough with them."""
    planner = SimPlanner()

    def reply(request: dict[str, Any]) -> Answer:
        if "| needs " not in json.dumps(request["messages"]):
            return Answer(f"Action: {REJECTED}")
        return Answer(str(planner.invoke(request["messages"]).content))

    openai_server.plays_by(reply)
    yield ("demo", "--model", "openai:m", "--base-url", openai_server.url)


def parts(text: str) -> list[str]:
    """What stands before the first condition, then each condition."""
    return re.split(r"^Condition .*$", text, flags=re.M)


@pytest.mark.engine
def test_it_tells_what_memory_filter_and_guard_did_and_leaves_one_folder(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: Demo
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for words in ((), ("--open",)):  # again: the same folder, played anew
        done = rpms(*WITH_SIM, "--out", tmp_path, *words)
        assert (done.code, done.err) == (0, "")
        assert [folder.name for folder in tmp_path.iterdir()] == ["demo-alfworld"]
    head, _, text = parts(done.out)
    assert find_task("alfworld", choice.split, "14")["goal"] in head and "(chosen)" in head
    for condition in choice.conditions:
        assert meaning(RunContext.for_condition(condition)) in " ".join(head.split())
    memory = ("in the prompt", "dropped by the state filter (SCF)", "dropped by a rule")
    outcomes = "|".join(f"memory +{re.escape(outcome)}:" for outcome in memory)
    found = re.findall(rf"^(vetoed|rejected|success|{outcomes}) ", text, re.M)
    labels = [" ".join(label.split()).rstrip(":") for label in found]
    assert {*labels} >= {"vetoed", "success", *(f"memory {each}" for each in memory[:2])}
    steps = int(re.findall(r"^success +after (\d+) steps", text, re.M)[0])
    assert len(re.findall(r"^action ", text, re.M)) == steps <= 12
    # What was dropped, vetoed or rejected says why; the rule stands in the manual by this id.
    assert len(re.findall(r"^  because ", text, re.M)) == len(labels) - labels.count(
        "memory in the prompt"
    ) - labels.count("success")
    shown = " ".join(text.split())
    cited = re.findall(r"(?:rejected|vetoed) .*?because \[([\w-]+)\]", shown)
    manual = load_manual("alfworld")
    assert cited and {*cited} <= {rule.id for rule in (*manual.actions, *manual.universal.rules)}
    page = tmp_path / "demo-alfworld/report.html"
    assert opened == [page.as_uri()] and page.as_uri() in done.out and page.is_file()
    assert "no evidence for the method" in shown and "rpms eval" not in shown
    run = read_report(page.parent).run
    assert run.conditions == [*choice.conditions] and run.complete
    (won,) = run.played("D+verify")
    rejected = analysis_of(run, won).invalid_actions
    words = quantity(rejected, "action")
    assert f"D+verify won after {won.steps} steps; {words} rejected" in shown


@pytest.mark.engine
def test_without_rules_it_is_stopped_when_the_failure_is_plain_and_with_them_it_wins(
    rpms: Rpms, tmp_path: Path, choice: Demo, language_model: tuple[str, ...]
) -> None:
    done = rpms(*language_model, "--set", "max_steps=25", "--out", tmp_path)
    assert (done.code, done.err) == (0, "")
    _, first, second = (" ".join(part.split()) for part in parts(done.out))
    assert first.count(f"action {REJECTED}") == first.count("rejected Nothing happens.") == 3
    assert f"stopped '{REJECTED}' was rejected 3 times" in first
    assert "because" not in first, "its model does not read why"
    assert "sub-goal" not in first and "sub-goal" in second
    assert re.search(r"vetoed .+ because \[[\w-]+\] it needs ", second)
    assert "A stopped after 3 steps; 3 actions rejected (2 repeats)" in second
    vetoed = len(re.findall(r"^vetoed ", done.out, re.M))
    end = re.search(r"D\+verify won after \d+ steps; .*?, (\d+) proposals vetoed", second)
    assert end and int(end[1]) == vetoed > 1
    assert "This task was chosen" in second and " the model wins " not in second
    # The stopped episode is a whole one of three steps, and the page has them.
    run = read_report(tmp_path / "demo-alfworld").run
    (stopped,), (won,) = run.played("A"), run.played("D+verify")
    assert run.complete and run.manifest.conditions["A"]["max_steps"] == 3
    assert (stopped.steps, stopped.failure_mode, won.success) == (3, "timeout", True)
    log = read_log(run.log_file(stopped))
    assert log and [step["action"] for step in log["steps"]] == [REJECTED] * 3


@pytest.mark.engine
@pytest.mark.usefixtures("shipped_model")
def test_the_shipped_model_loses_and_wins(rpms: Rpms, tmp_path: Path) -> None:
    done = rpms("demo", "--out", tmp_path)
    assert done.code == 0, done.err
    run = read_report(tmp_path / "demo-alfworld").run
    baseline, guarded = (run.played(name)[0] for name in ("A", "D+verify"))
    assert not baseline.success and guarded.success and guarded.output_tokens > 0
    shown = _plain(done.out)
    assert re.search(r"A not won in \d+ steps; \d+ actions rejected", shown)
    results = weights.results_of("local:smollm2-alfworld")
    assert results and f"{results.won['D+verify']:.0%} under D+verify" in shown
    # Everybody sees this episode, also where another processor rounds differently.
    model = open_model(get_environment("alfworld").demo.model, max_tokens=96, timeout_s=600)
    model.cache = False
    for episode in (baseline, guarded):
        log = read_log(run.log_file(episode))
        least = log and least_margin(log, model)
        assert least and least.nats > CLEAR


def _plain(text: str) -> str:
    """The words alone: lines are broken at another width, and a step takes another time.

    No time is printed for a reply that another test has asked for before.
    """
    return " ".join(re.sub(r"; \d+\.\d s\b", "", text).split())


def test_without_its_packages_it_says_what_to_do(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, model = importlib.util.find_spec, get_environment("alfworld").demo.model
    monkeypatch.setattr(
        opening, "find_spec", lambda name: None if name == "xllamacpp" else find(name)
    )
    done = rpms("demo", "--out", tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"model '{model}' is not ready: run 'make local'" in done.err
    assert done.err.endswith("rpms demo --model sim\n") and not [*tmp_path.iterdir()]


def test_it_can_be_interrupted(start: Start, tmp_path: Path) -> None:
    with serving() as server:
        server.plays(Answer(wait=True))
        words = ("demo", "--model", "openai:m", "--base-url", server.url, "--out", tmp_path)
        process = start(*words)
        assert process.stdout and process.stdout.readline()
        while not server.requests:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "") and not [*tmp_path.iterdir()]


def test_in_scienceworld_something_is_achieved(rpms: Rpms, tmp_path: Path) -> None:
    """In the task that the world itself chooses, by the planner."""
    choice = get_environment("scienceworld").demo
    done = rpms("demo", "--env", "scienceworld", "--out", tmp_path)
    assert (done.code, done.err) == (0, "")
    memory = ("memory +in the prompt:", r"memory +dropped by the state filter \(SCF\):")
    for label in (*memory, "rejected", "vetoed", "success"):
        assert re.search(rf"^{label} ", done.out, re.M), label
    assert "it may need: unknown" not in done.out, "a reason is no need"
    run = read_report(tmp_path / "demo-scienceworld").run
    assert run.conditions == [*choice.conditions] == ["E"]
    (won,) = run.played("E")
    assert won.success and f"after {won.steps} steps" in done.out


def test_where_tools_are_called_the_guard_stops_what_was_planted(rpms: Rpms) -> None:
    choice = get_environment("telecom").demo
    done = rpms("demo", "--env", "telecom")
    assert (done.code, done.err) == (0, "")
    shown = " ".join(done.out.split())
    stopped = re.findall(r"vetoed (\w+)\([^)]*\) because \[([\w-]+)\] it needs ", shown)
    first, *others = choice.planted  # the model insists on the first of them, in vain
    planted = [each.tool for each in (first, first, *others)]
    assert [tool for tool, _ in stopped] == planted and len({*planted}) == 2
    assert "no answer has shown that yet policy Data Refueling" in shown
    assert "to be at most 2.0, and amount is 5.0" in shown
    assert shown.endswith("solved according to the simulator stopped 4 calls against the rules")
    refused = rpms("demo", "--env", "telecom", "--model", "sim")
    assert refused.code == 2 and "runs a script behind the guard" in refused.err


def test_without_the_guard_the_planted_calls_would_be_carried_out() -> None:
    """The script is no straw man: the simulator itself takes each of them."""
    world = get_environment("telecom")
    game = world.open_game()
    game.reset(find_task(world.name, world.demo.split, str(world.demo.story)))
    tools = {tool.name: tool for tool in game.tools()}
    script = [*planted(plan(world, world.demo, [*tools.values()]), world.demo.planted)]
    refused = [call for call in script if world.failed(tools[call.tool].invoke(call.arguments))]
    assert len(script) > 12 and refused == []


def test_another_run_is_left_alone(rpms: Rpms, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "demo-alfworld", {"A": [True]}, model="sim")
    before = {file: file.read_bytes() for file in folder.rglob("*.jsonl")}
    done = rpms(*WITH_SIM, "--out", tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1) and str(folder) in done.err
    assert before and {file: file.read_bytes() for file in before} == before
