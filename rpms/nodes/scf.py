"""Stage 4: state-consistent filtering (Eq. 5-6).

``occupancy`` is the paper's predicate COMPAT, which each world defines on its own state signature
(in ALFWorld: an entry recorded with an empty hand passes only when the hand is empty now, and the
other way round). ``preconditions`` goes further and asks what the rules make of an entry's advice
in the current belief: what is done already, what cannot begin, and what was refused for want of
something that is there now are dropped; of what has begun, the steps behind are left out. With
rules off there is nothing to ask.
"""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.nodes.manual import known_manual
from rpms.nodes.state import EpisodeState
from rpms.rules import Manual, already_done, can_work, check_action, match_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.recall import Advice, Recall, drop


def scf(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read candidates, belief, goal and sub-goal; return the candidates, the unfit ones dropped."""
    context = settings(runtime.context)
    mode, env = context.scf, get_environment(state["env"])
    manual, belief = known_manual(state["env"], context), state["belief"]
    behind, ahead = manual.around(state["goal"]["type"], state["sub_goal"]["name"])
    checked = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            if reason := env.compat(recall["entry"], belief):
                recall = drop(recall, "scf", reason)
            elif mode == "preconditions":
                recall = hold_against_state(recall, belief, manual, behind, ahead)
        checked.append(recall)
    return EpisodeState(recalls=checked)


def hold_against_state(
    recall: Recall, belief: Belief, manual: Manual, behind: set[str], ahead: set[str]
) -> Recall:
    """The candidate without the steps that lie behind, or dropped where it does not fit now."""
    kind, advice = recall["entry"]["type"], recall["advice"]
    actions = advice["actions"]
    if advice["by_kind"] or not actions:
        return recall
    if kind == "failure":
        possible = can_work(manual, actions[0], belief)
        return drop(recall, "scf", f"'{actions[0]}' can work now") if possible else recall
    if kind != "success":
        return recall
    begun = _begun(actions, manual, belief, behind, ahead)
    if begun == len(actions):
        return drop(recall, "scf", f"'{actions[-1]}' is done already")
    diagnosis = check_action(manual, actions[begun], belief)
    if diagnosis.verdict == "fails":
        missing = "; ".join(diagnosis.violated)
        return drop(recall, "scf", f"'{actions[begun]}' cannot work now: {missing}")
    if begun and len(advice["printed"]) == len(actions):  # as recorded, steps do not correspond
        printed = advice["printed"][begun:]
        rest: Advice = {
            **advice, "actions": actions[begun:], "printed": printed, "done": actions[:begun],
        }  # fmt: skip
        return {**recall, "advice": rest}
    return recall


def _begun(
    actions: Sequence[str], manual: Manual, belief: Belief, behind: set[str], ahead: set[str]
) -> int:
    """How many of the first steps lie behind.

    Not every change can be seen in the belief: that a thing was heated, the sub-goal tells. So what
    leads to a step that lies behind does so, too; then comes what is done already.
    """
    begun = 0
    for number, action in enumerate(actions, start=1):
        matched = match_action(manual, action)
        name = matched[0].name if matched else ""
        if name in ahead:
            break
        if name in behind:
            begun = number
    while begun < len(actions) and already_done(manual, actions[begun], belief):
        begun += 1
    return begun
