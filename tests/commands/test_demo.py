"""``rpms demo``: the story has every mechanism in it, and leaves one folder."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path

import pytest

from rpms import RunContext, stream_episode
from rpms.commands import story
from rpms.commands.guarded_story import plan, planted
from rpms.envs import ToolGame, get_environment
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.step_analysis import analysis_of
from rpms.nodes.reset_env import find_task
from rpms.vocabulary.output import open_console
from tests.command_line import Rpms
from tests.commands.conftest import ROOT
from tests.evals.sample_runs import write_run

FEW = ("--tasks", "1", "--conditions", "A,D+verify")


@pytest.mark.engine
def test_it_tells_every_mechanism_and_leaves_one_folder(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(story, "sleep", None)  # nobody waits where a program reads
    for words in ((), ("--open",)):  # again: the same folder, played anew
        done = rpms("demo", *FEW, "--out", tmp_path, *words)
        assert (done.code, done.err) == (0, "")
        assert [folder.name for folder in tmp_path.iterdir()] == ["demo-alfworld"]
    labels = re.findall(
        r"^(vetoed|recalled|SCF dropped|rules dropped|rejected|won) ", done.out, re.M
    )
    assert {*labels} == {"vetoed", "recalled", "SCF dropped", "rules dropped", "rejected", "won"}
    steps = int(re.findall(r"^won +after (\d+) steps", done.out, re.M)[0])
    assert len(re.findall(r"^action ", done.out, re.M)) == steps <= 12
    shown = " ".join(done.out.split())
    # What was dropped, vetoed or rejected says why; the rule stands in the manual by this id.
    assert len(re.findall(r"^  because ", done.out, re.M)) == len(labels) - labels.count(
        "recalled"
    ) - labels.count("won")
    refusal = re.search(r"rejected Nothing happens\. because \[([\w-]+)\] it needs ", shown)
    assert refusal and refusal[1] in get_environment("alfworld").rules.joinpath(
        "environment.yaml"
    ).read_text(encoding="utf-8")
    (excerpt,) = re.findall(
        r"^```text\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.S | re.M
    )
    for line in excerpt.splitlines():
        assert line == "..." or " ".join(line.split()) in shown
    page = tmp_path / "demo-alfworld/report.html"
    assert opened == [page.as_uri()] and page.as_uri() in done.out and page.is_file()
    assert "no evidence for the method" in shown
    run = read_report(page.parent).run
    assert len(run.manifest.tasks) == 1 and run.complete
    won = run.played("D+verify")[0]
    rejected = analysis_of(run, won).invalid_actions
    assert re.search(rf"^D\+verify +1 +{won.steps} +{rejected}$", done.out, re.M)


def test_in_scienceworld_something_is_achieved(rpms: Rpms, tmp_path: Path) -> None:
    """In the task that the world itself chooses; the table has its condition."""
    choice = get_environment("scienceworld").demo
    done = rpms("demo", "--env", "scienceworld", "--conditions", choice.condition,
                "--out", tmp_path)  # fmt: skip
    assert (done.code, done.err) == (0, "")
    for label in ("recalled", "SCF dropped", "rejected", "vetoed", "won"):
        assert re.search(rf"^{label} ", done.out, re.M), label
    assert "it may need: unknown" not in done.out, "a reason is no need"
    (won,) = read_report(tmp_path / "demo-scienceworld").run.played(choice.condition)
    assert won.success and f"after {won.steps} steps" in done.out


def test_where_tools_are_called_the_guard_stops_what_was_planted(
    rpms: Rpms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story, "sleep", None)
    choice = get_environment("telecom").demo
    done = rpms("demo", "--env", "telecom")
    assert (done.code, done.err) == (0, "")
    shown = " ".join(done.out.split())
    stopped = re.findall(r"call (\w+)\([^)]*\) stopped \[([\w-]+)\] it needs ", shown)
    first, *others = choice.planted  # the model insists on the first of them, in vain
    planted = [each.tool for each in (first, first, *others)]
    assert [tool for tool, _ in stopped] == planted and len({*planted}) == 2
    assert "no answer has shown that yet policy Data Refueling" in shown
    assert "to be at most 2.0, and amount is 5.0" in shown
    assert shown.endswith("solved according to the simulator stopped 4 calls against the rules")


def test_without_the_guard_the_planted_calls_would_be_carried_out() -> None:
    """The script is no straw man: the simulator itself takes each of them."""
    world = get_environment("telecom")
    game = world.open_game()
    assert isinstance(game, ToolGame)
    game.reset(find_task(world.name, world.demo.split, str(world.demo.story)))
    tools = {tool.name: tool for tool in game.tools()}
    script = [*planted(plan(world, world.demo, [*tools.values()]), world.demo.planted)]
    refused = [call for call in script if world.failed(tools[call.tool].invoke(call.arguments))]
    assert len(script) > 12 and refused == []


def test_a_run_of_another_model_is_left_alone(rpms: Rpms, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "demo-alfworld", {"A": [True]}, model="openai:m")
    before = {file: file.read_bytes() for file in folder.rglob("*.jsonl")}
    done = rpms("demo", *FEW, "--out", tmp_path, "--json")
    assert done.code == 2 and done.err.count("\n") == 1
    assert before and {file: file.read_bytes() for file in before} == before


@pytest.mark.engine
def test_in_a_terminal_it_comes_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(story, "sleep", pauses.append)
    context = RunContext(max_steps=1).under("B")
    console = open_console(force_terminal=True, quiet=True)
    teller = story.Story(console, "alfworld", context)
    step, result = stream_episode(0, context=context)
    teller.print_step(step)  # type: ignore[arg-type]
    assert len(pauses) == 3 and 0 < sum(pauses) < 2  # where it is, the action, the answer
    teller.end(result)  # type: ignore[arg-type]
    assert len(pauses) == 4
