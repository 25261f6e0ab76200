"""What a guard knows of a conversation: the goal, and a belief from the tools' own answers.

Everything is read from the messages, once each. A message of the user may change the goal; the
belief stays. An answer of the guard itself tells nothing about the world.
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
from rpms.rules.loader import overlay, read_manual
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

DECISION = "rpms"
"""Where a tool message carries what the guard decided about its call; no provider is sent that."""
FAILED = "if the call that failed took effect all the same"
BESIDE = "once the calls before it in this reply have taken effect"


class ConversationState(TypedDict):
    """What is known of a conversation so far.

    Attributes:
        belief: what the answers have shown.
        worst: the same if every call that ended in an exception took effect; None if none did.
        goal: what the user wants; None before the first message that states it.
        read: the ids of the messages that are in it.
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


class Conversations(NamedTuple):
    """A world and its manual: all that reading a conversation and judging its calls needs."""

    world: GuardedWorld
    manual: Manual

    @classmethod
    def open(cls, world: GuardedWorld, rules: str | Path = "") -> Conversations:
        """A world with its manual, over which a folder of ``rules`` may be laid."""
        own, over = Path(world.rules), Path(rules) if rules else None
        manual = read_manual(own)
        return cls(world, sound_manual(overlay(manual, over) if over else manual, own, over))

    def begin(self) -> ConversationState:
        """Nothing was said yet."""
        return ConversationState(
            belief=empty_belief(), worst=None, goal=None, read=[], open=[], reply="", broken=""
        )

    def read(
        self,
        memory: ConversationState,
        messages: Sequence[AnyMessage],
        taken: Collection[tuple[str, str]] = (),
    ) -> ConversationState:
        """The memory with every message that is not in it yet.

        Answers to calls that were ``taken``, by the reply's id and their own, are in it already.
        The calls of a reply ran side by side: what one of them has looked up may be older than
        what another has changed, so that changes are read last.
        """
        done, reply = {*memory["read"]}, memory.get("reply", "")
        # Where the last reply was removed, its calls are still known, and answers may be left.
        calls = {str(call["id"]): [call] for call in memory.get("open", [])}
        changes: list[tuple[str, Call, ToolMessage]] = []
        for place, message in enumerate(messages):
            if isinstance(message, AIMessage):
                memory, changes = self._take_changes(memory, changes), []
                calls, reply = calls_by_id(message), message.id or str(place)
            known = message.id or f"{place}:{message.type}"
            answered = calls.get(message.tool_call_id) if isinstance(message, ToolMessage) else None
            call = answered.pop(0) if answered else None
            if known in done or (call and (reply, str(call["id"])) in taken):
                continue
            if isinstance(message, HumanMessage):
                memory = self._hear(memory, message.text)
            elif isinstance(message, ToolMessage) and call is not None:
                due = [each for each in memory.get("open", []) if each["id"] != call["id"]]
                memory = {**memory, "open": due}
                if self.changes(call["name"]):
                    changes.append((known, as_call(call), message))
                    continue
                memory = self.take(memory, as_call(call), message)
            else:
                continue
            memory = {**memory, "read": [*memory["read"], known]}
        return self._take_changes(memory, changes)

    def changes(self, tool: str) -> bool:
        """Whether a tool has effects that the manual knows."""
        rule = self.manual.by_name.get(tool)
        return rule is not None and bool(rule.outcomes)

    def _take_changes(
        self, memory: ConversationState, changes: Sequence[tuple[str, Call, ToolMessage]]
    ) -> ConversationState:
        for known, call, answer in changes:
            memory = {**self.take(memory, call, answer), "read": [*memory["read"], known]}
        ran = [carried_out(call, answer) for _, call, answer in reversed(changes)]
        if len(again := [*filter(None, ran)]) > 1:  # in which order nobody knows
            memory = self.redo(memory, again)
        return memory

    def redo(self, memory: ConversationState, calls: Sequence[Call]) -> ConversationState:
        """The memory if these calls, which are in it already, were the last to take effect."""
        again = assume(self.manual, calls, memory["worst"] or memory["belief"])
        again["calls"] = (memory["worst"] or memory["belief"])["calls"]
        return {**memory, "worst": None if again == memory["belief"] else again}

    def settle(
        self, memory: ConversationState, besides: Sequence[tuple[str, Call]] = ()
    ) -> ConversationState:
        """The memory once a reply is over: answers may have been removed before they were read.

        Calls that were carried out ``besides``, each with its id, have no answers.
        """
        known = {name for name, _ in besides}
        lost = [as_call(call) for call in memory.get("open", []) if call["id"] not in known]
        lost += [call for _, call in besides]
        worst = memory["worst"]
        if lost:
            worst = assume(self.manual, lost, worst or memory["belief"])
        return {**memory, "worst": worst, "open": []}

    def _hear(self, memory: ConversationState, text: str) -> ConversationState:
        """What a message says that does not state a goal is left to the agent."""
        belief, goal = memory["belief"], memory["goal"]
        try:
            if goal is None and not memory["read"]:
                belief = self.world.first_belief(text)
            with suppress(RpmsError):
                goal = self.world.parse_goal(text)
        except Exception as error:
            return _broken(memory, "a message", error)
        return {**memory, "belief": belief, "goal": goal}

    def take(self, memory: ConversationState, call: Call, answer: ToolMessage) -> ConversationState:
        """The memory after an answer; one that cannot be read breaks it."""
        try:
            return self._take(memory, call, answer)
        except Exception as error:
            return _broken(memory, f"the answer of {call.tool}", error)

    def _take(
        self, memory: ConversationState, call: Call, answer: ToolMessage
    ) -> ConversationState:
        """A call that ended in an exception may have taken effect all the same.

        Only an answer that tells otherwise ends that doubt.
        """
        if besides := [Call(**each) for each in decision_of(answer).get("besides", ())]:
            started = memory["worst"] or memory["belief"]
            memory = {**memory, "worst": assume(self.manual, besides, started)}
        ran = carried_out(call, answer)
        if ran is None:
            return memory
        belief, worst = memory["belief"], memory["worst"]
        if answer.status == "error":
            return {**memory, "worst": assume(self.manual, [ran], worst or belief)}
        belief = after_answer(self.manual, self.world, belief, ran, answer.text)
        if worst is not None:
            worst = after_answer(self.manual, self.world, worst, ran, answer.text)
            worst = None if worst == belief else worst
        return {**memory, "belief": belief, "worst": worst}

    def judge(
        self,
        memory: ConversationState,
        call: Call,
        running: Sequence[Call] = (),
        allowed: Collection[str] = (),
    ) -> Judgement:
        """Decide about a call, whether or not others that are running have taken effect by then."""
        if memory["broken"]:
            return Judgement("refuse", GUARD_FAILED, memory["broken"])
        possible: dict[str, Belief] = {}
        if memory["worst"] is not None:
            possible[FAILED] = memory["worst"]
        believed, goal = memory["worst"] or memory["belief"], memory["goal"]
        if running:
            possible[BESIDE] = assume(self.manual, running, believed)
        judgement = judge(self.manual, call, memory["belief"], goal, possible, allowed)
        if judgement.verdict == "refuse":
            return judgement
        for other in running:  # which may come after this one: nobody knows the order
            rest = [each for each in running if each is not other]
            later = assume(self.manual, [*rest, call], believed)
            against = judge(self.manual, other, later, goal)
            if against.verdict == "refuse" and other.tool in self.manual.by_name:
                reason = f"{other} of the same reply may run after it, and then {against.reason}"
                return Judgement("refuse", against.rule, reason)
        return judgement

    def passing(self, memory: ConversationState, calls: Iterable[Call]) -> list[Call]:
        """Those of a reply's calls that are not refused, each judged after the ones before it."""
        running: list[Call] = []
        for call in calls:
            if self.judge(memory, call, running).verdict != "refuse":
                running.append(call)
        return running


def _broken(memory: ConversationState, what: str, error: Exception) -> ConversationState:
    """A world's own code may raise anything: from then on nothing is certain."""
    reason = f"{what} could not be read ({type(error).__name__}: {error})"
    return {**memory, "broken": reason}


def carried_out(call: Call, answer: ToolMessage) -> Call | None:
    """The call that an answer is about as it reached the tool; None if it did not.

    A person or another middleware may have changed it.
    """
    decision = decision_of(answer)
    if decision.get("ran") is False:
        return None
    return Call(**decision["call"]) if decision.get("call") else call


def decision_of(message: AnyMessage) -> Mapping[str, Any]:
    """What the guard decided about the call that a message answers; empty if it did not."""
    return cast(Mapping[str, Any], getattr(message, "response_metadata", {}).get(DECISION) or {})


def as_call(call: Mapping[str, Any]) -> Call:
    """A tool call of LangChain's as ours."""
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
