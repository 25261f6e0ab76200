"""Stage 3: M_cand, the entries that the memory method recalls for this step (Eq. 4)."""

from __future__ import annotations

from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.memory_store.grounding import GroundingContext
from rpms.memory_store.methods.method import RecallRequest
from rpms.memory_store.methods.registry import find_method
from rpms.nodes.state import EpisodeState, settings_of, shown_manual
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError


def goal_retrieval(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read goal, sub-goal, belief and history; return the candidates in the method's order."""
    context = settings_of(state)
    method = find_method(context.memory_method)
    cross_trial_memory = state.get("cross_trial_memory") or {}
    if cross_trial_memory and (writer := cross_trial_memory.get("method")) != method.name:
        raise RpmsError(
            f"'cross_trial_memory' comes from the memory method '{writer}', and this run has "
            f"'{method.name}'; pass on what after_trial returned for this method"
        )
    env = get_environment(state["env"])
    manual = shown_manual(state)
    moment = GroundingContext(
        manual, state["goal"], state["sub_goal"], state["belief"], env.keys, context.memory_form,
        env.role_names(state["belief"]), _effective(state), env.steps_done,
    )  # fmt: skip
    request = RecallRequest(
        state["env"],
        moment,
        context,
        cross_trial_memory,
        store=runtime.store,
        begun=bool(state.get("history")),
    )
    return EpisodeState(recalls=method.recall(request), truncated=method.truncated(request))


def _effective(state: EpisodeState) -> list[str]:
    """Return the executed actions, without those at the end that had no effect."""
    turns = state.get("history", [])
    changed = len(turns) - len(state.get("ineffective", []))
    return [turn["action"] for turn in turns[:changed] if turn["action"] and not turn["failed"]]
