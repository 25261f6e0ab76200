"""Tracks a conversation for the guard: the goal, and a belief from the tools' answers.

Each message is read once. A message of the user may change the goal; the belief stays. An answer
that the guard wrote says nothing about the world.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from typing_extensions import TypedDict

from rpms.guard.answers import GuardedWorld, after_answer
from rpms.guard.decision import GUARD_FAILED, Judgement, assume, judge
from rpms.rules import Manual
from rpms.rules.check import sound_manual
from rpms.rules.comparisons import SAID
from rpms.rules.loader import overlay, read_manual
from rpms.vocabulary.belief import Belief, Event, empty_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

DECISION = "rpms"
"""The key of the guard's decision in a tool message's metadata, which no provider is sent."""
FAILED = "if the call that failed took effect all the same"
BESIDE = "once the calls before it in this reply have taken effect"


class ConversationState(TypedDict):
    """The guard's knowledge of one conversation.

    Attributes:
        belief: what the tools' answers have shown.
        worst: the belief if every call that raised took effect; None if none raised.
        goal: what the user wants; None before the first message that states it.
        read: the ids of the messages that were read.
        open: the calls of the last reply; one whose answer never comes may have taken effect.
        reply: the id of that reply.
        broken: why an answer could not be read; from then on every call is refused.
    """

    belief: Belief
    worst: Belief | None
    goal: GoalSpec | None
    read: list[str]
    open: list[ToolCall]
    reply: str
    broken: str


class ConversationTracker(NamedTuple):
    """Reads the messages of conversations and judges their calls, by a world and its manual."""

    world: GuardedWorld
    manual: Manual

    @classmethod
    def open(cls, world: GuardedWorld, rules: str | Path = "") -> ConversationTracker:
        """Load the world's manual, overlaid with a folder of ``rules`` if one is given."""
        folder, over = Path(world.rules), Path(rules) if rules else None
        manual = read_manual(folder)
        return cls(world, sound_manual(overlay(manual, over) if over else manual, folder, over))

    def begin(self) -> ConversationState:
        return ConversationState(
            belief=empty_belief(), worst=None, goal=None, read=[], open=[], reply="", broken=""
        )

    def read(
        self,
        state: ConversationState,
        messages: Sequence[AnyMessage],
        taken: Collection[tuple[str, str]] = (),
    ) -> ConversationState:
        """Read the messages that the state does not include yet.

        ``taken`` holds calls whose answers were read already, as pairs of reply id and call id.
        The calls of a reply ran in parallel: one may have looked up what another changed later.
        So the answers of calls that change something are read last.
        """
        done, reply = {*state["read"]}, state.get("reply", "")
        # The last reply may have been removed from the messages while its answers are still there.
        calls = {str(call["id"]): [call] for call in state.get("open", [])}
        changes: list[tuple[str, Call, ToolMessage]] = []
        for place, message in enumerate(messages):
            if isinstance(message, AIMessage):
                state, changes = self._take_changes(state, changes), []
                calls, reply = calls_by_id(message), message.id or str(place)
            message_id = message.id or f"{place}:{message.type}"
            answered = calls.get(message.tool_call_id) if isinstance(message, ToolMessage) else None
            call = answered.pop(0) if answered else None
            if message_id in done or (call and (reply, str(call["id"])) in taken):
                continue
            if isinstance(message, HumanMessage):
                state = self._hear(state, message.text)
            elif isinstance(message, ToolMessage) and call is not None:
                due = [each for each in state.get("open", []) if each["id"] != call["id"]]
                state = {**state, "open": due}
                if self.changes(call["name"]):
                    changes.append((message_id, as_call(call), message))
                    continue
                state = self.take(state, as_call(call), message)
            else:
                continue
            state = {**state, "read": [*state["read"], message_id]}
        return self._take_changes(state, changes)

    def changes(self, tool: str) -> bool:
        """Return whether a tool changes something, by the manual."""
        rule = self.manual.by_name.get(tool)
        return rule is not None and rule.changes

    def _take_changes(
        self, state: ConversationState, changes: Sequence[tuple[str, Call, ToolMessage]]
    ) -> ConversationState:
        for message_id, call, answer in changes:
            state = {**self.take(state, call, answer), "read": [*state["read"], message_id]}
        ran = [carried_out(call, answer) for _, call, answer in reversed(changes)]
        if len(executed := [*filter(None, ran)]) > 1:  # their order is unknown
            state = self.redo(state, executed)
        return state

    def redo(self, state: ConversationState, calls: Sequence[Call]) -> ConversationState:
        """The state if these calls, which were read already, took effect last."""
        latest = assume(self.manual, calls, state["worst"] or state["belief"])
        latest["calls"] = (state["worst"] or state["belief"])["calls"]
        return {**state, "worst": None if latest == state["belief"] else latest}

    def settle(
        self, state: ConversationState, besides: Sequence[tuple[str, Call]] = ()
    ) -> ConversationState:
        """Close a reply: a call whose answer was never read may have taken effect.

        ``besides`` holds further calls that were carried out without an answer, with their ids.
        """
        repeated_ids = {call_id for call_id, _ in besides}
        lost = [as_call(call) for call in state.get("open", []) if call["id"] not in repeated_ids]
        lost += [call for _, call in besides]
        worst = state["worst"]
        if lost:
            worst = assume(self.manual, lost, worst or state["belief"])
        return {**state, "worst": worst, "open": []}

    def _hear(self, state: ConversationState, text: str) -> ConversationState:
        """Read a message of the user; one that states no goal changes nothing."""
        belief, goal = state["belief"], state["goal"]
        try:
            if goal is None and not state["read"]:
                belief = self.world.first_belief(text)
            with suppress(RpmsError):
                goal = self.world.parse_goal(text)
        except Exception as error:
            return _broken(state, "a message", error)
        worst = state["worst"]
        return {
            **state,
            "belief": _with_message(belief, text),
            "worst": worst and _with_message(worst, text),
            "goal": goal,
        }

    def take(self, state: ConversationState, call: Call, answer: ToolMessage) -> ConversationState:
        """Read an answer; one that cannot be read marks the state as broken."""
        try:
            return self._take(state, call, answer)
        except Exception as error:
            return _broken(state, f"the answer of {call.tool}", error)

    def _take(self, state: ConversationState, call: Call, answer: ToolMessage) -> ConversationState:
        """A call that raised may have taken effect, until an answer shows otherwise."""
        if besides := [Call(**each) for each in decision_of(answer).get("besides", ())]:
            start = state["worst"] or state["belief"]
            state = {**state, "worst": assume(self.manual, besides, start)}
        ran = carried_out(call, answer)
        if ran is None:
            return state
        belief, worst = state["belief"], state["worst"]
        if answer.status == "error":
            return {**state, "worst": assume(self.manual, [ran], worst or belief)}
        belief = after_answer(self.manual, self.world, belief, ran, answer.text)
        if worst is not None:
            worst = after_answer(self.manual, self.world, worst, ran, answer.text)
            worst = None if worst == belief else worst
        return {**state, "belief": belief, "worst": worst}

    def judge(
        self,
        state: ConversationState,
        call: Call,
        running: Sequence[Call] = (),
        allowed: Collection[str] = (),
    ) -> Judgement:
        """Decide about a call; it must be right with and without the effects of ``running``."""
        if state["broken"]:
            return Judgement("refuse", GUARD_FAILED, state["broken"])
        possible: dict[str, Belief] = {}
        if state["worst"] is not None:
            possible[FAILED] = state["worst"]
        base, goal = state["worst"] or state["belief"], state["goal"]
        if running:
            possible[BESIDE] = assume(self.manual, running, base)
        judgement = judge(self.manual, call, state["belief"], goal, possible, allowed)
        if judgement.verdict == "refuse":
            return judgement
        for other in running:  # the order is unknown: each may run after this call
            rest = [each for each in running if each is not other]
            later = assume(self.manual, [*rest, call], base)
            conflict = judge(self.manual, other, later, goal)
            if conflict.verdict == "refuse" and other.tool in self.manual.by_name:
                reason = f"{other} of the same reply may run after it, and then {conflict.reason}"
                return Judgement("refuse", conflict.rule, reason)
        return judgement

    def passing(self, state: ConversationState, calls: Iterable[Call]) -> list[Call]:
        """The calls of a reply that are not refused, each judged after the ones before it."""
        running: list[Call] = []
        for call in calls:
            if self.judge(state, call, running).verdict != "refuse":
                running.append(call)
        return running


def _with_message(belief: Belief, text: str) -> Belief:
    """The belief with a message of the user, for conditions on what the user has said."""
    return {**belief, "events": [*belief["events"], Event(kind=SAID, thing=text)]}


def _broken(state: ConversationState, what: str, error: Exception) -> ConversationState:
    """Mark a state as broken: the world's own code may raise anything."""
    reason = f"{what} could not be read ({type(error).__name__}: {error})"
    return {**state, "broken": reason}


def carried_out(call: Call, answer: ToolMessage) -> Call | None:
    """The call as it reached the tool, which a person or a middleware may have changed.

    None if it did not reach the tool.
    """
    decision = decision_of(answer)
    if decision.get("ran") is False:
        return None
    return Call(**decision["call"]) if decision.get("call") else call


def decision_of(message: AnyMessage) -> Mapping[str, Any]:
    """The guard's decision about the call that a message answers; empty if there is none."""
    return cast(Mapping[str, Any], getattr(message, "response_metadata", {}).get(DECISION) or {})


def as_call(call: Mapping[str, Any]) -> Call:
    """Convert a tool call of LangChain."""
    return Call(str(call["name"]), dict(call["args"]))


def calls_by_id(reply: AIMessage) -> dict[str, list[ToolCall]]:
    """The calls of a reply; a model may give two of them the same id."""
    calls: dict[str, list[ToolCall]] = {}
    for call in reply.tool_calls:
        calls.setdefault(call["id"] or "", []).append(call)
    return calls


def pending(messages: Sequence[AnyMessage]) -> tuple[str, list[ToolCall]]:
    """The last reply's id and those of its calls that have no answer yet."""
    for place in range(len(messages) - 1, -1, -1):
        reply = messages[place]
        if isinstance(reply, AIMessage):
            answered = {m.tool_call_id for m in messages[place:] if isinstance(m, ToolMessage)}
            open_calls = [call for call in reply.tool_calls if call["id"] not in answered]
            return reply.id or str(place), open_calls
    return "", []


def before(calls: Sequence[ToolCall], call_id: str | None) -> Iterator[ToolCall]:
    """The calls of a reply that come before one of them."""
    for call in calls:
        if call["id"] == call_id:
            return
        yield call
