"""Every line of memory, at every step of whole games, in names of the home that is played.

Official games where they are given, else generated ones; pytest's summary says which.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.base import Task
from rpms.envs.manuals import load_manual
from rpms.nodes.arbitration import arbitration
from rpms.nodes.goal_retrieval import goal_retrieval
from rpms.nodes.memory_selection import memory_selection
from rpms.nodes.rule_assembly import rule_assembly
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import Blocks, knowledge_blocks, tokens
from rpms.prompts.examples import NEW_TASK
from rpms.rules import Manual, match_action
from rpms.rules.predicates import Predicate, parse_predicate
from rpms.rules.wording import need
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.context import MEMORY_TOKENS, RunContext
from rpms.vocabulary.output import with_article
from rpms.vocabulary.recall import Recall, surviving
from rpms.vocabulary.turn import Turn
from tests.scripted_episode import under

ENV, MANUAL = get_environment("alfworld"), load_manual("alfworld")
GAMES = 24
GOLDEN = Path(__file__).parent / "golden"
DETOURS = 0.35
NAME = re.compile(r"\b((?!of |confidence |worked in )[a-z]+ \d+)\b(?! of \d| more)")


def sentences(manual: Manual = MANUAL) -> Iterator[str]:
    """Every sentence of the manual, and every action as it is printed with all that it needs."""
    for rule in [*manual.universal.rules, *manual.domain.rules, *manual.environment.rules]:
        yield re.escape(rule.text)
    for action in manual.actions:
        blanks = {name: f"<{name}>" for name in action.parameters}
        needs = [need(predicate, blanks, manual.facts) for predicate in action.needs]
        if len(needs) > 1:
            yield re.escape("; ".join(needs))
        yield from (re.escape(text) for text in (action.critical, action.text) if text)
    yield from (re.escape(rule.id) for _, rules in manual.tiers for rule in rules)
    yield from (re.escape(rule.id) for rule in manual.actions)


def words_of(condition: Predicate, names: Mapping[str, str]) -> str:
    """A need in words; that of another kind of thing names the kind, and no impossible change."""
    if condition.name == "kind":
        thing, kind = (names.get(argument, argument) for argument in condition.arguments)
        return f"{with_article(kind)} in place of {thing}"
    return need(condition, names, MANUAL.facts)


def learned(recall: Recall) -> set[str]:
    """The needs that an entry's own conditions come to, in the names of its printed action."""
    entry = recall["entry"]
    texts = entry.get("violated") or entry.get("preconditions", [])
    matched = match_action(MANUAL, recall["advice"]["printed"][0])
    names = matched[1] if matched else {}
    return {words_of(parse_predicate(text), names) for text in texts}


def states(game: AlfworldGame, file: Path, rng: random.Random) -> Iterator[EpisodeState]:
    """A game on the way of its stored solution, with detours and refused actions."""
    spec = Task(env="alfworld", split="g", index=0, id=file.parent.name, goal="", source=str(file))
    first = game.reset(spec)
    goal = ENV.parse_goal(first.rpartition("Your task is to: ")[2])
    belief, history = ENV.first_belief(first), list[Turn]()
    script = [ENV.read_action(step) for step in json.loads(file.read_text())["walkthrough"]]
    while True:
        yield EpisodeState(
            env="alfworld", goal=goal, belief=belief, history=list(history),
            sub_goal=ENV.sub_goal(goal, belief, history),
        )  # fmt: skip
        if not script:
            return
        if rng.random() < DETOURS and len(history) < 40:
            place = rng.choice(belief["places"])
            action = rng.choice([f"go to {place}", f"open {place}", "use desklamp 1", script[-1]])
        else:
            action = script.pop(0)
        outcome = game.step(action)
        failed = ENV.failed(outcome.observation)
        belief = ENV.update_belief(belief, action, outcome.observation)
        history.append(
            Turn(step=len(history) + 1, thought="", action=action, reply="", failed=failed,
                 observation=outcome.observation)
        )  # fmt: skip
        if outcome.done:
            return


def blocks(state: EpisodeState, condition: str) -> tuple[EpisodeState, Blocks]:
    context = RunContext.for_condition(condition)
    now = under(state, context)
    now |= EpisodeState(ineffective=[], played_in={})
    now |= rule_assembly(now)
    now |= goal_retrieval(now, Runtime())
    for stage in (scf, *([arbitration] if context.rules else []), memory_selection):
        now |= stage(now)
    return now, knowledge_blocks(knowledge_of(now))


@pytest.mark.engine
def test_memory_speaks_of_this_home_and_this_goal(official_games: list[Path]) -> None:
    """0 lines with a thing or place that is not here, or about a thing the goal does not name."""
    seen = [file for file in official_games if "valid_seen" in file.parts] or official_games
    game, rng, lines, steps = AlfworldGame(), random.Random(0), 0, 0
    taught = re.compile("|".join(set(sentences())))
    for file in seen[:: max(1, len(seen) // GAMES)]:
        for state in states(game, file, rng):
            steps += 1
            belief, goal = state["belief"], state["goal"]
            known = {*belief["places"], *belief["holding"], *belief["last_seen"]}
            mine = {goal["object"], goal["destination"]}
            for condition in "CD":
                now, text = blocks(state, condition)
                assert tokens([text.memory]) <= MEMORY_TOKENS
                for name in NAME.findall(text.memory):
                    assert name in known, (text.memory, name)
                    assert name in belief["places"] or kind_of(name) in mine, (text.memory, name)
                shown = surviving(now["recalls"])
                for recall in shown:
                    assert all(action in text.memory for action in recall["advice"]["actions"])
                lines += len(shown)
                if condition == "C":
                    assert not taught.search("\n".join(text)), text
                    # Rules and memory share their words; what C says is what it noticed itself.
                    for recall in shown:
                        if recall["entry"]["type"] in ("failure", "schema"):
                            assert {*recall["advice"]["needs"]} <= learned(recall), text
    assert lines > steps / 2, (lines, steps)


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*C-*.txt")), ids=lambda file: file.stem)
def test_memory_alone_brings_no_sentence_of_the_manual(file: Path) -> None:
    """Over every golden prompt of C, in both worlds: the blocks after the worked example.

    What the world itself says (a door is closed) is no phrase of ours.
    """
    world = "scienceworld" if file.stem.startswith("scienceworld") else "alfworld"
    task = file.read_text(encoding="utf-8").partition(NEW_TASK)[2]
    added = [part for part in task.split("\n\n") if part.startswith("[")]
    taught = re.search("|".join(sentences(load_manual(world))), "\n".join(added))
    assert len(added) >= 2 and taught is None, taught
