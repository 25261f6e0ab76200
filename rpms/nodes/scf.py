"""Stage 4: state-consistent filtering (Eq. 5 and 6).

    M_filt = { m in M_cand | COMPAT(sigma(b_t), sigma(m)) }

    COMPAT:  (h_m = none  =>  h_t = none)  and  (h_m != none  =>  h_t != none)

``occupancy`` is this predicate: an entry that was recorded with an empty hand passes only if the
hand is empty now, and vice versa. An environment may define COMPAT on its own state signature, as
the paper does for ScienceWorld (instrument, room, progress). Entries without a recorded state, such
as schemas, pass.

``preconditions`` is ours and needs rules: it also drops advice whose first action cannot work in
the current belief, and lessons about actions that can.
"""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.nodes.state import EpisodeState, manual_of, settings_of
from rpms.rules import Manual, can_work, check_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.recall import Recall, drop


def scf(state: EpisodeState) -> EpisodeState:
    """Read the candidates and the belief; return the candidates, the unfit ones dropped."""
    context = settings_of(state)
    env, belief = get_environment(state["env"]), state["belief"]
    by_rules = context.rules and context.scf == "preconditions"
    recalls = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            if reason := env.compat(recall["entry"], belief):
                recall = drop(recall, "scf", reason)
            elif by_rules:
                recall = check_preconditions(recall, belief, manual_of(state))
        recalls.append(recall)
    return EpisodeState(recalls=recalls)


def check_preconditions(recall: Recall, belief: Belief, manual: Manual) -> Recall:
    """Drop advice whose first action cannot work now, and a warning of an action that can."""
    kind, advice = recall["entry"]["type"], recall["advice"]
    actions = advice["actions"]
    if advice["by_kind"] or not actions:
        return recall
    if kind == "failure":
        possible = can_work(manual, actions[0], belief)
        return drop(recall, "scf", f"'{actions[0]}' can work now") if possible else recall
    if kind != "success":
        return recall
    diagnosis = check_action(manual, actions[0], belief)
    if diagnosis.verdict == "broken":
        return drop(recall, "scf", f"'{actions[0]}' cannot work now: {diagnosis.reason}")
    return recall
