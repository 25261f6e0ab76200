"""Stage 0: resolve the task, start the environment, parse the goal."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast, get_args, get_origin, get_type_hints
from uuid import uuid4

from langgraph.runtime import Runtime, get_runtime
from typing_extensions import is_typeddict

from rpms.envs import Task, get_environment
from rpms.envs import live as episodes
from rpms.envs.registry import FIRST_WORLD, find_task
from rpms.nodes.state import EpisodeState, RuntimeStage, environment_failed, no_rules, replace_list
from rpms.prompts.examples import check_prompts
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import RunContext, declarations, merged_settings
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

# Keys of the input, keys that `fresh_state` sets itself, and one that `belief_update` writes.
NOT_EMPTIED = {"task", "cross_trial_memory", "sub_goal", "spec", "goal", "belief", "rules"}


listed_task: ContextVar[Task | None] = ContextVar("listed_task", default=None)
"""The task of an episode of a run: the run has listed the split, and no episode does it again."""


def make_reset_env(default: RunContext | None = None) -> RuntimeStage:
    """Make the stage; ``default`` holds the settings of runs that pass none."""

    def reset_env(state: EpisodeState, runtime: Runtime[RunContext] | None = None) -> EpisodeState:
        """Read env, split and task; return a fresh episode with o_0, g and the run's settings."""
        outer = (runtime or get_runtime()).context
        task, context = find_input_task(state), run_settings(outer, default)
        check_prompts(task["env"], context)
        fresh = fresh_state(context, task)
        try:
            observation = episodes.start(fresh["episode_id"], task)
            fresh |= {"first_observation": observation, "observation": observation}
            return fresh
        except EnvironmentFault as fault:
            return {**fresh, **environment_failed(fault, "reset_env")}

    return reset_env


reset_env = make_reset_env()


def run_settings(context: Any, default: RunContext | None) -> RunContext:
    """Return the settings of the run: the graph's own, with the changes of the call.

    Inside another graph the context is that graph's; ours may be its field ``rpms``. If it holds
    nothing of ours, the graph's own settings are used.
    """
    try:
        return merged_settings(default or RunContext(), context)
    except RpmsError as error:
        if default and not _holds_settings(context):
            return default
        raise RpmsError(
            "inside another graph, build this one with build_graph(context=RunContext(...)), or "
            f"give the other graph's context a field rpms with a RunContext: {error}"
        ) from None


def _holds_settings(context: Any) -> bool:
    if not isinstance(context, Mapping):
        return getattr(context, "rpms", None) is not None
    return "rpms" in context or bool(declarations().keys() & context.keys())


def find_input_task(state: EpisodeState) -> Task:
    """Find the task that the input names; env and split default to the first there is."""
    if "task" not in state:
        raise RpmsError(
            "the input has no 'task': give its index or its id, {'task': 0}, and with it 'env' "
            "and 'split' if you like"
        )
    key = (state.get("env"), state.get("split"), state["task"])
    listed = listed_task.get()
    if listed and key == (listed["env"], listed["split"], listed["id"]):
        return listed
    env = get_environment(state.get("env") or FIRST_WORLD)
    return find_task(env.name, state.get("split") or env.splits()[0], str(state["task"]))


def fresh_state(context: RunContext, spec: Task) -> EpisodeState:
    """Return the state of a new episode, with an empty value for every key of a later stage.

    A thread that is run a second time starts clean instead of continuing the previous episode.
    """
    kinds = get_type_hints(EpisodeState)
    empty = {name: _empty(kind) for name, kind in kinds.items() if name not in NOT_EMPTIED}
    fresh = EpisodeState(
        env=spec["env"],
        split=spec["split"],
        episode_id=uuid4().hex,
        spec=spec,
        task_id=spec["id"],
        settings=context.plain,
        condition=context.condition,
        goal=get_environment(spec["env"]).parse_goal(spec["goal"]),
        belief=empty_belief(),
        rules=no_rules(),
        history=replace_list([]),
        decisions=replace_list([]),
    )
    return cast(EpisodeState, empty | fresh)


def _empty(kind: Any) -> Any:
    if is_typeddict(kind):
        return {name: _empty(part) for name, part in get_type_hints(kind).items()}
    return None if type(None) in get_args(kind) else (get_origin(kind) or kind)()
