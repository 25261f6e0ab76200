"""Stage 4: state-consistent filtering (Eq. 5-6).

``occupancy`` is the paper's predicate COMPAT, which each world defines on its own state signature
(in ALFWorld: an entry recorded with an empty hand passes only when the hand is empty now, and the
other way round). ``preconditions`` goes further and asks what the rules make of an entry's advice
in the current belief: what cannot begin, and lessons about what can work now, are dropped. With
rules off there is nothing to ask.
"""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.nodes.state import EpisodeState, settings_of
from rpms.rules import Manual, can_work, check_action
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.recall import Recall, drop


def scf(state: EpisodeState) -> EpisodeState:
    """Read the candidates and the belief; return the candidates, the unfit ones dropped."""
    context = settings_of(state)
    mode, env = context.scf, get_environment(state["env"])
    manual, belief = (
        load_manual(
            state["env"], context.rules_dir, context.without_rules, syntax_only=not context.rules
        ),
        state["belief"],
    )
    checked = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            if reason := env.compat(recall["entry"], belief):
                recall = drop(recall, "scf", reason)
            elif mode == "preconditions":
                recall = hold_against_state(recall, belief, manual)
        checked.append(recall)
    return EpisodeState(recalls=checked)


def hold_against_state(recall: Recall, belief: Belief, manual: Manual) -> Recall:
    """The candidate, dropped where its advice cannot begin now, or what it warns of can work."""
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
    if diagnosis.verdict == "fails":
        return drop(recall, "scf", f"'{actions[0]}' cannot work now: {diagnosis.reason}")
    return recall
