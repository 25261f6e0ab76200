"""Record the one-shot examples of the prompts with the real environments.

ALFWorld: two examples of each goal type (the second for protocols that show two), in generated
homes far outside the default splits, with a little searching and short thoughts. ScienceWorld: one
successful episode per family, by the built-in planner under condition B on train variations, long
enough to show the procedure and short enough for the prompt. Telecom: one per issue, by the
manual's policy on train tickets. Run it again after a change of the planner or the observations:

    python -m tools.record_examples [alfworld] [scienceworld] [telecom]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import ENVIRONMENT, AlfworldGame
from rpms.envs.alfworld.goals import GOAL_TYPES, LOOK, TRANSFORMS
from rpms.envs.alfworld.tasks import ensure_games
from rpms.envs.base import Task
from rpms.envs.manuals import load_manual
from rpms.graph import build_graph, run_episode
from rpms.nodes.prompt_build import reply_of
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import Message, Turn

FIRST, LAST = 600, 780
STEPS = range(7, 15)
SEARCHED = range(1, 4)
TOOLS = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin"}
# Environment -> split, settings, number of steps, and the most characters of observations.
RUNS: Mapping[str, tuple[str, RunContext, range, int]] = {
    "scienceworld": ("train_mini", RunContext.for_condition("B"), range(6, 31), 9000),
    "telecom": ("train", RunContext.for_condition("E", model="first"), range(12, 15), 4700),
}

Example = tuple[str, dict[str, Any]]


def main(worlds: Sequence[str]) -> None:
    """Write prompts/examples/<goal type>.json (and .2.json) of these environments, or of all."""
    for world in worlds or ("alfworld", *RUNS):
        folder = get_environment(world).prompts / "examples"
        folder.mkdir(exist_ok=True)
        examples = won_examples(world, *RUNS[world]) if world in RUNS else household_examples()
        for name, example in examples:
            text = json.dumps(example, indent=1)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            print(f"{name}: {len(example['messages']) // 2} steps")


def won_examples(
    name: str, split: str, context: RunContext, steps: range, characters: int
) -> Iterator[Example]:
    """The first short successful episode of each type without a rejected action."""
    world, graph = get_environment(name), build_graph()
    families = set(world.goal_types())
    for task in world.tasks(split):
        family = world.parse_goal(task["goal"])["type"]
        if family not in families:
            continue
        result = run_episode(task["id"], env=name, split=split, context=context, graph=graph)
        length = sum(len(turn["observation"]) for turn in result["history"])
        clean = result["success"] and not result["invalid_actions"]
        if clean and result["steps"] in steps and length <= characters:
            families.remove(family)
            messages = [Message(role="user", content=result["first_observation"])]
            for turn in result["history"]:
                messages.append(Message(role="assistant", content=reply_of(turn)))
                messages.append(Message(role="user", content=turn["observation"]))
            yield family, {"goal_type": family, "task": task["id"], "messages": messages}
    if families:
        raise SystemExit(f"no fitting episode for {', '.join(sorted(families))}")


def household_examples() -> Iterator[Example]:
    """Two homes for each goal type."""
    game, names = AlfworldGame(), {kind: [kind, f"{kind}.2"] for kind in GOAL_TYPES}
    for file in ensure_games("generated_seen", LAST)[FIRST:]:
        kind = file.parent.parent.name.split("-")[0]
        if names.get(kind):
            messages, fits = play(game, file)
            if fits:
                yield names[kind].pop(0), {"goal_type": kind, "messages": messages}
    if missing := [name for pair in names.values() for name in pair]:
        raise SystemExit(f"no fitting home for {', '.join(missing)}; widen FIRST..LAST")


def play(game: AlfworldGame, file: Path) -> tuple[list[Message], bool]:
    """Run one home; return the transcript, and True if its length and searches fit."""
    source = Task(env="alfworld", split="", index=0, id=file.parent.name, goal="", source=str(file))
    observation = game.reset(source)
    goal = ENVIRONMENT.parse_goal(observation.rpartition("Your task is to: ")[2])
    belief = ENVIRONMENT.first_belief(observation)
    messages = [Message(role="user", content=observation)]
    history: list[Turn] = []
    won = False
    while not won and len(history) < STEPS.stop:
        thought, action = decide(goal, belief, history)
        reply = f"Thought: {thought}\nAction: {action}" if thought else f"Action: {action}"
        outcome = game.step(action)
        observation, won = outcome.observation, outcome.won
        belief = ENVIRONMENT.update_belief(belief, action, observation)
        messages += [
            Message(role="assistant", content=reply),
            Message(role="user", content=observation),
        ]
        failed = ENVIRONMENT.failed(observation)
        history.append(
            Turn(step=len(history) + 1, thought=thought, action=action, observation=observation,
                 failed=failed, reply="")
        )  # fmt: skip
    searched = sum(turn["thought"].startswith("No ") for turn in history)
    return messages, won and len(history) in STEPS and searched in SEARCHED


def decide(goal: GoalSpec, belief: Belief, history: list[Turn]) -> tuple[str, str]:
    """The thought and action of the manual's procedure; thoughts only where the plan changes."""
    step = ENVIRONMENT.sub_goal(goal, belief, history)
    location, doors = belief["location"], belief["containers"]
    carried = belief["holding"][0] if belief["holding"] else ""
    if step["name"] in ("find_object", "find_lamp"):
        return _search(goal, belief, history, step["target"])
    if step["name"] == "take_object":
        thing, place = step["target"].split(" from ")
        if location != place:
            return f"I saw {thing} at {place}.", f"go to {place}"
        return f"Now I find {thing}. I take it.", f"take {thing} from {place}"
    if step["name"] == "use_lamp":
        lamp, place = step["target"].split(" at ")
        if location == place:
            return f"I hold {carried} and the {lamp} is here.", f"use {lamp}"
        return f"The {lamp} is at {place}.", f"go to {place}"
    if step["name"] == "place_object":
        place = next(p for p in belief["places"] if kind_of(p) == goal["destination"])
        if kind_of(location or "") != goal["destination"]:
            return f"Now I bring {carried} to {place}.", f"go to {place}"
        if doors.get(location or "") == "closed":
            return "", f"open {location}"
        return "", f"put {carried} in/on {location}"
    verb = step["name"].removesuffix("_object")
    tool = next(p for p in belief["places"] if kind_of(p) == TOOLS[verb])
    if location != tool:
        return f"Now I {verb} it with {tool}.", f"go to {tool}"
    return f"The {verb} action works with {carried} in my hand.", f"{verb} {carried} with {tool}"


def _search(goal: GoalSpec, belief: Belief, history: list[Turn], target: str) -> tuple[str, str]:
    location = belief["location"]
    if location and belief["containers"].get(location) == "closed":
        return f"The {location} is closed. I open it.", f"open {location}"
    lines = load_manual("alfworld").localities_of(target)
    likely = [place for line in lines for place in line.places] or ["desk", "sidetable", "dresser"]
    places = [p for p in belief["places"] if p not in belief["searched"]]
    places.sort(key=lambda p: (likely.index(kind_of(p)) if kind_of(p) in likely else 99, p))
    if not places:
        return "", "look"
    if not history:
        return f"{_plan(goal)} A {target} is often at {kind_of(places[0])}.", f"go to {places[0]}"
    return f"No {target} here. Next I check {places[0]}.", f"go to {places[0]}"


def _plan(goal: GoalSpec) -> str:
    if goal["type"] == LOOK:
        return f"I need to find a {goal['object']}, take it, and use the {goal['destination']}."
    change = f" {TRANSFORMS[goal['state']][1]} it," if goal["state"] else ""
    where = f"in/on {goal['destination']}"
    if goal["count"] == 2:
        return f"I need to find two of {goal['object']} and put them {where}, one by one."
    return f"I need to find a {goal['object']}, take it,{change} and put it {where}."


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", help="by default all")
    main(parser.parse_args().worlds)
