"""Training samples for a small model: our own prompts, and the decisions of the procedure.

    python examples/tuned/samples.py 300 samples.jsonl --memory memory.jsonl

Plays generated homes under A, B, C and D in turn. The expert is what the guard would offer first;
while it searches with memory on, it goes where such things were found before. One turn in eight is
a random action that nothing is learned from, so that recovering from mistakes is. One JSON line per
decision of a won episode: ``prompt`` (chat messages) and ``reply``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from typing import Any

from rpms.envs import Task, get_environment
from rpms.graph import build_graph
from rpms.nodes.context import RunContext
from rpms.nodes.manual import load_manual
from rpms.nodes.reset_env import make_reset_env
from rpms.nodes.state import EpisodeInput, EpisodeState
from rpms.rules.conditions import Situation
from rpms.rules.procedure import serving_actions

ENV, SPLIT, MISTAKES, STEPS = "alfworld", "generated_seen", 0.12, 45
NOTHING = {"prompt_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "replayed": False}


class Expert:
    """Stands in for the model in one episode and notes what it was asked and said."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tried: dict[str, list[str]] = {}
        self.samples: list[dict[str, Any]] = []

    def __call__(self, state: EpisodeState) -> EpisodeState:
        """The stage ``llm_call``."""
        tried = self.tried.setdefault(json.dumps(state["belief"], sort_keys=True), [])
        action, reason = self._choose(state, tried)
        text = f"Thought: {reason[0].upper()}{reason[1:]}.\nAction: {action}"
        if state["history"] and self.rng.random() < MISTAKES:
            action = self._mistake(state)
            text = f"Action: {action}"
        else:
            self.samples.append({"prompt": state["prompt"], "reply": text})
        tried.append(action)
        return EpisodeState(reply=text, usage=NOTHING, action="")  # type: ignore[typeddict-item]

    def _choose(self, state: EpisodeState, tried: Sequence[str]) -> tuple[str, str]:
        belief, step = state["belief"], state["sub_goal"]
        for vain in (tried, ()):
            now = Situation(load_manual(ENV), state["goal"], step, belief, vain)
            if choices := serving_actions(now):
                break
        else:
            return "look", "nothing else is left to do"
        for recall in state.get("recalls", []):
            wanted = recall["entry"].get("object") == step["target"] and not recall["dropped_by"]
            if wanted and choices[0]["action"].startswith("go to "):
                place = re.match(r"[a-z]+ \d+", recall["advice"]["places"][0])
                if place and f"go to {place[0]}" not in tried and place[0] != belief["location"]:
                    return f"go to {place[0]}", f"{step['target']} was found in such places before"
        return choices[0]["action"], choices[0]["reason"]

    def _mistake(self, state: EpisodeState) -> str:
        belief = state["belief"]
        place = self.rng.choice(belief["places"])
        things = [*belief["last_seen"], *belief["holding"], f"{state['goal']['object']} 1"]
        thing = self.rng.choice(things)
        return self.rng.choice(
            [f"go to {place}", f"go to {place}", f"open {place}", f"take {thing} from {place}",
             f"put {thing} in/on {place}", f"heat {thing} with microwave 1", "use desklamp 1",
             f"cool {thing} with fridge 1", f"clean {thing} with sinkbasin 1"]
        )  # fmt: skip


def play(task: Task, condition: str, memory: str, rng: random.Random) -> list[dict[str, Any]]:
    """The samples of one episode; none if it was lost."""
    expert = Expert(rng)
    stages: dict[str, Any] = {"llm_call": expert, "reset_env": make_reset_env(lambda _: task)}
    context = RunContext.for_condition(condition, memory_file=memory, max_steps=STEPS)
    asked = EpisodeInput(env=ENV, split=SPLIT, task=task["id"])
    result = build_graph(nodes=stages).invoke(asked, context=context)
    return expert.samples if result["success"] else []


def main() -> None:
    """Write the samples of N homes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("homes", type=int)
    parser.add_argument("out")
    parser.add_argument("--memory", default="", help="snapshot for C and D; else the shipped one")
    options = parser.parse_args()
    rng, kept = random.Random(1), 0
    with open(options.out, "w", encoding="utf-8") as out:
        for number, task in enumerate(get_environment(ENV).tasks(SPLIT, options.homes)):
            for sample in play(task, "ABCD"[number % 4], options.memory, rng):
                out.write(json.dumps(sample) + "\n")
                kept += 1
    print(f"{options.out}: {kept} decisions")


if __name__ == "__main__":
    main()
