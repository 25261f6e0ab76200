"""RPMS as an Inspect task: the RPMS graph is the solver, and Inspect's model acts in it."""

from typing import Any

from inspect_ai import Task, task
from inspect_ai.agent import agent_bridge
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import rpms

MEANS = ("score", "steps", "invalid_actions", "format_errors")


@task
def episodes(
    condition: str = "D", env: str = "alfworld", split: str = "", tasks: int = 12, steps: int = 0
) -> Task:
    """Tasks of an environment under a condition: A, S, B, C, D, E, or with a guard D+verify."""
    world = rpms.get_environment(env)
    split = split or world.splits()[0]
    context = rpms.RunContext.for_condition(condition, max_steps=steps)
    return Task(
        dataset=[Sample(found["goal"], id=found["id"]) for found in world.tasks(split, tasks)],
        solver=episode(env, split, context.plain),
        scorer=success(),
    )


@solver
def episode(env: str, split: str, settings: dict[str, Any]) -> Solver:
    """One episode. Inspect's bridge answers the calls of the chat model named "inspect"."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        context = rpms.RunContext(**settings)
        model = ChatOpenAI(model="inspect", api_key=SecretStr("unused"))
        async with agent_bridge() as bridge:
            ended: Any = await rpms.arun_episode(
                str(state.sample_id), env=env, split=split, context=context, model=model
            )
        if ended["error"]:
            raise RuntimeError(ended["error"])
        state.messages, state.output = bridge.state.messages, bridge.state.output
        state.metadata |= {name: ended[name] for name in ("success", "failure_mode", *MEANS)}
        return state

    return solve


@scorer(metrics={"success": [accuracy(), stderr()], **{name: [mean()] for name in MEANS}})
def success() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        values = {name: float(state.metadata[name]) for name in ("success", *MEANS)}
        return Score(value=values, explanation=state.metadata["failure_mode"])

    return score
