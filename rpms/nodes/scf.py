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
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.recall import Advice, Recall, drop


def scf(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read candidates, belief, goal and sub-goal; return the candidates, the unfit ones dropped."""
    context = settings(runtime.context)
    mode, env = context.scf, get_environment(state["env"])
    manual = known_manual(state["env"], context)
    checked = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            if reason := env.compat(recall["entry"], state["belief"]):
                recall = drop(recall, "scf", reason)
            elif mode == "preconditions":
                recall = hold_against_state(recall, state, manual)
        checked.append(recall)
    return EpisodeState(recalls=checked)


def hold_against_state(recall: Recall, state: EpisodeState, manual: Manual) -> Recall:
    """The candidate without the steps that lie behind, or dropped where it does not fit now."""
    kind, advice, belief = recall["entry"]["type"], recall["advice"], state["belief"]
    actions = advice["actions"]
    if advice["by_kind"] or not actions:
        return recall
    if kind == "failure":
        possible = can_work(manual, actions[0], belief)
        return drop(recall, "scf", f"'{actions[0]}' can work now") if possible else recall
    if kind != "success":
        return recall
    begun = _begun(actions, state, manual)
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


def _begun(actions: Sequence[str], state: EpisodeState, manual: Manual) -> int:
    """How many of the first steps lie behind: up to the last that does, and what is done since."""
    goal, sub_goal = state["goal"], state["sub_goal"]
    behind = 0
    for number, action in enumerate(actions, start=1):
        matched = match_action(manual, action)
        if matched and manual.is_behind(matched[0].name, goal["type"], sub_goal["name"]):
            behind = number
    while behind < len(actions) and already_done(manual, actions[behind], state["belief"]):
        behind += 1
    return behind
