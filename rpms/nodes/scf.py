"""Stage 4: state-consistent filtering (Eq. 5-6).

``occupancy`` is the paper's predicate COMPAT, which each world defines on its own state signature
(in ALFWorld: an entry recorded with an empty hand passes only when the hand is empty now, and the
other way round). ``preconditions`` goes further and asks what the rules make of an entry's advice
in the current belief: what is done already, what cannot begin, and what was refused for want of
something that is there now are dropped. With rules off there is nothing to ask.
"""

from __future__ import annotations

from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.nodes.manual import known_manual
from rpms.nodes.state import EpisodeState
from rpms.rules import Manual, already_done, can_work, check_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.recall import Recall, drop


def scf(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the candidates and the belief; return the candidates with the unfit ones dropped."""
    context = settings(runtime.context)
    mode, env = context.scf, get_environment(state["env"])
    manual = known_manual(state["env"], context)
    checked = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            reason = env.compat(recall["entry"], state["belief"])
            if not reason and mode == "preconditions":
                reason = precondition_conflict(recall, state["belief"], manual)
            if reason:
                recall = drop(recall, "scf", reason)
        checked.append(recall)
    return EpisodeState(recalls=checked)


def precondition_conflict(recall: Recall, belief: Belief, manual: Manual) -> str:
    """Why the advice does not fit this moment; empty when it may."""
    kind, advice = recall["entry"]["type"], recall["advice"]
    if advice["by_kind"] or not advice["actions"]:
        return ""
    if kind == "failure":
        lesson = advice["actions"][0]
        return f"'{lesson}' can work now" if can_work(manual, lesson, belief) else ""
    if kind != "success":
        return ""
    if already_done(manual, advice["actions"][-1], belief):
        return f"'{advice['actions'][-1]}' is done already"
    steps = (step for step in advice["actions"] if not already_done(manual, step, belief))
    first = next(steps)
    diagnosis = check_action(manual, first, belief)
    if diagnosis.verdict != "fails":
        return ""
    return f"'{first}' cannot work now: {'; '.join(diagnosis.violated)}"
