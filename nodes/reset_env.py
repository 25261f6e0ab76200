"""Stage 0: resolve the task, start the environment, parse the goal."""

from __future__ import annotations

from uuid import uuid4

from langgraph.runtime import Runtime

from envs import Task, environment_names, get_environment
from envs import live as episodes
from nodes.context import RunContext, settings
from nodes.state import EpisodeState
from rules import ActiveRules
from vocabulary.belief import empty_belief
from vocabulary.errors import EnvironmentFault, RpmsError

# Growing a generated split to a mistyped index of ten digits would fill the disk.
DIGITS = 4


def reset_env(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read env, split and task; return a fresh episode with o_0, g and empty counters.

    Every key a later stage writes is set here, so that a thread that is run a second time
    starts clean instead of continuing the previous episode.
    """
    context = settings(runtime.context).checked()
    env = get_environment(state.get("env") or environment_names()[0])
    spec = find_task(env.name, state.get("split") or env.splits()[0], state.get("task") or "0")
    goal = env.parse_goal(spec["goal"])
    episode_id = uuid4().hex
    fault = observation = ""
    try:
        observation = episodes.start(episode_id, spec)
    except EnvironmentFault as error:
        fault = str(error)
    return EpisodeState(
        env=env.name,
        split=spec["split"],
        episode_id=episode_id,
        spec=spec,
        task_id=spec["id"],
        condition=context.condition,
        goal=goal,
        first_observation=observation,
        observation=observation,
        belief=empty_belief(),
        rules=ActiveRules(universal=[], domain=[], environment=[], situation=[]),
        recalls=[],
        prompt=[],
        knowledge_tokens=0,
        history=[],
        steps=0,
        invalid_actions=0,
        format_errors=0,
        prompt_tokens=0,
        output_tokens=0,
        success=False,
        score=0.0,
        failure_mode="infrastructure_error" if fault else None,
        error=fault,
        reply="",
        thought="",
        action="",
        done=bool(fault),
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
