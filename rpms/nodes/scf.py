"""Stage 4: state-consistent filtering (Eq. 5-6).

``occupancy`` is the paper's predicate COMPAT, which each world defines on its own state signature
(in ALFWorld: an entry recorded with an empty hand passes only when the hand is empty now, and the
other way round). ``preconditions`` goes further and asks whether the first action of the entry's
advice, as it is said for this home and this moment, can work in the current belief.
"""

from __future__ import annotations

from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.nodes.manual import manual_for
from rpms.nodes.state import EpisodeState
from rpms.rules import Manual, check_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.recall import Recall


def scf(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the candidates and the belief; return the candidates with the unfit ones dropped."""
    context = settings(runtime.context)
    mode, env = context.scf, get_environment(state["env"])
    manual = manual_for(state["env"], context)
    checked = []
    for recall in state["recalls"]:
        reason = env.compat(recall["entry"], state["belief"])
        if not reason and mode == "preconditions":
            reason = precondition_conflict(recall, state["belief"], manual)
        if reason:
            recall = recall.copy()
            recall["dropped_by"] = "scf"
            recall["reason"] = reason
        checked.append(recall)
    return EpisodeState(recalls=checked)


def precondition_conflict(recall: Recall, belief: Belief, manual: Manual) -> str:
    """Why the first advised action cannot work now; empty when it may."""
    if recall["entry"]["type"] != "success":
        return ""
    actions = recall["advice"]["actions"]
    diagnosis = check_action(manual, actions[0], belief)
    if diagnosis.verdict != "fails":
        return ""
    return f"'{actions[0]}' cannot work now: {'; '.join(diagnosis.violated)}"
