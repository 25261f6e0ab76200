"""Tracks a conversation for the guard: the goal, and a belief from the tools' answers.

Each message is read once. A message of the user may change the goal; the belief stays. An answer
that the guard wrote says nothing about the world.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from typing_extensions import TypedDict

from rpms.guard.decision import GUARD_FAILED, Judgement, judge
from rpms.rules import Manual
from rpms.rules.answers import GuardedWorld, after_answer
from rpms.rules.calls import assume, note_call
from rpms.rules.check import sound_manual
from rpms.rules.comparisons import SAID
from rpms.rules.loader import overlay, read_manual
from rpms.vocabulary.belief import Belief, Event, copy_belief, empty_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

DECISION = "rpms"
"""The key of the guard's decision in a tool message's metadata, which no provider is sent."""
FAILED = "if the call that failed took effect all the same"
BESIDE = "once the calls before it in this reply have taken effect"


class Ran(TypedDict):
    """A call that the guard let through, and how it ended: ``answer`` is None if nothing says so.

    ``status`` is ``running``, or that of the tool's message.
    """

    id: str
    reply: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    status: str
    answer: str | None
    at: str


class ConversationState(TypedDict):
    """The guard's knowledge of one conversation.

    Attributes:
        id: of the conversation, where it has no thread.
        belief: what the tools' answers have shown.
        worst: the belief if every call that raised took effect; None if none raised.
        goal: what the user wants; None before the first message that states it.
        read: the ids of the messages, and of the calls that ran, that were read.
        open: the calls of the last reply that nothing is known of yet.
        reply: the id of that reply.
        context: the runtime context of the run, of a live guard; it is not kept.
        broken: why an answer could not be read; from then on every call is refused.
    """

    id: str
    belief: Belief
    worst: Belief | None
    goal: GoalSpec | None
    read: list[str]
    open: list[ToolCall]
    reply: str
    broken: str
    context: NotRequired[Mapping[str, Any]]


class MessageTurn(NamedTuple):
    """A message of the user, or a reply of the model with the answers to its calls.

    Attributes:
        name: the message's id; without one, its place and type.
        place: of the message in the conversation, from 0.
        message: the user's or the model's.
        answers: the answers that there are, in the order in which they came, each by the place of
            its call in the reply.
    """

    name: str
    place: int
    message: AnyMessage
    answers: dict[int, ToolMessage]

    @property
    def calls(self) -> list[ToolCall]:
        return self.message.tool_calls if isinstance(self.message, AIMessage) else []

    @property
    def open_calls(self) -> list[ToolCall]:
        return [call for place, call in enumerate(self.calls) if place not in self.answers]


def turns_of(messages: Sequence[AnyMessage]) -> list[MessageTurn]:
    """The turns of a conversation: each answer belongs to a call of the last reply before it.

    A model may give two calls the same id: then the first answer is that of the first call.
    """
    turns = list[MessageTurn]()
    reply: MessageTurn | None = None
    for place, message in enumerate(messages):
        if isinstance(message, HumanMessage | AIMessage):
            name = message.id or f"{place}:{message.type}"
            turns.append(MessageTurn(name, place, message, {}))
            reply = turns[-1] if isinstance(message, AIMessage) else reply
        elif isinstance(message, ToolMessage) and reply is not None:
            for number, call in enumerate(reply.calls):
                if call["id"] == message.tool_call_id and number not in reply.answers:
                    reply.answers[number] = message
                    break
    return turns


class ConversationTracker(NamedTuple):
    """Reads conversations and judges their calls, by a world and its manual.

    With ``trust``, tool messages are evidence: of a recorded conversation, or of a history that a
    server rebuilds itself.
    """

    world: GuardedWorld
    manual: Manual
    trust: bool = False

    @classmethod
    def open(cls, world: GuardedWorld, rules: str | Path = "") -> ConversationTracker:
        """Load the world's manual, overlaid with a folder of ``rules`` if one is given."""
        folder, over = Path(world.rules), Path(rules) if rules else None
        manual = read_manual(folder)
        return cls(world, sound_manual(overlay(manual, over) if over else manual, folder, over))

    def begin(self) -> ConversationState:
        return ConversationState(
            id=uuid4().hex, belief=empty_belief(), worst=None, goal=None, read=[], open=[],
            reply="", broken="",
        )  # fmt: skip

    def read(
        self,
        state: ConversationState,
        messages: Sequence[AnyMessage],
        ran: Sequence[Ran] = (),
        watched: Collection[str] = (),
    ) -> ConversationState:
        """Read the messages, and how the calls ended that ran, if the state does not have them yet.

        ``watched`` holds the replies whose calls cannot have run without this guard: an answer to
        one that did not run (of a cache, of a person) says nothing. Any other call without a record
        of its run may have been carried out.
        """
        done = {*state["read"]}
        recorded = {(each["reply"], each["call_id"]) for each in ran}
        turns = turns_of(messages)
        if state["open"] and all(turn.name != state["reply"] for turn in turns):
            # What keeps a context short may remove a reply and leave its answers.
            taken = [answer for turn in turns for answer in turn.answers.values()]
            left = [m for m in messages if isinstance(m, ToolMessage) and m not in taken]
            removed = AIMessage("", tool_calls=state["open"])
            rest = MessageTurn(state["reply"], 0, removed, dict(enumerate(left)))
            state = self._take_answers(state, rest, recorded, watched)
        for turn in turns:
            if turn.name not in done:
                if isinstance(turn.message, HumanMessage):
                    state = self._hear(state, turn.message.text)
                else:
                    state = state if self.trust else self.settle(state, watched)
                    calls = [c for c in turn.calls if (turn.name, c["id"]) not in recorded]
                    state = {**state, "reply": turn.name, "open": calls}
                state = {**state, "read": [*state["read"], turn.name]}
            if turn.name == state["reply"]:
                state = self._take_answers(state, turn, recorded, watched)
        return self._take_runs(state, ran)

    def _take_answers(
        self,
        state: ConversationState,
        turn: MessageTurn,
        recorded: Collection[tuple[str, str | None]],
        watched: Collection[str],
    ) -> ConversationState:
        """Read the answers to calls that are open; those that change something come last."""
        changes = list[tuple[Call, ToolMessage]]()
        for answer in turn.answers.values():
            call = next((c for c in state["open"] if c["id"] == answer.tool_call_id), None)
            if call is None or (turn.name, call["id"]) in recorded:
                continue
            state = {**state, "open": [each for each in state["open"] if each is not call]}
            if not self.trust:
                ran_call = carried_out(as_call(call), answer)
                if ran_call is not None and turn.name not in watched:
                    state = self.suspect(state, [ran_call])
            elif self.changes(call["name"]):
                changes.append((as_call(call), answer))
            else:
                state = self.take(state, as_call(call), answer)
        return self._take_changes(state, changes)

    def _take_runs(self, state: ConversationState, ran: Sequence[Ran]) -> ConversationState:
        """Read how calls ended.

        Those that ran side by side ended in no known order: one may have looked up what another
        changed later. So those that change something are read last.
        """
        done = {*state["read"]}
        new = {each["id"]: each for each in ran if each["id"] not in done}
        if not new:
            return state
        changes, times = list[tuple[Call, ToolMessage]](), list[str]()
        for each in new.values():
            call = Call(each["tool"], each["arguments"])
            if each["answer"] is None:
                state = stamped(self.suspect(state, [call]), state, each["at"])
                continue
            status: Any = each["status"]
            answer = ToolMessage(each["answer"], tool_call_id="", status=status)
            if self.changes(call.tool):
                changes.append((call, answer))
                times.append(each["at"])
            else:
                state = self.take_at(state, call, answer, each["at"])
        state = self._take_changes(state, changes, times)
        ended = {(each["reply"], each["call_id"]) for each in new.values()}
        rest = [call for call in state["open"] if (state["reply"], call["id"]) not in ended]
        return {**state, "open": rest, "read": [*state["read"], *new]}

    def changes(self, tool: str) -> bool:
        """Return whether a tool changes something, by the manual."""
        rule = self.manual.by_name.get(tool)
        return rule is not None and rule.changes

    def suspect(self, state: ConversationState, calls: Sequence[Call]) -> ConversationState:
        """The state if these calls may have been carried out."""
        return {**state, "worst": assume(self.manual, calls, state["worst"] or state["belief"])}

    def _take_changes(
        self,
        state: ConversationState,
        changes: Sequence[tuple[Call, ToolMessage]],
        times: Sequence[str] = (),
    ) -> ConversationState:
        for number, (call, answer) in enumerate(changes):
            state = self.take_at(state, call, answer, times[number] if times else "")
        ran = (carried_out(call, answer) for call, answer in reversed(changes))
        executed = [*filter(None, ran)]
        if len(executed) > 1:  # their order is unknown
            latest = assume(self.manual, executed, state["worst"] or state["belief"])
            latest["calls"] = (state["worst"] or state["belief"])["calls"]
            state = {**state, "worst": None if latest == state["belief"] else latest}
        return state

    def settle(self, state: ConversationState, watched: Collection[str] = ()) -> ConversationState:
        """Close a reply: a call that nothing is known of may have taken effect."""
        if state["open"] and state["reply"] not in watched:
            state = self.suspect(state, [as_call(call) for call in state["open"]])
        return {**state, "open": []}

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

    def take_at(
        self, state: ConversationState, call: Call, answer: ToolMessage, at: str
    ) -> ConversationState:
        """Read the answer to a call that was made at this time, as far as it is known."""
        return stamped(self.take(state, call, answer), state, at)

    def take(self, state: ConversationState, call: Call, answer: ToolMessage) -> ConversationState:
        """Read an answer; one that cannot be read marks the state as broken."""
        try:
            return self._take(state, call, answer)
        except Exception as error:
            return _broken(state, f"the answer of {call.tool}", error)

    def _take(self, state: ConversationState, call: Call, answer: ToolMessage) -> ConversationState:
        """A call that raised may have taken effect, until an answer shows otherwise."""
        ran = carried_out(call, answer)
        if ran is None:
            return state
        belief, worst = state["belief"], state["worst"]
        if answer.status == "error":
            worst = assume(self.manual, [ran], worst or belief)
            belief = copy_belief(belief)
            note_call(ran, belief, failed=True)
            return {**state, "belief": belief, "worst": worst}
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
        context = state.get("context")
        judgement = judge(self.manual, call, state["belief"], goal, possible, allowed, context)
        if judgement.verdict == "refuse":
            return judgement
        for other in running:  # the order is unknown: each may run after this call
            rest = [each for each in running if each is not other]
            later = assume(self.manual, [*rest, call], base)
            conflict = judge(self.manual, other, later, goal, context=context)
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


def stamped(after: ConversationState, before: ConversationState, at: str) -> ConversationState:
    """The state with the time of the calls that it has and the state before has not."""
    if not at:
        return after
    stamped_state = {**after}
    for name in ("belief", "worst"):
        belief, old = after[name], before[name] or before["belief"]
        if belief is not None:
            recorded = len(old["calls"])
            calls = [
                *belief["calls"][:recorded],
                *({**c, "at": at} for c in belief["calls"][recorded:]),
            ]
            stamped_state[name] = {**belief, "calls": calls}
    return cast(ConversationState, stamped_state)


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


def pending(messages: Sequence[AnyMessage]) -> tuple[str, list[ToolCall]]:
    """The last reply's name and those of its calls that have no answer yet."""
    replies = (turn for turn in reversed(turns_of(messages)) if isinstance(turn.message, AIMessage))
    last = next(replies, None)
    return (last.name, last.open_calls) if last else ("", [])


def before(calls: Sequence[ToolCall], call_id: str | None) -> Iterator[ToolCall]:
    """The calls of a reply that come before one of them."""
    for call in calls:
        if call["id"] == call_id:
            return
        yield call
