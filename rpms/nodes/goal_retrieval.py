"""Stage 3: the candidate memories (Eq. 4).

    M_cand = { m in M | d_gamma(gamma(g), gamma(m)) >= theta }

``d_gamma`` compares the goal of the episode with the goal an entry was recorded under, field by
field: the types must be equal whatever ``theta`` is, the kinds of object and destination may be
similar (``memory_store/retrieval.py``). The memory method returns the candidates with their advice
grounded in the current scene.

Candidates and advice are the same with rules and without them. They depend on the state, on the
memory and on what the environment declares (its categories of kinds, its commands and their
results), and on no rule.
"""

from __future__ import annotations

from langgraph.runtime import Runtime, get_runtime

from rpms.envs import get_environment
from rpms.memory_store.grounding import GroundingContext
from rpms.memory_store.methods.method import RecallRequest
from rpms.memory_store.methods.registry import find_method
from rpms.memory_store.retrieval import Similarity
from rpms.nodes.state import EpisodeState, RuntimeStage, commands_of, settings_of
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError


def make_goal_retrieval(similarity: Similarity | None = None) -> RuntimeStage:
    """Make the stage; ``similarity`` of two goals, 0 to 1, replaces d_gamma in our memory.

    It replaces the test of the goal type, too. Objects and destinations are plain words such as
    ``kettle``. The weight of an entry multiplies the result.
    """

    def goal_retrieval(
        state: EpisodeState, runtime: Runtime[RunContext] | None = None
    ) -> EpisodeState:
        """Read goal, sub-goal, belief and history; return the candidates in the method's order."""
        context = settings_of(state)
        method = find_method(context.memory_method)
        cross_trial_memory = state.get("cross_trial_memory") or {}
        if cross_trial_memory and (writer := cross_trial_memory.get("method")) != method.name:
            raise RpmsError(
                f"'cross_trial_memory' comes from the memory method '{writer}', and this run has "
                f"'{method.name}'; pass on what after_trial returned for this method"
            )
        # The executed actions, without those at the end that had no effect.
        turns = state.get("history", [])
        effective = [
            turn["action"]
            for turn in turns[: len(turns) - len(state.get("ineffective", []))]
            if turn["action"] and not turn["failed"]
        ]
        moment = GroundingContext(
            get_environment(state["env"]), commands_of(state), state["goal"], state["sub_goal"],
            state["belief"], context.memory_form, effective,
        )  # fmt: skip
        request = RecallRequest(
            state["env"], moment, context, cross_trial_memory,
            store=(runtime or get_runtime()).store, begun=bool(turns), similarity=similarity,
        )  # fmt: skip
        return EpisodeState(recalls=method.recall(request), truncated=method.truncated(request))

    return goal_retrieval


goal_retrieval = make_goal_retrieval()
