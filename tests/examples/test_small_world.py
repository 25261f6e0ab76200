"""The world that ``rpms worlds new`` writes, under everything that RPMS does."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from rpms import (
    Belief,
    RpmsError,
    RunContext,
    check_action,
    environment_names,
    get_environment,
    load_manual,
    run_episode,
)
from rpms.prompts.examples import load_example
from rpms.rules.check import check_manual
from tests.examples.conftest import Shell

ROOT = Path(__file__).resolve().parents[2]
NAME = "rpms.commands.world_template.world:WORLD"
WORLD = get_environment(NAME)
MANUAL = load_manual(NAME)
TASKS = WORLD.tasks("play")


@cache
def solution(index: int) -> list[str]:
    """The procedure by itself, which the guard offers and the control takes."""
    context = RunContext.for_condition("E", model="first")
    result = run_episode(index, env=NAME, context=context)
    assert result["success"] and result["invalid_actions"] == 0
    return [turn["action"] for turn in result["history"]]


@pytest.mark.parametrize("condition", "ABCDE")
@pytest.mark.parametrize("index", [0, 1])
def test_every_condition_plays_every_goal(index: int, condition: str) -> None:
    replies = [f"Action: {action}" for action in solution(index)]
    context = RunContext.for_condition(condition)
    result = run_episode(
        index, env=NAME, context=context, model=FakeListChatModel(responses=replies)
    )
    assert result["success"] and result["steps"] == len(replies)
    assert result["condition"] == condition and result["goal"]["object"] == ("key", "torch")[index]


def test_the_procedure_solves_every_task() -> None:
    assert len(TASKS) == 30 and len({task["id"] for task in TASKS}) == 30
    assert all(solution(task["index"]) for task in TASKS[:12])


def test_the_manual_has_no_findings_and_an_example_for_every_type() -> None:
    assert check_manual(WORLD.rules, WORLD.goal_types(), WORLD.command_verbs()) == []
    for kind in WORLD.goal_types():
        messages = load_example(WORLD.prompts, kind)
        assert len(messages) % 2 == 1 and messages[-1]["role"] == "user"


def some_action(rng: random.Random, belief: Belief) -> str:
    rule = rng.choice(MANUAL.actions)
    things = [*belief["holding"], *belief["last_seen"]] or ["key 1"]
    names = {
        parameter: rng.choice(things if parameter == "object" else belief["places"])
        for parameter in rule.parameters
    }
    return rule.syntax.format(**names)


@pytest.mark.parametrize("seed", range(6))
def test_the_rules_say_what_the_simulator_does(seed: int) -> None:
    """Random play: what the manual denies is refused, and what it grants works."""
    rng, game, task = random.Random(seed), WORLD.open_game(), TASKS[seed]
    belief = WORLD.first_belief(game.reset(task))
    verdicts = {"kept": 0, "broken": 0, "open": 0}
    for _ in range(1500):
        action = some_action(rng, belief)
        verdict = check_action(MANUAL, action, belief).verdict
        outcome = game.step(action)
        refused = WORLD.failed(outcome.observation)
        if verdict != "open":
            assert refused is (verdict == "broken"), (action, belief, outcome)
        verdicts[verdict] += 1
        after = WORLD.update_belief(belief, action, outcome.observation)
        assert not refused or after == belief
        belief = after
        if outcome.won:
            break
    assert verdicts["kept"] and verdicts["broken"]


def test_a_refusal_is_explained_in_this_world_s_own_words() -> None:
    replies = ["Action: take key 1 from drawer 1", "Action: look"]
    context = RunContext.for_condition("B", max_steps=len(replies))
    prompts: list[str] = []

    class Listening(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):  # type: ignore[no-untyped-def]
            prompts.append("\n".join(message.text for message in messages))
            return super()._call(messages, *args, **kwargs)

    result = run_episode(0, env=NAME, context=context, model=Listening(responses=replies))
    assert result["history"][-2]["observation"] == "Nothing happens."
    assert (
        "'take key 1 from drawer 1' was rejected: it needs drawer 1 to be open, and drawer 1 is "
        "closed."
    ) in prompts[-1]


def test_what_a_world_does_not_have_is_one_line() -> None:
    with pytest.raises(RpmsError, match=r"unknown split 'train'; .* has play, practice"):
        WORLD.tasks("train")
    with pytest.raises(RpmsError, match=r"no goal 'paint the door\.'"):
        WORLD.parse_goal("paint the door.")


def test_the_built_in_planner_plays_it_somehow() -> None:
    """It was not made for this world; what matters is that it neither fails nor stops a run."""
    result = run_episode(0, env=NAME, context=RunContext(max_steps=8))
    assert result["failure_mode"] in (None, "timeout", "format") and not result["error"]


def test_installed_it_has_a_name_and_its_own_files(tmp_path: Path, shell: Shell) -> None:
    """As somebody's package: copied away from here, found by its entry point, in workers too."""
    away = tmp_path / "their-site"
    away.mkdir()
    shell("rpms worlds new kiosk", away)
    (away / "rpms").symlink_to(ROOT / "rpms")
    info = away / "kiosk_world-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kiosk-world\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rpms.worlds]\nkiosk = kiosk.world:WORLD\n")
    rules = away / "kiosk" / "rules" / "domain.yaml"
    rules.write_text(rules.read_text().replace("Nothing can be taken", "No thing can be taken"))
    folder = tmp_path / "empty"
    folder.mkdir()

    def rpms(words: str) -> str:
        program = "from rpms.commands.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, *words.split()], cwd=folder, text=True, timeout=500,
            env={**os.environ, "PYTHONPATH": str(away)}, stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip

    worlds = json.loads(rpms("worlds --json"))
    assert [world["name"] for world in worlds] == [*environment_names(), "kiosk"]
    assert worlds[-1]["splits"] == ["play", "practice"]
    assert worlds[-1]["learning_split"] == "practice"
    words = "--env kiosk --conditions D,E --model first --limit 3 --workers 1 --out r"
    assert "D 0/3, E 3/3" in rpms(f"eval {words}")
    assert json.loads((folder / "r" / "manifest.json").read_text())["env"] == "kiosk"
    shown = rpms("rules show --env kiosk --type fetch")
    assert "No thing can be taken from a place before it is open." in shown


def test_a_new_world_needs_a_name_that_is_free(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "mine").mkdir()
    for name, problem in (
        ("my-world", "'my-world' is not a Python module name; use letters, digits and '_'"),
        ("class", "'class' is not a Python module name"),
        ("mine", "'mine' already exists, here or installed; choose another name"),
        ("random", "'random' already exists"),
        ("alfworld", "'alfworld' already exists"),
    ):
        done = shell(f"rpms worlds new {name}", tmp_path)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert problem in done.err
    assert [*tmp_path.rglob("*")] == [tmp_path / "mine"]


EXAMPLE = "prompts/examples/fetch.json"
DOMAIN, ENVIRONMENT = "rules/domain.yaml", "rules/environment.yaml"
NOTHING = "domain.yaml:9: applicable: 'find_object' has no applicable action at step"
UNKNOWN = "is not known to hold of anything (names in places, holding, visible, last_seen:"
GUESSES = [
    ("prompts/system.md", None, "", "system.md:1: prompts: missing; write the system prompt into"),
    (EXAMPLE, None, "", "fetch.json:1: prompts: missing; write a solved task of 'fetch'"),
    (EXAMPLE, "messages", "turns", 'fetch.json:1: should be {"messages": [{'),
    (DOMAIN, "[unsearched(place)]", "[targeted(place)]", f"{NOTHING} 1 of task 0 of practice: "
     f"open: 'targeted(place)' {UNKNOWN} drawer 1, drawer 2, drawer 3, box 1, box 2, box 3)"),
    ("world.py", 'belief["places"] =', "nowhere =", f"{NOTHING} 1 of task 0 of practice: "
     f"open: 'unsearched(place)' {UNKNOWN} none)"),
    (ENVIRONMENT, "place(place), closed", "place(place), open", f"{NOTHING} 1 of task 0 of "
     "practice: open: 'open drawer 1' would not do: it needs drawer 1 to be open, and drawer 1 is "
     "closed"),
    ("world.py", 'name="find_object"', 'name="search"', "applicable: 'search' has no applicable "
     "action at step 1 of task 0 of practice: nothing is listed under the name that the world's "
     "sub_goal()"),
    ("world.py", "answer = self._view(rest)", "answer = 'Done.'", f"{NOTHING} 7 of task 0 of "
     "practice, after 'open box 3' was answered 'Done.': open: 'open drawer 1' would "
     "not do: it changed nothing before, and nothing has changed since"),
    ("world.py", "rest not in self.opened:", "not rest:", "update_belief: 'open drawer 1' was "
     "rejected at step 1 of task 0 of practice although every precondition of E-OPEN holds "
     "in the belief"),
    ("world.py", 'id=f"fetch-{first + index}"', "id=index", "tasks: the id 0 should be a text"),
    ("world.py", '"fetch:{goal[1]}::"', '"{goal[1]}"', "parse_goal: the signature 'key' should "
     "have the form type:object:state:destination"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "guess", "finding"), GUESSES)
def test_a_wrong_guess_is_told_by_the_check(
    file: str, text: str | None, guess: str, finding: str, tmp_path: Path, shell: Shell
) -> None:
    """What people who wrote a world by hand had to correct, each with its place and what to do."""
    shell("rpms worlds new kiosk", tmp_path)
    path = tmp_path / "kiosk" / file
    if text is None:
        path.unlink()
    else:
        assert text in path.read_text()
        path.write_text(path.read_text().replace(text, guess))
    done = shell("rpms rules check --env kiosk", tmp_path)
    assert done.code == 2 and finding in done.out + done.err


def test_without_its_prompt_a_world_is_not_played(tmp_path: Path, shell: Shell) -> None:
    shell("rpms worlds new kiosk", tmp_path)
    system = tmp_path / "kiosk" / "prompts" / "system.md"
    system.unlink()
    for command in ("run --model first", "eval --out runs/e --conditions A --limit 1",
                    "learn --out m.jsonl --limit 1"):  # fmt: skip
        done = shell(f"rpms {command} --env kiosk", tmp_path)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert f"{system} is missing; write the system prompt into it" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"kiosk"}
