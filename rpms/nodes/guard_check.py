"""Stage 7b, off by default and not in the paper: the guard checks the action against the rules.

The manual that arbitrates memories also judges the proposed action: is it feasible in the current
belief, does a rule forbid it, did it just have no effect, and does the procedure list it for the
current sub-goal? The guard sees belief, goal, history and manual. It never sees which actions the
environment would accept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import convert_to_openai_messages
from rapidfuzz import fuzz, process

from rpms.envs import get_environment
from rpms.guard.procedure import find_violation, next_search
from rpms.guard.repair import find_repair
from rpms.nodes.state import EpisodeState, decision_point, settings_of
from rpms.prompts.blocks import render
from rpms.rules.conditions import DecisionPoint
from rpms.rules.effects import simulate
from rpms.rules.verdicts import Violation
from rpms.vocabulary.belief import fingerprint
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import ActionVerdict, Decision, Message

OFF_LIST = "it is not among the actions that serve the current sub-goal"


def guard_check(state: EpisodeState) -> EpisodeState:
    """Read the proposed action and the state; return the decision and the action to execute.

    ``verify`` returns a vetoed action to the model with advice on how to repair it, and chooses a
    fallback when that does not help. ``offer`` only records the veto. ``procedure`` replaces an
    action that is not on the shortlist by the most similar one that is.
    """
    context = settings_of(state)
    mode, point = context.guard, decision_point(state)
    proposal = state["action"]
    violation = (
        find_violation(point, proposal) if proposal else Violation("", "no action could be read")
    )
    if mode == "procedure":
        return _restrict(state, point, proposal, violation)
    if violation is None:
        return _decide(state, proposal, "accepted", None, proposal)
    if mode == "verify":
        return _verify(state, point, proposal, violation, context)
    return _decide(state, proposal, "overridden", violation, proposal)


def _verify(
    state: EpisodeState,
    point: DecisionPoint,
    proposal: str,
    violation: Violation,
    context: RunContext,
) -> EpisodeState:
    """Ask the model again, unless retries are used up or it repeats an action vetoed in this step.

    An action is only replaced by a fallback after the model was asked again at least once.
    """
    before = vetoed_proposals(state)
    repair = _advice(point, proposal)
    if state["retries"] < context.max_retries and proposal not in before:
        update = _decide(state, proposal, "retried", violation, "", repair)
        question = _question(state, proposal, violation, repair)
        update["prompt"] = cast(Any, [*convert_to_openai_messages(state["prompt"]), *question])
        update["retries"] = state["retries"] + 1
        return update
    if proposal and not before:
        return _decide(state, proposal, "overridden", violation, proposal)
    played = _fallback(point, [proposal, *reversed(before)])
    return _decide(state, proposal, "fallback", violation, played, repair)


def vetoed_proposals(state: EpisodeState) -> list[str]:
    """The actions that were vetoed and sent back to the model in this step, oldest first."""
    return [
        past["proposal"]
        for past in state["decisions"]
        if past["step"] == state["steps"] + 1 and past["verdict"] == "retried"
    ]


def _fallback(point: DecisionPoint, proposals: Sequence[str]) -> str:
    """Choose an action when retries did not help, from the model's own proposals, newest first.

    The first choice is a feasible proposal, even if it leads into a loop. The second is the next
    step of a proposal's repair, unless it would let go of a held object. The third is to search
    where nobody has searched, for the sub-goal's sake: doing nothing shows a greedy model the same
    situation again. Nothing else of the procedure is used: the choice should remain the model's.
    The last is the manual's idle action.
    """
    actions = [proposal for proposal in dict.fromkeys(proposals) if proposal]
    free = point._replace(repeated_here=())
    repairs = (find_repair(point.manual, action, point.belief, point.goal) for action in actions)
    steps = [
        repair.playable for repair in repairs if repair and _keeps_hold(point, repair.playable)
    ]
    for action in [*actions, *steps]:
        if find_violation(free, action) is None:
            return action
    return next_search(free) or point.manual.domain.idle or proposals[0]


def _advice(point: DecisionPoint, proposal: str) -> str:
    """Describe how to repair a vetoed action; empty when the repair would be vetoed, too."""
    repair = find_repair(point.manual, proposal, point.belief, point.goal)
    free = point._replace(repeated_here=())
    if repair is None or (repair.playable and find_violation(free, repair.playable)):
        return ""
    return repair.words


def _keeps_hold(point: DecisionPoint, action: str) -> bool:
    after = simulate(point.manual, action, point.belief)
    return bool(action) and {*point.belief["holding"]} <= {*after["holding"]}


def _restrict(
    state: EpisodeState, point: DecisionPoint, proposal: str, violation: Violation | None
) -> EpisodeState:
    """Restrict the action to the shortlist; if that is empty, replace only a vetoed action."""
    offered = [choice["action"] for choice in state["shortlist"]]
    if proposal in offered or (not offered and violation is None):
        return _decide(state, proposal, "accepted", None, proposal)
    if offered:
        nearest = process.extractOne(proposal, offered, scorer=fuzz.ratio)[0]
        return _decide(state, proposal, "replaced", violation or Violation("", OFF_LIST), nearest)
    return _decide(state, proposal, "replaced", violation, point.manual.domain.idle or proposal)


def _decide(
    state: EpisodeState,
    proposal: str,
    verdict: ActionVerdict,
    violation: Violation | None,
    played: str,
    repair: str = "",
) -> EpisodeState:
    decision = Decision(
        step=state["steps"] + 1,
        proposal=proposal,
        verdict=verdict,
        rule=violation.rule if violation else "",
        reason=violation.reason if violation else "",
        repair=repair,
        played=played,
    )
    update = EpisodeState(decisions=[decision], action=played)
    if played:
        update["played_in"] = note_played(state, played)
    return update


def note_played(state: EpisodeState, action: str) -> dict[str, list[str]]:
    """Record an action under the current belief; the guard detects loops of any length by this."""
    situation, played_in = fingerprint(state["belief"]), state["played_in"]
    return {**played_in, situation: [*played_in.get(situation, []), action]}


def _question(
    state: EpisodeState, proposal: str, violation: Violation, repair: str
) -> list[Message]:
    """Word the veto as the next turn of the conversation."""
    prompts = get_environment(state["env"]).prompts
    values = {"action": proposal, "veto": violation, "repair": repair}
    return [
        Message(role="assistant", content=state["reply"] or "(no reply)"),
        Message(role="user", content=render(prompts, "veto.j2", **values)),
    ]
