"""Stage 0: resolve the task, start the environment, parse the goal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast, get_args, get_origin, get_type_hints
from uuid import uuid4

from langgraph.runtime import Runtime
from typing_extensions import is_typeddict

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

# Given with the input, or by the stage that follows at once.
WRITTEN_ELSEWHERE = {"task", "carried", "sub_goal", "spec", "goal", "belief", "rules"}
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
    check_shown(task["env"], context)
    fresh = fresh_state(context, task)
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


def fresh_state(context: RunContext, spec: Task) -> EpisodeState:
    """Every key a later stage writes is set here, to what is empty of its type.

    A thread that is run a second time then starts clean instead of continuing the previous
    episode.
    """
    kinds = get_type_hints(EpisodeState)
    empty = {name: _empty(kind) for name, kind in kinds.items() if name not in WRITTEN_ELSEWHERE}
    begun = EpisodeState(
        env=spec["env"],
        split=spec["split"],
        episode_id=uuid4().hex,
        spec=spec,
        task_id=spec["id"],
        settings=context.plain,
        condition=context.condition,
        goal=get_environment(spec["env"]).parse_goal(spec["goal"]),
        belief=empty_belief(),
        rules=ActiveRules(universal=[], domain=[], environment=[], situation=[]),
        history=afresh([]),
        decisions=afresh([]),
    )
    return cast(EpisodeState, empty | begun)


def _empty(kind: Any) -> Any:
    if is_typeddict(kind):
        return {name: _empty(part) for name, part in get_type_hints(kind).items()}
    return None if type(None) in get_args(kind) else (get_origin(kind) or kind)()


def find_task(env: str, split: str, task: str) -> Task:
    """A task by id, by the end of its id (the trial), or by index within the split."""
    name = task.strip()
    by_index = name.isdecimal()
    index = int(name) if by_index and len(name) <= DIGITS else 10**DIGITS
    # Only as many as the index needs are listed; generated splits grow on request.
    tasks = get_environment(env).tasks(split, index + 1 if index < 10**DIGITS else None)
    if by_index:
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
