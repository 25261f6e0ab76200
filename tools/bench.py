"""``python -m tools.bench [--only NAME]``: what things cost, as ratios measured in one run.

Bare times mean nothing on another machine; what is compared takes turns in the same process, so
that a busy moment touches both. Processor time is counted wherever nothing is waited for.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import convert_to_messages
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from rpms.envs import Task, get_environment
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.stock import missing_stock, start_stock
from rpms.evals.expert import NOTHING
from rpms.graph import build_graph, run_episode
from rpms.graph.build import STAGES
from rpms.guard.policy import veto
from rpms.models import open_model
from rpms.models.local import LOCAL_TIMEOUT_S, missing
from rpms.nodes.action_arbitration import situation
from rpms.nodes.context_budget import estimate
from rpms.nodes.prompt_build import prompt_build
from rpms.nodes.reset_env import make_reset_env
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import ALL_TURNS, Layout, RunContext
from rpms.vocabulary.errors import RpmsError

WORLD = get_environment("alfworld")
CONTEXT = RunContext.for_condition("D")
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class Measured(NamedTuple):
    """Figures of one kind; each is printed with its ratio to the first."""

    title: str
    unit: str
    figures: dict[str, float]

    def __str__(self) -> str:
        """One line for each figure."""
        first = next(iter(self.figures.values()))
        lines = [
            f"  {name:<44}{value:>14,.3f} {self.unit:<7}{value / first:>9.2f}x"
            for name, value in self.figures.items()
        ]
        return "\n".join([self.title, *lines])


Spent = defaultdict[str, float]


@contextmanager
def spending(spent: Spent, name: str) -> Iterator[None]:
    """Add the processor milliseconds of a block."""
    began = time.process_time()
    yield
    spent[name] += (time.process_time() - began) * 1000


def bench_engine(games: int = 4, steps: int = 10) -> Iterator[Measured]:
    """Load, reset, step and a whole episode of both engines, same games and same commands."""
    if absent := missing_stock():
        raise RpmsError(f"{' and '.join(absent)} not installed; run 'make textworld'")
    spent, rng = Spent(float), random.Random(0)
    files = [Path(task["source"]) for task in WORLD.tasks("generated_seen", games)]
    # Imports, and the rules that games share, are paid once per process.
    ours, stock = GameEngine(), cast(Any, start_stock(files[0]))
    ours.load(files[0])
    for file in files:
        commands: list[str] = []
        for name, engine in (("ours", ours), ("stock", stock)):
            with spending(spent, f"load {name}"):
                engine.load(str(file))
            with spending(spent, f"reset {name}"):
                state = engine.reset()
            for number in range(steps):
                if engine is ours:
                    commands.append(rng.choice(state.admissible_commands))
                with spending(spent, f"step {name}"):
                    state = engine.step(commands[number])
            with spending(spent, f"episode {name}"):
                engine.load(str(file))
                engine.reset()
                for command in ours.walkthrough or ["look"]:
                    engine.step(command)
    for part in ("load", "reset", "step", "episode"):
        count = len(files) * (steps if part == "step" else 1)
        figures = {name: spent[f"{part} {name}"] / count for name in ("ours", "stock")}
        yield Measured(f"engine: one {part}", "ms", figures)


class Script(GenericFakeChatModel):
    """Says its lines in order, at once and in place."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(*args, **kwargs)


def bench_pipeline(games: int = 4, steps: int = 40) -> Iterator[Measured]:
    """The same actions through the whole agent and by the engine alone; each stage where it runs.

    What no stage takes is LangGraph's own share.
    """
    spent = Spent(float)
    tasks = WORLD.tasks("generated_unseen", games)[:games]
    asyncio.run(_play_all(tasks, steps, spent))
    each = {name: value / (len(tasks) * steps) for name, value in spent.items()}
    engine, agent = each.pop("engine"), each.pop("agent")
    figures = {
        "agent without model and engine": agent - engine,
        "LangGraph between the stages": agent - sum(each.values()),
        "our engine, playing alone": engine,
    }
    yield Measured("pipeline: one step, and each stage with what it calls", "ms", figures | each)


async def _play_all(tasks: Sequence[Task], steps: int, spent: Spent) -> None:
    game = AlfworldGame()
    walks = [_walk(game, task, steps) for task in tasks]
    await _play(tasks[0], walks[0], Spent(float))  # loads rules, memory and templates
    for task, walk in zip(tasks, walks, strict=True):
        game.reset(task)
        with spending(spent, "engine"):
            for action in walk:
                game.step(action)
        await _play(task, walk, spent)


def _walk(game: AlfworldGame, task: Task, steps: int) -> list[str]:
    """Admissible actions that do not end the game, chosen with a fixed seed."""
    rng, walk = random.Random(task["id"]), list[str]()
    game.reset(task)
    while len(walk) < steps:
        walk.append(WORLD.read_action(rng.choice(game.admissible())))
        if game.step(walk[-1]).done:
            game.reset(task)
            walk.clear()
    return walk


async def _play(task: Task, walk: list[str], spent: Spent) -> None:
    """All that comes after the game has started: starting it is no step."""
    nodes: dict[str, Any] = {"reset_env": make_reset_env(lambda state: task)}
    model = Script(messages=iter([f"Thought: I look.\nAction: {action}" for action in walk]))
    stages = build_graph(nodes, model=model).builder.nodes
    watched = {name: partial(_watched, name, stages[name].runnable, spent) for name in STAGES[1:]}
    graph, began, steps = build_graph({**nodes, **watched}), 0.0, 0
    start: Any = {"env": task["env"], "split": task["split"], "task": task["id"]}
    context = CONTEXT.with_(max_steps=len(walk))
    async for update in graph.astream(start, context=context, stream_mode="updates"):
        steps += "env_step" in update
        began = time.process_time() if "reset_env" in update else began
    spent["agent"] += (time.process_time() - began) * 1000
    if steps != len(walk):
        raise RpmsError(f"{task['id']} ended after {steps} steps")


async def _watched(
    name: str, stage: Any, spent: Spent, state: EpisodeState, config: RunnableConfig
) -> Any:
    with spending(spent, name):
        return await stage.ainvoke(state, config)


def bench_prefix(
    steps: int = 12, model: str = "local:smollm2", prompts: dict[str, Any] | None = None
) -> Iterator[Measured]:
    """One episode's prompts in both layouts, put to a real llama.cpp one after the other."""
    if absent := missing():
        raise RpmsError(f"{' and '.join(absent)} not installed; run 'make local'")
    # A reply of one token: this measures reading.
    chat = open_model(model, max_tokens=1, timeout_s=LOCAL_TIMEOUT_S)
    evaluated = {}
    for layout, series in (prompts or episode_prompts(steps)).items():
        read = cached = 0
        for number, prompt in enumerate(series):
            reply = chat.invoke(convert_to_messages(prompt))
            usage = cast(Any, reply.usage_metadata)
            if number:  # before the first one nothing could be kept
                read += usage["input_tokens"]
                cached += usage["input_token_details"].get("cache_read") or 0
        evaluated[f"{layout} ({cached / read:.0%} kept)"] = (read - cached) / (len(series) - 1)
    yield Measured("prefix: tokens evaluated per step after the first", "tokens", evaluated)


def episode_prompts(
    steps: int, setting: str = "layout", values: Any = LAYOUTS, env: str = "", **nodes: Any
) -> dict[Any, list[Any]]:
    """The prompts of one episode for every value of a setting: the same states, told otherwise."""
    prompts: dict[Any, list[Any]] = {value: [] for value in values}

    def keeping(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        for value in values:
            other = runtime.override(context=runtime.context.with_(**{setting: value}))
            prompts[value].append(prompt_build(state, other)["prompt"])
        return prompt_build(state, runtime)

    graph = build_graph(nodes={"prompt_build": keeping, **nodes})
    run_episode(9, env=env or WORLD.name, context=CONTEXT.with_(max_steps=steps), graph=graph)
    return prompts


def bench_history(steps: Sequence[int] = (1, 10, 25, 50, 100)) -> Iterator[Measured]:
    """How long prompts become with all turns and with the last three, in one episode per world."""
    for env in ("alfworld", "scienceworld"):
        by_turns = episode_prompts(steps[-1], "history", (ALL_TURNS, 3), env, llm_call=wander)
        for turns, prompts in by_turns.items():
            sizes = {f"step {n}": float(sum(map(estimate, prompts[n - 1]))) for n in steps}
            yield Measured(f"history={turns}: a prompt of D in {env}", "tokens", sizes)


def wander(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """A player that gets nowhere: any action that the rules have nothing against."""
    now, rng = situation(state, runtime.context), random.Random(state["steps"])
    known = [*now.belief["places"], *now.belief["visible"], *now.belief["last_seen"]]
    action = ""
    while not action or veto(now, action):
        rule = rng.choice(now.manual.actions)
        action = rule.syntax.format(**{name: rng.choice(known) for name in rule.parameters})
    return EpisodeState(reply=f"Action: {action}", usage=NOTHING, action="")


def main(words: Sequence[str] | None = None) -> int:
    """Print every part, or the one that is asked for; what cannot be measured is said."""
    parts: dict[str, Callable[[], Iterator[Measured]]] = {
        "engine": bench_engine,
        "pipeline": bench_pipeline,
        "prefix": bench_prefix,
        "history": bench_history,
    }
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("--only", choices=parts, help="one part; else all")
    only = parser.parse_args(words).only
    for name in [only] if only else parts:
        try:
            for measured in parts[name]():
                print(measured, flush=True)
        except (RpmsError, ModuleNotFoundError) as error:
            print(f"{name}: left out, {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
