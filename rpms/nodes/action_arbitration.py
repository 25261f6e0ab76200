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
from langgraph.runtime import Runtime
from rapidfuzz import fuzz, process

from rpms.envs import get_environment
from rpms.guard.policy import DecisionPoint, Veto, serving_actions, veto
from rpms.guard.repair import find_repair
from rpms.nodes.blocks import render
from rpms.nodes.manual import manual_for
from rpms.nodes.reply import read_action
from rpms.nodes.state import EpisodeState
from rpms.rules.semantics import simulate
from rpms.vocabulary.belief import fingerprint
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.turn import Choice, Decision, Message, Verdict, refused_since

# How many actions a prompt offers: few enough to read, enough to leave a choice.
SHORTLIST = 6
OFF_LIST = "it is not among the actions that serve the current sub-goal"


def situation(state: EpisodeState, context: RunContext) -> DecisionPoint:
    """What judging may look at.

    The guard and the expert have the procedure under every condition; an agent without rules may
    have no sub-goal of its own.
    """
    history = state.get("history", [])
    refused = refused_since(history, state["ineffective"])
    sub_goal = state["sub_goal"]
    if not sub_goal["name"]:
        sub_goal = get_environment(state["env"]).sub_goal(state["goal"], state["belief"], history)
    return DecisionPoint(
        manual=manual_for(state["env"], context),
        goal=state["goal"],
        sub_goal=sub_goal,
        belief=state["belief"],
        no_effect=state["ineffective"],
        refused={turn["action"] for turn in refused},
        repeated_here=state["played_in"].get(fingerprint(state["belief"]), ()),
        # Guard policy holds to the procedure anyway, also where that has nothing to offer.
        check_answers=context.check_answers or context.guard == "policy",
    )


def shortlist(state: EpisodeState, context: RunContext) -> list[Choice]:
    """The best actions for the current sub-goal, with a reason each."""
    return serving_actions(situation(state, context))[:SHORTLIST]


def action_arbitration(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the reply and the situation; return the decision, and what is to be played.

    ``verify`` sends a vetoed action back, with what would mend it, and falls back when that does
    not help; ``offer`` only notes what speaks against it; ``policy`` plays the nearest
    action of the shortlist instead.
    """
    context = settings(runtime.context)
    mode, now = context.guard, situation(state, context)
    proposal = state["action"] or read_action(state["reply"], state["env"], now.manual).action
    against = veto(now, proposal) if proposal else Veto("", "no action could be read")
    if mode == "policy":
        return _hold(state, now, proposal, against)
    if against is None:
        return _decide(state, proposal, "accepted", None, proposal)
    if mode == "verify":
        return _verify(state, now, proposal, against, context)
    return _decide(state, proposal, "insisted", against, proposal)


def _verify(
    state: EpisodeState, now: DecisionPoint, proposal: str, against: Veto, context: RunContext
) -> EpisodeState:
    """Ask again, unless that was done often enough or the same action comes back.

    It comes back also when it was sent back at an earlier step and nothing has changed since. No
    other action is played than the model's own unless it was asked again.
    """
    step, changed = state["steps"] + 1, state["steps"] - len(state["ineffective"])
    vetoed = [
        (past["step"], past["proposal"])
        for past in state["decisions"]
        if past["step"] > changed and past["verdict"] in ("asked_again", "fell_back")
    ]
    before = [action for at, action in vetoed if at == step]
    again = proposal in (action for _, action in vetoed)
    repair = _advice(now, proposal)
    if state["asked_again"] < context.max_retries and not again:
        update = _decide(state, proposal, "asked_again", against, "", repair)
        question = _question(state, proposal, against, repair)
        update["prompt"] = cast(Any, [*convert_to_openai_messages(state["prompt"]), *question])
        update["asked_again"] = state["asked_again"] + 1
        return update
    if not (state["asked_again"] or again):
        if proposal:
            return _decide(state, proposal, "insisted", against, proposal)
        before = []
    played = _fall_back(now, [proposal, *reversed(before)])
    return _decide(state, proposal, "fell_back", against, played, repair)


def _fall_back(now: DecisionPoint, proposals: Sequence[str]) -> str:
    """What is played when asking did not help, from the model's own proposals, newest first.

    One that can be done, though it led round a circle; else the next step towards one of them, as
    its veto said, unless something would be let go of for it; else the manual's idle action. The
    procedure has no say in it: it would not be the model's own choice any more.
    """
    actions = [proposal for proposal in dict.fromkeys(proposals) if proposal]
    free = now._replace(repeated_here=())
    repairs = (find_repair(now.manual, action, now.belief, now.goal) for action in actions)
    steps = [way.playable for way in repairs if way and _keeps_hold(now, way.playable)]
    for action in [*actions, *steps]:
        if veto(free, action) is None:
            return action
    return now.manual.domain.idle or proposals[0]


def _advice(now: DecisionPoint, proposal: str) -> str:
    """How a vetoed action can be repaired, in words; empty where its first step is vetoed, too."""
    way = find_repair(now.manual, proposal, now.belief, now.goal)
    if way is None or (way.playable and veto(now._replace(repeated_here=()), way.playable)):
        return ""
    return way.words


def _keeps_hold(now: DecisionPoint, action: str) -> bool:
    after = simulate(now.manual, action, now.belief)
    return bool(action) and {*now.belief["holding"]} <= {*after["holding"]}


def _hold(
    state: EpisodeState, now: DecisionPoint, proposal: str, against: Veto | None
) -> EpisodeState:
    """Keep to the shortlist; where the procedure has nothing to offer, keep to what is possible."""
    offered = [choice["action"] for choice in state["shortlist"]]
    if proposal in offered or (not offered and against is None):
        return _decide(state, proposal, "accepted", None, proposal)
    if offered:
        nearest = process.extractOne(proposal, offered, scorer=fuzz.ratio)[0]
        return _decide(state, proposal, "replaced", against or Veto("", OFF_LIST), nearest)
    return _decide(state, proposal, "replaced", against, now.manual.domain.idle or proposal)


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
        mend=repair,
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
