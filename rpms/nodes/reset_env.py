"""Stage 0: resolve the task, start the environment, parse the goal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

from langgraph.runtime import Runtime

from rpms.envs import Task, environment_names, get_environment
from rpms.envs import live as episodes
from rpms.nodes.context import RunContext, settings
from rpms.nodes.env_step import broken
from rpms.nodes.shown import check_shown
from rpms.nodes.stage import Stage
from rpms.nodes.state import EpisodeState, afresh
from rpms.rules import ActiveRules
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.turn import Usage

# Growing a generated split to a mistyped index of ten digits would fill the disk.
DIGITS = 4


def reset_env(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read env, split and task; return a fresh episode with o_0, g and empty counters."""
    return _reset(resolve(state), settings(runtime.context))


def make_reset_env(find: Callable[[EpisodeState], Task] | None = None) -> Stage:
    """The stage for plain runs and for an event loop with many episodes in flight.

    ``find`` says which task a state asks for; whoever plays a whole split knows it without
    listing the split again for every episode.
    """

    def known(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        return _reset((find or resolve)(state), runtime.context)

    async def aknown(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        # Listing a split reads files: not on the event loop.
        task = find(state) if find else await asyncio.to_thread(resolve, state)
        fresh = _fresh(runtime.context, task)
        try:
            opened = _opened(fresh, await episodes.astart(fresh["episode_id"], task))
            if runtime.context.action_list:
                opened["commands"] = await episodes.acommands(fresh["episode_id"], task, [])
            return opened
        except EnvironmentFault as error:
            return _broken(fresh, error)

    return Stage("reset_env", known, aknown)


def _reset(task: Task, context: RunContext) -> EpisodeState:
    fresh = _fresh(context, task)
    try:
        opened = _opened(fresh, episodes.start(fresh["episode_id"], task))
        if context.action_list:
            opened["commands"] = episodes.commands(fresh["episode_id"], task, [])
        return opened
    except EnvironmentFault as error:
        return _broken(fresh, error)


def resolve(state: EpisodeState) -> Task:
    """The task a state asks for, with the first environment, split and task as defaults."""
    env = get_environment(state.get("env") or environment_names()[0])
    return find_task(env.name, state.get("split") or env.splits()[0], str(state.get("task") or 0))


def _opened(fresh: EpisodeState, observation: str) -> EpisodeState:
    return {**fresh, "first_observation": observation, "observation": observation}


def _broken(fresh: EpisodeState, fault: EnvironmentFault) -> EpisodeState:
    return {**fresh, **broken(fault, "reset_env")}


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
    wanted = task.strip()
    if wanted.isdecimal():
        tasks = get_environment(env).tasks(split)
        index = int(wanted) if len(wanted) <= DIGITS else 10**DIGITS
        if len(tasks) <= index < 10**DIGITS:
            # Generated splits grow on request: ask for as many as the index needs.
            tasks = get_environment(env).tasks(split, index + 1)
        if index < len(tasks):
            return tasks[index]
        raise RpmsError(f"split '{split}' has {len(tasks)} tasks; there is no task {wanted[:20]}")
    tasks = get_environment(env).tasks(split)
    found = [t for t in tasks if t["id"] == wanted] or [
        t for t in tasks if t["id"].endswith("/" + wanted)
    ]
    if not found:
        raise RpmsError(
            f"no task '{wanted}' in split '{split}' of {env}; list them with: "
            f"rpms tasks --env {env} --split {split}"
        )
    if len(found) > 1:
        raise RpmsError(f"'{wanted}' names {len(found)} tasks of '{split}'; give the whole id")
    return found[0]
