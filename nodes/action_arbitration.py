"""Stage 7b, past the paper and off by default: rules arbitrate the agent's own actions.

The same manual that arbitrates memories judges the action a model proposes: is it feasible in the
belief, does a rule forbid it, was it just tried in vain, and which actions does the procedure have
for the current sub-goal. It sees only belief, goal, history and manual, never what the environment
would accept.
"""

from __future__ import annotations

from langgraph.runtime import Runtime
from rapidfuzz import fuzz, process

from rpms.nodes.context import RunContext, settings
from rpms.nodes.manual import manual_for
from rpms.nodes.reply import read_action
from rpms.nodes.state import EpisodeState
from rpms.rules.conditions import Situation
from rpms.rules.procedure import Veto, serving_actions, veto
from rpms.vocabulary.belief import fingerprint
from rpms.vocabulary.decision import Choice, Decision, Verdict
from rpms.vocabulary.turn import Message

# How many actions a prompt offers: few enough to read, enough to leave a choice.
SHORTLIST = 6
OFF_LIST = "it is not among the actions that serve the current sub-goal"


def situation(state: EpisodeState, context: RunContext) -> Situation:
    """What judging may look at."""
    return Situation(
        manual=manual_for(state["env"], context),
        goal=state["goal"],
        sub_goal=state["sub_goal"],
        belief=state["belief"],
        vain=state["ineffective"],
        circled=state["played_in"].get(fingerprint(state["belief"]), ()),
    )


def shortlist(state: EpisodeState, context: RunContext) -> list[Choice]:
    """The best actions for the current sub-goal, with a reason each."""
    return serving_actions(situation(state, context))[:SHORTLIST]


def action_arbitration(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the reply and the situation; return the decision, and what is to be played.

    ``reask`` sends a vetoed action back once; ``shortlist`` only notes what speaks against it;
    ``constrain`` plays the nearest action of the shortlist instead.
    """
    context = settings(runtime.context)
    mode, now = context.guard, situation(state, context)
    proposal = state["action"] or read_action(state["reply"], state["env"], now.manual).action
    against = veto(now, proposal) if proposal else Veto("", "no action could be read")
    if mode == "constrain":
        return _hold(state, now, proposal, against)
    if against is None:
        return _decide(state, proposal, "accepted", None, proposal)
    if mode == "reask" and not state["asked_again"]:
        update = _decide(state, proposal, "asked_again", against, "")
        update["prompt"] = [*state["prompt"], *_question(state["reply"], against)]
        update["asked_again"] = True
        return update
    return _decide(state, proposal, "insisted", against, proposal)


def _hold(state: EpisodeState, now: Situation, proposal: str, against: Veto | None) -> EpisodeState:
    """Keep to the shortlist; where the procedure has nothing to offer, keep to what is possible."""
    offered = [choice["action"] for choice in state["shortlist"]]
    if proposal in offered or (not offered and against is None):
        return _decide(state, proposal, "accepted", None, proposal)
    if offered:
        nearest = process.extractOne(proposal, offered, scorer=fuzz.ratio)[0]
        return _decide(state, proposal, "replaced", against or Veto("", OFF_LIST), nearest)
    return _decide(state, proposal, "replaced", against, now.manual.domain.idle or proposal)


def _decide(
    state: EpisodeState, proposal: str, verdict: Verdict, against: Veto | None, played: str
) -> EpisodeState:
    decision = Decision(
        step=state["steps"] + 1,
        proposal=proposal,
        verdict=verdict,
        rule=against.rule if against else "",
        reason=against.reason if against else "",
        played=played,
    )
    update = EpisodeState(decisions=[decision], action=played)
    if played:
        # An action that led back to where it was played is a circle, however long the way round.
        here, so_far = fingerprint(state["belief"]), state["played_in"]
        update["played_in"] = {**so_far, here: [*so_far.get(here, []), played]}
    return update


def _question(reply: str, against: Veto) -> list[Message]:
    """The veto as the next turn of the conversation."""
    rule = f" [{against.rule}]" if against.rule else ""
    return [
        Message(role="assistant", content=reply or "(no reply)"),
        Message(
            role="user",
            content=f"Not played{rule}: {against.reason}. Choose another action, in the same form.",
        ),
    ]
