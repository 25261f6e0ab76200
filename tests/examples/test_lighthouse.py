"""A world that RPMS has never heard of, under everything that RPMS does."""

from __future__ import annotations

import json
import os
import random
import shutil
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
    get_environment,
    load_manual,
    run_episode,
)
from rpms.nodes.manual import check_manual
from rpms.nodes.prompt_examples import load_example
from tests.examples.conftest import Shell

ROOT = Path(__file__).resolve().parents[2]
NAME = "examples.lighthouse.world:WORLD"
WORLD = get_environment(NAME)
MANUAL = load_manual(NAME)
TASKS = WORLD.tasks("rocks")


@cache
def solution(index: int) -> list[str]:
    """The procedure by itself, which the guard offers and the control takes."""
    context = RunContext.for_condition("E", model="first")
    result = run_episode(index, env=NAME, context=context)
    assert result["success"] and result["invalid_actions"] == 0
    return [turn["action"] for turn in result["history"]]


@pytest.mark.parametrize("condition", "ABCDE")
@pytest.mark.parametrize("index", [0, 1, 2])
def test_every_condition_plays_every_goal(index: int, condition: str) -> None:
    replies = [f"Action: {action}" for action in solution(index)]
    context = RunContext.for_condition(condition)
    result = run_episode(
        index, env=NAME, context=context, model=FakeListChatModel(responses=replies)
    )
    assert result["success"] and result["steps"] == len(replies)
    assert result["condition"] == condition and result["goal"]["type"] == WORLD.goal_types()[index]


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
    things = [*belief["holding"], *belief["last_seen"]] or ["oil can 1"]
    names = {
        parameter: rng.choice(things if parameter == "object" else belief["places"])
        for parameter in rule.parameters
    }
    if rng.random() < 0.6 and belief["location"]:
        names |= {key: belief["location"] for key in names if key in ("place", "device")}
    return rule.syntax.format(**names)


@pytest.mark.parametrize("seed", range(6))
def test_the_rules_say_what_the_simulator_does(seed: int) -> None:
    """Random play: what the manual denies is refused, what it grants works, in the end it wins."""
    rng, game, task = random.Random(seed), WORLD.open_game(), TASKS[seed]
    belief = WORLD.first_belief(game.reset(task))
    verdicts = {"holds": 0, "fails": 0, "unknown": 0}
    for _ in range(1500):
        action = some_action(rng, belief)
        verdict = check_action(MANUAL, action, belief).verdict
        outcome = game.step(action)
        refused = WORLD.failed(outcome.observation)
        if verdict != "unknown":
            assert refused is (verdict == "fails"), (action, belief, outcome)
        verdicts[verdict] += 1
        after = WORLD.update_belief(belief, action, outcome.observation)
        assert not refused or after == belief
        belief = after
        if outcome.won:
            break
    assert verdicts["holds"] and verdicts["fails"]


def test_a_refusal_is_explained_in_this_world_s_own_words() -> None:
    actions = solution(0)
    early = actions.index("close lamp 1")
    replies = [f"Action: {action}" for action in [*actions[:early], "light lamp 1", "look"]]
    context = RunContext.for_condition("B", max_steps=len(replies))
    prompts: list[str] = []

    class Listening(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):  # type: ignore[no-untyped-def]
            prompts.append("\n".join(message.text for message in messages))
            return super()._call(messages, *args, **kwargs)

    result = run_episode(0, env=NAME, context=context, model=Listening(responses=replies))
    assert result["history"][-2]["observation"] == "Nothing happens."
    assert "'light lamp 1' was refused: lamp 1 is filled and closed." in prompts[-1]


def test_what_a_world_does_not_have_is_one_line() -> None:
    with pytest.raises(RpmsError, match="unknown split 'train'; the lighthouse has rocks"):
        WORLD.tasks("train")
    with pytest.raises(RpmsError, match=r"no goal 'paint the door\.'"):
        WORLD.parse_goal("paint the door.")


def test_the_built_in_planner_plays_it_somehow() -> None:
    """It was not made for this world; what matters is that it neither fails nor stops a run."""
    result = run_episode(0, env=NAME, context=RunContext(max_steps=8))
    assert result["failure_mode"] in (None, "timeout", "format") and not result["error"]


def test_installed_it_has_a_name_and_its_own_files(tmp_path: Path) -> None:
    """As somebody's package: copied away from here, found by its entry point, in workers too."""
    away = tmp_path / "their-site"
    shutil.copytree(ROOT / "examples" / "lighthouse", away / "lighthouse")
    (away / "rpms").symlink_to(ROOT / "rpms")
    info = away / "lighthouse_world-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lighthouse-world\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rpms.worlds]\nlighthouse = lighthouse.world:WORLD\n")
    rules = away / "lighthouse" / "rules" / "domain.yaml"
    rules.write_text(rules.read_text().replace("The horn sounds only", "Their horn sounds only"))
    folder = tmp_path / "empty"
    folder.mkdir()

    def rpms(words: str) -> str:
        program = "from rpms.commands.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, *words.split()], cwd=folder, text=True, timeout=500,
            env={**os.environ, "PYTHONPATH": str(away)}, stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip

    worlds = json.loads(rpms("worlds --json"))
    assert [world["name"] for world in worlds] == ["alfworld", "scienceworld", "lighthouse"]
    assert worlds[2]["splits"] == ["rocks", "practice"]
    assert worlds[2]["learning_split"] == "practice"
    words = "--env lighthouse --conditions D,E --model first --limit 3 --workers 1 --out r"
    assert "D 0/3, E 3/3" in rpms(f"eval {words}")
    assert json.loads((folder / "r" / "manifest.json").read_text())["env"] == "lighthouse"
    shown = rpms("rules show --env lighthouse --type sound_horn")
    assert "Their horn sounds only while the boiler is lit." in shown


def test_a_world_with_parts_missing_is_told_in_one_line_each(tmp_path: Path, shell: Shell) -> None:
    """A prompt file, ``idle``, ``serves``: found by the check; what a run needs, by the run."""
    world = tmp_path / "work" / "mine"
    shutil.copytree(ROOT / "examples" / "lighthouse", world)
    system, example = world / "prompts" / "system.md", world / "prompts/examples/sound_horn.json"
    system.unlink()
    for command in ("run --model first", "eval --out runs/e --conditions A --limit 1",
                    "learn --out m.jsonl --limit 1"):  # fmt: skip
        done = shell(f"rpms {command} --env mine.world:WORLD", world.parent)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert f"{system} is missing; write into it what the agent is told first" in done.err
    assert {path.name for path in world.parent.iterdir()} == {"mine"}
    example.unlink()
    domain = world / "rules" / "domain.yaml"
    text = domain.read_text(encoding="utf-8").replace("idle: look\n", "")
    domain.write_text(text.replace("\n  find_object:", "\n  fnid_object:"), encoding="utf-8")
    done = shell("rpms rules check --env mine.world:WORLD", world.parent)
    assert done.code == 2 and "4 problems" in done.err
    for finding in (f"{system}:1: prompts: missing; write into it what",
                 f"{example}:1: prompts: missing; write a solved task of 'sound_horn'",
                 f"{domain}:1: idle: missing; name one that can always be done",
                 "serves: nothing serves find_object; list under each what does"):  # fmt: skip
        assert finding in done.out
