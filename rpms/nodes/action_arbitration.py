"""Stage 7b, past the paper and off by default: rules arbitrate the agent's own actions.

The same manual that arbitrates memories judges the action a model proposes: is it feasible in the
belief, does a rule forbid it, was it just tried in vain, and which actions does the procedure have
for the current sub-goal. It sees only belief, goal, history and manual, never what the environment
would accept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import convert_to_openai_messages
from rapidfuzz import fuzz, process

from rpms.envs import get_environment
from rpms.guard.policy import Veto, veto
from rpms.guard.repair import find_repair
from rpms.nodes.state import EpisodeState, decision_point, settings_of
from rpms.prompts.blocks import render
from rpms.rules.conditions import DecisionPoint
from rpms.rules.semantics import simulate
from rpms.vocabulary.belief import fingerprint
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import Decision, Message, Verdict

OFF_LIST = "it is not among the actions that serve the current sub-goal"


def action_arbitration(state: EpisodeState) -> EpisodeState:
    """Read the reply and the situation; return the decision, and what is to be played.

    ``verify`` sends a vetoed action back, with what would mend it, and falls back when that does
    not help; ``offer`` only notes what speaks against it; ``policy`` plays the nearest
    action of the shortlist instead.
    """
    context = settings_of(state)
    mode, point = context.guard, decision_point(state)
    proposal = state["action"]
    against = veto(point, proposal) if proposal else Veto("", "no action could be read")
    if mode == "policy":
        return _hold(state, point, proposal, against)
    if against is None:
        return _decide(state, proposal, "accepted", None, proposal)
    if mode == "verify":
        return _verify(state, point, proposal, against, context)
    return _decide(state, proposal, "overridden", against, proposal)


def _verify(
    state: EpisodeState, point: DecisionPoint, proposal: str, against: Veto, context: RunContext
) -> EpisodeState:
    """Ask again, unless that was done often enough or the same action comes back.

    It comes back also when it was sent back at an earlier step and nothing has changed since. No
    other action is played than the model's own unless it was asked again.
    """
    step, changed = state["steps"] + 1, state["steps"] - len(state["ineffective"])
    vetoed = [
        (past["step"], past["proposal"])
        for past in state["decisions"]
        if past["step"] > changed and past["verdict"] in ("retried", "fallback")
    ]
    before = [action for at, action in vetoed if at == step]
    again = proposal in (action for _, action in vetoed)
    repair = _advice(point, proposal)
    if state["retries"] < context.max_retries and not again:
        update = _decide(state, proposal, "retried", against, "", repair)
        question = _question(state, proposal, against, repair)
        update["prompt"] = cast(Any, [*convert_to_openai_messages(state["prompt"]), *question])
        update["retries"] = state["retries"] + 1
        return update
    if not (state["retries"] or again):
        if proposal:
            return _decide(state, proposal, "overridden", against, proposal)
        before = []
    played = _fallback(point, [proposal, *reversed(before)])
    return _decide(state, proposal, "fallback", against, played, repair)


def _fallback(point: DecisionPoint, proposals: Sequence[str]) -> str:
    """What is played when asking did not help, from the model's own proposals, newest first.

    One that can be done, though it led round a circle; else the next step towards one of them, as
    its veto said, unless something would be let go of for it; else the manual's idle action. The
    procedure has no say in it: it would not be the model's own choice any more.
    """
    actions = [proposal for proposal in dict.fromkeys(proposals) if proposal]
    free = point._replace(repeated_here=())
    repairs = (find_repair(point.manual, action, point.belief, point.goal) for action in actions)
    steps = [way.playable for way in repairs if way and _keeps_hold(point, way.playable)]
    for action in [*actions, *steps]:
        if veto(free, action) is None:
            return action
    return point.manual.domain.idle or proposals[0]


def _advice(point: DecisionPoint, proposal: str) -> str:
    """How a vetoed action can be repaired, in words; empty where its first step is vetoed, too."""
    way = find_repair(point.manual, proposal, point.belief, point.goal)
    if way is None or (way.playable and veto(point._replace(repeated_here=()), way.playable)):
        return ""
    return way.words


def _keeps_hold(point: DecisionPoint, action: str) -> bool:
    after = simulate(point.manual, action, point.belief)
    return bool(action) and {*point.belief["holding"]} <= {*after["holding"]}


def _hold(
    state: EpisodeState, point: DecisionPoint, proposal: str, against: Veto | None
) -> EpisodeState:
    """Keep to the shortlist; where the procedure has nothing to offer, keep to what is possible."""
    offered = [choice["action"] for choice in state["shortlist"]]
    if proposal in offered or (not offered and against is None):
        return _decide(state, proposal, "accepted", None, proposal)
    if offered:
        nearest = process.extractOne(proposal, offered, scorer=fuzz.ratio)[0]
        return _decide(state, proposal, "replaced", against or Veto("", OFF_LIST), nearest)
    return _decide(state, proposal, "replaced", against, point.manual.domain.idle or proposal)


def _decide(
    state: EpisodeState,
    proposal: str,
    verdict: Verdict,
    against: Veto | None,
    played: str,
    repair: str = "",
) -> EpisodeState:
    decision = Decision(
        step=state["steps"] + 1,
        proposal=proposal,
        verdict=verdict,
        rule=against.rule if against else "",
        reason=against.reason if against else "",
        repair=repair,
        played=played,
    )
    update = EpisodeState(decisions=[decision], action=played)
    if played:
        update["played_in"] = note_played(state, played)
    return update


def note_played(state: EpisodeState, action: str) -> dict[str, list[str]]:
    """An action that led back to where it was played is a circle, however long the way round."""
    here, so_far = fingerprint(state["belief"]), state["played_in"]
    return {**so_far, here: [*so_far.get(here, []), action]}


def _question(state: EpisodeState, proposal: str, against: Veto, repair: str) -> list[Message]:
    """The veto as the next turn of the conversation."""
    prompts = get_environment(state["env"]).prompts
    veto = {"action": proposal, "veto": against, "repair": repair}
    return [
        Message(role="assistant", content=state["reply"] or "(no reply)"),
        Message(role="user", content=render(prompts, "veto.j2", **veto)),
    ]
