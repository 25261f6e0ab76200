"""Stage 4: state-consistent filtering (Eq. 5-6).

``occupancy`` is the paper's rule: an entry recorded with an empty hand passes only when the
hand is empty now, and the other way round. ``preconditions`` goes further and asks whether the
first action of the entry's advice can work in the current belief.
"""

from __future__ import annotations

from langgraph.runtime import Runtime

from memory_store.retrieval import hand_was_empty
from nodes.context import RunContext, settings
from nodes.state import EpisodeState
from rules import Manual, check_action, load_manual
from vocabulary.belief import Belief
from vocabulary.recall import Recall


def scf(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the candidates and the belief; return the candidates with the unfit ones dropped."""
    mode = settings(runtime.context).scf
    manual = load_manual(state["env"])
    checked = []
    for recall in state["recalls"]:
        reason = occupancy_conflict(recall, state["belief"])
        if not reason and mode == "preconditions":
            reason = precondition_conflict(recall, state["belief"], manual)
        if reason:
            recall = recall.copy()
            recall["dropped_by"] = "scf"
            recall["reason"] = reason
        checked.append(recall)
    return EpisodeState(recalls=checked)


def occupancy_conflict(recall: Recall, belief: Belief) -> str:
    """Why the entry's hand does not match the present one; empty when it does.

    Schemas are recorded in no particular state, so they pass in any.
    """
    printed = recall["entry"].get("state_signature")
    if printed is None:
        return ""
    was_empty = hand_was_empty(printed)
    if was_empty and belief["holding"]:
        return f"recorded with an empty hand, holding {', '.join(belief['holding'])} now"
    if not was_empty and not belief["holding"]:
        return "recorded while holding something, the hand is empty now"
    return ""


def precondition_conflict(recall: Recall, belief: Belief, manual: Manual) -> str:
    """Why the first advised action cannot work now; empty when it may."""
    actions = recall["entry"].get("actions")
    if not actions:
        return ""
    diagnosis = check_action(manual, actions[0], belief)
    if diagnosis.verdict != "fails":
        return ""
    return f"'{actions[0]}' cannot work now: {'; '.join(diagnosis.violated)}"
