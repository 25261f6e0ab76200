"""What a step costs besides the model: all stages on, memory loaded, a model without latency.

The same actions are played three times: through the whole agent, by our engine alone and (a few
of them) by stock TextWorld. LangGraph's own share is measured with the same graph and stages that
do nothing, the chat model interface by asking the same model outside of the graph. Processor time
is compared, which a busy machine disturbs least, and what is compared takes turns. What each stage
takes where it runs is measured in a run of its own: looking on costs something too.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig

from rpms.envs import Task, get_environment
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.alfworld.stock import missing_stock, start_stock
from rpms.graph.build import STAGES, RpmsGraph, build_graph
from rpms.nodes.context import RunContext
from rpms.nodes.llm_call import chat_messages
from rpms.nodes.reset_env import make_reset_env
from rpms.nodes.stage import Stage
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message

STOCK_STEPS = 5


class Script(BaseChatModel):
    """Says its lines in order, at once."""

    lines: list[str]
    said: int = 0

    @property
    def _llm_type(self) -> str:
        return "script"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        text = f"Thought: I look around.\nAction: {self.lines[self.said]}"
        self.said += 1
        usage = UsageMetadata(input_tokens=1, output_tokens=1, total_tokens=2)
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(text, usage_metadata=usage))]
        )

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages)


class Watched(Stage):
    """A stage whose processor time is added up, with what it calls: engine, chat model."""

    def __init__(self, stage: Stage, spent: dict[str, float]) -> None:
        """``spent`` has the seconds by stage."""
        self.name, self._stage, self._spent = stage.name, stage, spent

    async def ainvoke(
        self, input: EpisodeState, config: RunnableConfig | None = None, **_: Any
    ) -> EpisodeState:
        """The stage's own update."""
        began = time.process_time()
        update = await self._stage.ainvoke(input, config)
        self._spent[self.name] = self._spent.get(self.name, 0.0) + time.process_time() - began
        return update


def bench_stages(episodes: int = 4, steps: int = 40) -> dict[str, float]:
    """Milliseconds of processor time per step that each stage takes where it runs."""
    tasks, walks = _played(episodes, steps)
    spent: dict[str, float] = {}
    context = RunContext(max_steps=steps)
    asyncio.run(_episode(tasks[0], walks[0], context))  # loads rules, memory and templates
    for task, walk in zip(tasks, walks, strict=True):
        asyncio.run(_episode(task, walk, context, spent))
    return {name: seconds * 1000 / (episodes * steps) for name, seconds in spent.items()}


def bench_pipeline(episodes: int = 4, steps: int = 40) -> dict[str, float]:
    """Milliseconds of processor time per step, and what they are to each other.

    Returns:
        ``engine_ms`` (ours), ``stock_ms``, ``pipeline_ms`` (everything but the engine), of which
        ``langgraph_ms`` is LangGraph moving from stage to stage and ``own_ms`` the rest:
        ``interface_ms``, LangChain's way to a model that answers at once, and our stages;
        ``to_langgraph``, ``to_engine``, ``own_to_engine`` and ``to_stock`` are ratios. What
        concerns stock TextWorld is left out where it is not installed.
    """
    tasks, walks = _played(episodes, steps)
    engine = _engine(tasks, walks) / (episodes * steps)
    spent = asyncio.run(_in_turns(tasks, walks, steps))
    whole, moving, interface = (seconds / (episodes * steps) for seconds in spent)
    pipeline = whole - engine
    beside: dict[str, float] = {}
    if not missing_stock():
        stock = _stock(tasks[0], walks[0][:STOCK_STEPS])
        beside = {"stock_ms": stock * 1000, "to_stock": pipeline / stock}
    return beside | {
        "engine_ms": engine * 1000,
        "pipeline_ms": pipeline * 1000,
        "langgraph_ms": moving * 1000,
        "own_ms": (pipeline - moving) * 1000,
        "interface_ms": interface * 1000,
        "to_langgraph": pipeline / moving,
        "to_engine": pipeline / engine,
        "own_to_engine": (pipeline - moving) / engine,
    }


def _played(episodes: int, steps: int) -> tuple[list[Task], list[list[str]]]:
    """Generated homes, and what is done in each."""
    if min(episodes, steps) < 1:
        raise RpmsError("bench: needs at least one episode and one step")
    tasks = get_environment("alfworld").tasks("generated_unseen", episodes)[:episodes]
    return tasks, [_walk(task, steps) for task in tasks]


def _walk(task: Task, steps: int) -> list[str]:
    """Admissible actions that do not end the game, chosen with a fixed seed."""
    rng, game, env = random.Random(task["id"]), AlfworldGame(), get_environment("alfworld")
    game.reset(task)
    walk: list[str] = []
    while len(walk) < steps:
        action = env.read_action(rng.choice(game.admissible()))
        if game.step(action).done:
            game.reset(task)
            walk.clear()
        else:
            walk.append(action)
    game.close()
    return walk


def _engine(tasks: Sequence[Task], walks: Sequence[list[str]]) -> float:
    game, spent = AlfworldGame(), 0.0
    for task, walk in zip(tasks, walks, strict=True):
        game.reset(task)
        began = time.process_time()
        for action in walk:
            game.step(action)
        spent += time.process_time() - began
    game.close()
    return spent


def _stock(task: Task, walk: Sequence[str]) -> float:
    """Seconds per step of TextWorld's own environment, which wants its own wording."""
    stock = start_stock(Path(task["source"]))
    state = stock.reset()
    began = time.process_time()
    for _ in walk:
        state, _, _ = stock.step(sorted(state["admissible_commands"])[0])
    spent = time.process_time() - began
    stock.close()
    return spent / len(walk)


async def _in_turns(
    tasks: Sequence[Task], walks: Sequence[list[str]], steps: int
) -> tuple[float, float, float]:
    """Seconds of the whole agent, of LangGraph alone and of the chat model interface alone."""
    context, empty = RunContext(max_steps=steps), _empty(steps)
    await _episode(tasks[0], walks[0], context)  # loads rules, memory and templates
    await _pass(empty)
    whole = moving = interface = 0.0
    for task, walk in zip(tasks, walks, strict=True):
        spent, prompt = await _episode(task, walk, context)
        whole += spent
        moving += await _pass(empty)
        interface += await _ask(walk, prompt)
    return whole, moving, interface


async def _episode(
    task: Task, walk: list[str], context: RunContext, by_stage: dict[str, float] | None = None
) -> tuple[float, list[Message]]:
    """Everything after the game has started (starting it is not a step), and the last prompt."""
    model = Script(lines=walk)
    first = {"reset_env": make_reset_env(partial(_this, task))}
    graph = build_graph(first, model=model)
    if by_stage is not None:
        own = {name: graph.builder.nodes[name].runnable for name in STAGES[1:]}
        watched = {name: Watched(cast(Stage, stage), by_stage) for name, stage in own.items()}
        graph = build_graph({**first, **watched})
    asked: Any = {"env": task["env"], "split": task["split"], "task": task["id"]}
    began, prompt = 0.0, list[Message]()
    async for update in graph.astream(asked, context=context, stream_mode="updates"):
        if "reset_env" in update:
            began = time.process_time()
        elif "prompt_build" in update:
            prompt = update["prompt_build"]["prompt"]
    spent = time.process_time() - began
    if model.said != len(walk):
        raise RpmsError(f"bench: {task['id']} ended after {model.said} steps")
    return spent, prompt


async def _ask(walk: list[str], prompt: list[Message]) -> float:
    """Seconds that a model without latency needs for the prompts of an episode, by the last one.

    Every step has added two messages to it.
    """
    model, messages = Script(lines=walk), chat_messages(prompt)
    began = time.process_time()
    for left in reversed(range(len(walk))):
        await model.ainvoke(messages[: len(messages) - 2 * left])
    return time.process_time() - began


def _this(task: Task, state: Any) -> Task:
    return task


def _empty(steps: int) -> RpmsGraph:
    """The same graph with stages that do nothing, that many times."""

    async def reset_env(state: Any) -> Any:
        return {"steps": 0, "done": False}

    async def nothing(state: Any) -> Any:
        return {"done": False}

    async def env_step(state: Any) -> Any:
        return {"steps": state["steps"] + 1, "done": state["steps"] + 1 >= steps}

    stages: dict[str, Any] = dict.fromkeys(STAGES, nothing)
    return build_graph(nodes={**stages, "reset_env": reset_env, "env_step": env_step})


async def _pass(empty: RpmsGraph) -> float:
    """Seconds that LangGraph needs to pass through all its stages."""
    began = time.process_time()
    async for _ in empty.astream({}, context=RunContext(), stream_mode="updates"):
        pass
    return time.process_time() - began
