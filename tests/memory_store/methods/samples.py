"""Episodes and requests for the tests of memory methods: one by hand, others really played."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rpms import RunContext, run_episode
from rpms.envs import get_environment
from rpms.envs.manuals import load_commands
from rpms.memory_store.grounding import GroundingContext
from rpms.memory_store.methods import Learned, MemoryMethod, Origin, RecallRequest, Writer
from rpms.vocabulary.turn import EpisodeRecord
from tests.openai_server import OpenAIServer

ENV = get_environment("alfworld")
HOME = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, "
    "a countertop 1, a desk 1, a fridge 1, a microwave 1, and a shelf 1."
)
TURNS = [
    ("go to desk 1", "On the desk 1, you see a mug 1."),
    ("take mug 1 from fridge 1", "Nothing happens."),
    ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
    ("go to microwave 1", "The microwave 1 is closed."),
    ("heat mug 1 with microwave 1", "You heat the mug 1 using the microwave 1."),
    ("go to cabinet 1", "The cabinet 1 is closed."),
    ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing."),
    ("put mug 1 in/on cabinet 1", "You put the mug 1 in/on the cabinet 1."),
]


def record(
    goal: str = "put a hot mug in cabinet.",
    *,
    success: bool = True,
    task: str = "one",
    turns: Sequence[tuple[str, str]] = TURNS,
) -> EpisodeRecord:
    return EpisodeRecord(
        env="alfworld", split="generated_seen", task=task, goal=goal,
        first_observation=f"{HOME}\n\nYour task is to: {goal}", success=success,
        score=float(success),
        history=[
            {"action": action, "observation": seen, "failed": seen == "Nothing happens."}
            for action, seen in turns
        ],
    )  # fmt: skip


@cache
def played(count: int = 6) -> list[EpisodeRecord]:
    """Generated homes under Rules-only, by the built-in planner; every third cut short."""
    records = []
    for number, task in enumerate(ENV.tasks("generated_seen", count)):
        context = RunContext.for_condition("B", max_steps=3 if number % 3 == 2 else 40)
        out = run_episode(number, split="generated_seen", context=context)
        known = {"env": "alfworld", "task": task["id"], "goal": task["goal"]}
        records.append(EpisodeRecord(**{**out, **known}))  # type: ignore[typeddict-item]
    return records


def request(
    goal: str = "put a hot mug in cabinet.",
    cross_trial_memory: dict[str, Any] | None = None,
    **settings: Any,
) -> RecallRequest:
    parsed = ENV.parse_goal(goal)
    belief = ENV.first_belief(HOME)
    now = GroundingContext(
        ENV, load_commands("alfworld"), parsed, ENV.sub_goal(parsed, belief, []), belief
    )
    return RecallRequest("alfworld", now, RunContext(**settings), cross_trial_memory or {})


def frozen(method: MemoryMethod, learned: Learned, folder: Path) -> str:
    """The learned memory on disk."""
    file = folder / f"m.{method.name}.jsonl"
    method.save(file, "alfworld", learned, Origin(["a test"], ["sim"], 1, "openai:writer"))
    return str(file)


def writer(server: OpenAIServer, method: str) -> Writer:
    return Writer("alfworld", context(server), method)


def context(server: OpenAIServer, **settings: Any) -> RunContext:
    return RunContext(model="openai:writer", base_url=server.url, **settings)


def prompts_sent(server: OpenAIServer) -> list[str]:
    """The prompts that the server was sent."""
    return [json.dumps(request["messages"], ensure_ascii=False) for request in server.requests]


def prompts_of(
    task: int, context: RunContext, cross_trial_memory: dict[str, Any] | None = None
) -> list[Any]:
    """Every prompt of a real episode with that memory, and its recalls."""
    from rpms.graph import build_graph

    episode: Any = {
        "split": "generated_unseen",
        "task": task,
        "cross_trial_memory": cross_trial_memory or {},
    }
    stream = build_graph().stream(episode, context=context, stream_mode="updates")
    prompts, recalls = list[Any](), list[Any]()
    for update in stream:
        recalls = update.get("memory_selection", {}).get("recalls", recalls)
        if built := update.get("prompt_build"):
            prompts.append(("\n".join(m["content"] for m in built["prompt"]), recalls))
    return prompts
