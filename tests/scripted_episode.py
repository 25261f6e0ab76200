"""A scripted episode: the real graph and the real stages, with a recorded game underneath."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages

from rpms.envs import live
from rpms.envs.base import Outcome, Task
from rpms.graph import build_graph
from rpms.memory_store import parse_entry, write_snapshot
from rpms.nodes.state import EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext
from tests.openai_server import OpenAIServer
from tests.paper_entries import PAPER

TASK = Task(
    env="alfworld", split="scripted", index=0, id="heat/trial", goal="put a hot apple in fridge.",
    source="",
)  # fmt: skip
OPENING = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 2, a cabinet "
    "1, a countertop 1, a fridge 1, a microwave 1, and a sinkbasin 1.\n\n"
    "Your task is to: put a hot apple in fridge."
)
SCRIPT = [
    ("Thought: Apples are kept cold.\nAction: go to fridge 1", "The fridge 1 is closed."),
    (
        "Action: open fridge 1",
        "You open the fridge 1. The fridge 1 is open. In it, you see a lettuce 1, and a mug 1.",
    ),
    ("Action: take apple 1 from countertop 1", "Nothing happens."),
    ("I wonder where the apple is.", ""),
    ("Action: go to countertop 1", "On the countertop 1, you see a apple 1, and a knife 1."),
    (
        "Thought: There it is.\nAction: take apple 1 from countertop 1",
        "You pick up the apple 1 from the countertop 1.",
    ),
]
STEPS = len(SCRIPT) + 1

# What the paper's appendix has for ALFWorld, and more of each kind.
MEMORIES: list[dict[str, Any]] = [
    *PAPER[:3],
    {
        "id": "success_000010",
        "type": "success",
        "goal_signature": "pick_heat_then_place_in_recep:apple:hot:fridge",
        "state_signature": "holding=apple 1",
        "sub_goal_type": "transformed",
        "actions": ["go to microwave 1", "heat apple 1 with microwave 1"],
        "outcome": {"heat": "apple 1"},
        "success_count": 2,
    },
    {
        "id": "schema_000223",
        "type": "schema",
        "action_template": "heat {object} with microwave 1",
        "action_type": "heat",
        "preconditions": ["holding target object", "at heat tool location"],
        "effects": ["object heated", "still holding object"],
        "success_count": 4,
        "failure_count": 0,
        "confidence": 1.0,
    },
    {
        "id": "found_1",
        "type": "found",
        "place": "countertop",
        "looked": 5,
        "objects": {"apple": 2, "fork": 4},
    },
]


@pytest.fixture(scope="session")
def memory_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memories above, written by hand as a person might."""
    file = tmp_path_factory.mktemp("scripted") / "memory.jsonl"
    write_snapshot(file, "alfworld", [parse_entry(memory) for memory in MEMORIES])
    return file


def put_underneath(monkeypatch: pytest.MonkeyPatch, **calls: Callable[..., Any]) -> None:
    """Let these stand for the running games."""
    for name, call in calls.items():
        monkeypatch.setattr(live, name, call)


Script = list[tuple[str, str]]
Play = Callable[..., list[EpisodeState]]
# What was played once in this process: each script plays the same under the same settings.
_played: dict[str, list[EpisodeState]] = {}


@pytest.fixture
def play_script(monkeypatch: pytest.MonkeyPatch, memory_file: Path) -> Play:
    """Plays the script under a condition; returns the state after each prompt was built."""

    def play(
        condition: str,
        script: Script = SCRIPT,
        task: Task = TASK,
        opening: str = OPENING,
        **settings: Any,
    ) -> list[EpisodeState]:
        answers = iter([*(seen for _, seen in script if seen), "Nothing happens."])
        monkeypatch.setattr(import_module("rpms.nodes.reset_env"), "find_task", lambda *_: task)
        put_underneath(
            monkeypatch,
            start=lambda *_: opening,
            play=lambda *_: Outcome(next(answers), False, False, 0.0),
            finish=lambda *_: None,
        )
        key = repr((condition, script, task, opening, settings))
        if key not in _played:
            replies = [AIMessage(reply) for reply, _ in script] + [AIMessage("Action: look")]
            chosen = {"memory_file": str(memory_file), "theta": 0.0, **settings}
            context = RunContext.for_condition(condition, max_steps=len(script) + 1, **chosen)
            graph = build_graph(model=GenericFakeChatModel(messages=iter(replies)))
            states = graph.stream(
                {"env": task["env"], "task": 0}, context=context, stream_mode=["updates", "values"]
            )
            after_prompt, _played[key] = False, []
            for mode, part in states:
                if mode == "updates":
                    after_prompt = "prompt_build" in part
                elif after_prompt:
                    plain: Any = convert_to_openai_messages(part["prompt"])
                    _played[key].append({**part, "prompt": plain})
        return deepcopy(_played[key])

    return play


def under(state: EpisodeState, context: RunContext) -> EpisodeState:
    """The state of an episode with these settings."""
    return EpisodeState(**{**state, "settings": context.plain})


@pytest.fixture
def play_online(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, play_script: Play
) -> Callable[..., EpisodeOutput]:
    """An episode against the server."""
    play_script("A", script=[])  # puts the recorded game underneath
    put_underneath(monkeypatch, play=lambda *_: Outcome("Nothing happens.", False, False, 0.0))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def episode(max_steps: int = 2, model: str = "openai:odd", **settings: Any) -> EpisodeOutput:
        context = RunContext.for_condition(
            "A", model=model, base_url=openai_server.url, max_steps=max_steps, **settings
        )
        return build_graph().invoke({"task": 0}, context=context)

    return episode
