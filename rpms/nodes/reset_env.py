"""Stage 0: resolve the task, start the environment, parse the goal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

from langgraph.runtime import Runtime

from rpms.envs import Task, environment_names, get_environment
from rpms.envs import live as episodes
from rpms.nodes.env_step import broken
from rpms.nodes.prompt_examples import check_shown
from rpms.nodes.stage import Stage
from rpms.nodes.state import EpisodeState, afresh
from rpms.rules import ActiveRules
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.turn import Usage

# Growing a generated split to a mistyped index of ten digits would fill the disk.
DIGITS = 4


async def reset_env(
    state: EpisodeState,
    runtime: Runtime[RunContext],
    find: Callable[[EpisodeState], Task] | None = None,
) -> EpisodeState:
    """Read env, split and task; return a fresh episode with o_0, g and empty counters."""
    # Listing a split reads files: not on the event loop.
    task = find(state) if find else await asyncio.to_thread(resolve, state)
    context = settings(runtime.context)
    fresh = _fresh(context, task)
    try:
        observation = await episodes.astart(fresh["episode_id"], task)
        fresh |= {"first_observation": observation, "observation": observation}
        if context.action_list:
            fresh["commands"] = await episodes.acommands(fresh["episode_id"], task, [])
        return fresh
    except EnvironmentFault as fault:
        return {**fresh, **broken(fault, "reset_env")}


def make_reset_env(find: Callable[[EpisodeState], Task]) -> Stage:
    """The stage for whoever plays a whole split and knows which task a state asks for.

    The split is then not listed again for every episode.
    """

    async def known(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        return await reset_env(state, runtime, find)

    return Stage("reset_env", known)


def resolve(state: EpisodeState) -> Task:
    """The task a state asks for, with the first environment, split and task as defaults."""
    env = get_environment(state.get("env") or environment_names()[0])
    return find_task(env.name, state.get("split") or env.splits()[0], str(state.get("task") or 0))


def _fresh(context: RunContext, spec: Task) -> EpisodeState:
    """Every key a later stage writes is set here.

    A thread that is run a second time then starts clean instead of continuing the previous
    episode.
    """
    check_shown(spec["env"], context)
    return EpisodeState(
        env=spec["env"],
        split=spec["split"],
        episode_id=uuid4().hex,
        spec=spec,
        task_id=spec["id"],
        settings=context.plain,
        condition=context.condition,
        changes=[],
        goal=get_environment(spec["env"]).parse_goal(spec["goal"]),
        first_observation="",
        observation="",
        world=None,
        commands=[],
        belief=empty_belief(),
        rules=ActiveRules(universal=[], domain=[], environment=[], situation=[]),
        recalls=[],
        prompt=[],
        knowledge_tokens=0,
        dropped_turns=0,
        history=afresh([]),
        ineffective=[],
        played_in={},
        shortlist=[],
        decisions=afresh([]),
        asked_again=0,
        steps=0,
        invalid_actions=0,
        format_errors=0,
        prompt_tokens=0,
        output_tokens=0,
        cached_tokens=0,
        model_calls=0,
        cache_hits=0,
        capped_replies=0,
        success=False,
        score=0.0,
        failure_mode=None,
        error="",
        error_place=None,
        reply="",
        usage=Usage(prompt_tokens=0, cached_tokens=0, output_tokens=0, replayed=False),
        action="",
        done=False,
    )


def find_task(env: str, split: str, task: str) -> Task:
    """A task by id, by the end of its id (the trial), or by index within the split."""
    name = task.strip()
    tasks = get_environment(env).tasks(split)
    if name.isdecimal():
        index = int(name) if len(name) <= DIGITS else 10**DIGITS
        if len(tasks) <= index < 10**DIGITS:
            # Generated splits grow on request: ask for as many as the index needs.
            tasks = get_environment(env).tasks(split, index + 1)
        if index < len(tasks):
            return tasks[index]
        raise RpmsError(f"split '{split}' has {len(tasks)} tasks; there is no task {name[:20]}")
    matching = [t for t in tasks if t["id"] == name] or [
        t for t in tasks if t["id"].endswith(f"/{name}")
    ]
    if not matching:
        raise RpmsError(
            f"no task '{name}' in split '{split}' of {env}; list them with: "
            f"rpms tasks --env {env} --split {split}"
        )
    if len(matching) > 1:
        raise RpmsError(f"'{name}' names {len(matching)} tasks of '{split}'; give the whole id")
    return matching[0]
