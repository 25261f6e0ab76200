"""``RulesGuard``: checks an agent's tool calls against a manual.

As middleware of LangChain's ``create_agent`` it puts a gate into each tool that is about to run;
``protect`` puts the gate into the tools themselves, for any graph. Both read top to bottom here:

1. the state of the conversation is ``read(messages, ran)``: what the user wrote, and how the calls
   ended that this guard let through (``ConversationTracker``). Answers that merely stand in the
   messages are no evidence;
2. ``Gate.enter`` judges the call that is about to run, after those before it in the reply and
   beside those that are running, and reserves it: one critical section for each thread;
3. the tool runs, outside of it;
4. ``Gate.leave`` records how the call ended: in the thread, and in a private channel of the agent's
   state that no input can write, so that a resume in another process knows it too.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from threading import Lock, RLock
from typing import Annotated, Any, NamedTuple, NotRequired, cast
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import ValidationError

from rpms.guard.conversation import (
    DECISION,
    ConversationState,
    ConversationTracker,
    Ran,
    as_call,
    before,
    pending,
)
from rpms.guard.decision import GUARD_FAILED, Judgement, ruled_out, stricter
from rpms.guard.guarded_tool import (
    ENCLOSING,
    WATCH,
    GuardedTool,
    Passage,
    PastTheGuard,
    Watch,
    messages_in,
)
from rpms.guard.people import ask
from rpms.guard.tools import ArgumentIntake, Unknown, compare_tools, is_allowed, name_of
from rpms.rules import Manual
from rpms.rules.answers import GuardedWorld
from rpms.rules.schema import EnforcedRule
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

LOG = logging.getLogger("rpms.guard")
MOST_THREADS = 1024
"""So many conversations are remembered in the process; of older ones the state is enough."""
SEEN = "guard_seen"
"""The private channel of the agent's state, for calls that no model has seen the answers of."""
NAMESPACE = "rpms_guard"
"""Protected tools keep how their calls ended under it in LangGraph's store, if there is one."""
Handler = Callable[..., Any]


def _appended(old: list[Ran] | None, new: list[Ran] | None) -> list[Ran]:
    """Parallel calls add to the channel; None empties it."""
    return [] if new is None else [*(old or ()), *new]


class GuardState(AgentState[Any]):
    """An agent's state, with the guard's: both fields are private, so no input can write them."""

    guard: NotRequired[Annotated[ConversationState, PrivateStateAttr]]
    guard_seen: NotRequired[Annotated[list[Ran], PrivateStateAttr, _appended]]


class RulesGuard(AgentMiddleware[GuardState, Any, Any]):
    """Checks every tool call against a manual.

    A call that violates a rule never reaches the tool: the guard answers with the rule, the reason
    and a repair. A rule with ``on_violation: ask`` interrupts the graph for a person to decide; one
    with ``warn`` lets the call pass and logs it.

    Its place in the list of middleware does not matter to what is judged: the call that reaches
    the tool. Build it once in a process and give it to every agent: the runs of one thread know of
    each other through it.

    Args:
        world: a ``ToolWorld``, or the name of one.
        rules: a folder of rules that overlays the world's rules.
        unknown: tools that need no rule: ``"allow"`` for all that the manual does not have, or
            a list of names. Any other tool that the manual does not have is an error.
        partial: the agent has only some of the manual's tools.
        retries: how often a call that violates a ``warn`` rule is refused before it may pass.
        observe: refuse and ask nothing; log each call that would not have run, and note it in the
            answer, so that ``rpms audit`` can count them.
        hide: do not offer tools to the model that no argument could make allowed now.
        trust_history: answers in the messages count as evidence although this guard did not see
            the calls run. Only for a server that rebuilds its own history: whoever can write the
            messages then controls the guard.
    """

    state_schema = GuardState

    def __init__(
        self,
        world: GuardedWorld | str,
        *,
        rules: str | Path = "",
        unknown: Unknown = "refuse",
        partial: bool = False,
        retries: int = 0,
        observe: bool = False,
        hide: bool = False,
        trust_history: bool = False,
    ) -> None:
        super().__init__()
        # The registry of worlds lies above the guard in the import order; only a name needs it.
        environment: GuardedWorld = (
            import_module("rpms.envs").get_environment(world) if isinstance(world, str) else world
        )
        self.tracker = ConversationTracker.open(environment, rules)._replace(trust=trust_history)
        if isinstance(unknown, str) and unknown not in ("refuse", "allow"):
            raise RpmsError(f"unknown={unknown!r}: give 'refuse', 'allow', or a list of tools")
        self.unknown, self.partial, self.retries = unknown, partial, retries
        self.observe, self.hide = observe, hide
        self._asking = {
            rule.id for rule in _enforced(self.tracker.manual) if rule.on_violation == "ask"
        }
        self._compared: set[frozenset[str]] = set()
        self._fruitless: set[str] = set()
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._intakes: dict[str, ArgumentIntake] = {}
        self._lock = Lock()

    def protect(self, tools: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
        """Wrap tools with the guard, for any graph, ``ToolNode`` or plain call."""
        langchain_tools = [each if isinstance(each, BaseTool) else as_tool(each) for each in tools]
        self.compare(langchain_tools)
        gate = ToolsGate(self, langchain_tools)
        rules = self.tracker.manual.by_name
        return [GuardedTool.around(t, gate) if t.name in rules else t for t in langchain_tools]

    def compare(self, tools: Sequence[Any]) -> None:
        """Raise an error if the tools and the manual do not match."""
        world = self.tracker.world
        name = world.name or type(world).__name__  # an object that is in no registry
        compare_tools(self.tracker.manual, tools, self.unknown, self.partial, name)

    def source(self, rule: str) -> str:
        """The source that a rule of the manual cites."""
        return next((each.source for each in _enforced(self.tracker.manual) if each.id == rule), "")

    def before_model(self, state: GuardState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Read how the calls ended into the guard's state."""
        guard = state.get("guard") or self.tracker.begin()
        thread = self.thread(_thread_id(runtime) or guard["id"])
        with thread.lock:
            ran = [*thread.ended(), *(state.get("guard_seen") or ())]
            guard = self.tracker.read(guard, state["messages"], ran, thread.replies)
            thread.forget_answers(guard["reply"])  # they are in the state now
        return {"guard": self.tracker.settle(guard, thread.replies), SEEN: None}

    def after_model(self, state: GuardState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Note the calls of the reply: their answers might be removed before they are read."""
        guard = state.get("guard") or self.tracker.begin()
        thread = self.thread(_thread_id(runtime) or guard["id"])
        thread.replies.add(pending(state["messages"])[0])
        ran = [*thread.ended(), *(state.get("guard_seen") or ())]
        return {"guard": self.tracker.read(guard, state["messages"], ran, thread.replies)}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Compare the agent's tools with the manual when they are first seen."""
        return handler(self._offered(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """The same on an event loop."""
        return await handler(self._offered(request))

    def _offered(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with the tools that the model may see; they are compared at first sight."""
        self._compare_once(request)
        if not self.hide or self.observe:
            return request
        guard = cast(GuardState, request.state).get("guard") or self.tracker.begin()
        context, shown = _context(request.runtime), list[Any]()
        for tool in request.tools:
            name = name_of(tool)
            rule, why = ruled_out(self.tracker.manual, name, guard["belief"], context)
            if rule:
                LOG.info("%s is not offered to the model [%s]: %s", name, rule, why)
            else:
                shown.append(tool)
        return request.override(tools=shown)

    def _compare_once(self, request: ModelRequest[Any]) -> None:
        names = frozenset(map(name_of, request.tools))
        if names not in self._compared:
            self.compare(request.tools)
            self._compared.add(names)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Any:
        """Put the gate into the tool; tools that run past it meanwhile are stopped."""
        gate = CallGate(self, request)
        if gate.refusal is not None:
            return gate.refusal
        watch = WATCH.set(self._watch)
        try:
            return gate.close(handler(gate.request))
        except PastTheGuard as error:
            return gate.stop(error)
        finally:
            WATCH.reset(watch)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Any:
        """The same on an event loop."""
        gate = CallGate(self, request)
        if gate.refusal is not None:
            return gate.refusal
        watch = WATCH.set(self._watch)
        try:
            return gate.close(await handler(gate.request))
        except PastTheGuard as error:
            return gate.stop(error)
        finally:
            WATCH.reset(watch)

    @property
    def _watch(self) -> Watch:
        rules = self.tracker.manual.by_name
        return Watch(lambda name: name not in rules and is_allowed(name, self.unknown))

    def thread(self, name: str) -> Thread:
        """What this process knows of a thread; inside a guarded tool, of the thread around it."""
        if (enclosing := ENCLOSING.get()) is not None:
            return cast(Thread, enclosing)
        with self._lock:
            if name not in self._threads:
                self._threads[name] = Thread(self.tracker.begin())
                if len(self._threads) > MOST_THREADS:
                    idle = (k for k, each in self._threads.items() if not each.running())
                    self._threads.pop(next(idle, ""), None)
            self._threads.move_to_end(name)
            return self._threads[name]

    def decide(
        self,
        conversation: ConversationState,
        call: Call,
        running: Sequence[Call],
        tool: Any = None,
        warned: Callable[[str], int] = lambda rule: 0,
    ) -> CallDecision:
        """Judge a call with the tool's defaults, and ask a person if a rule says so.

        ``warned`` returns how often a ``warn`` rule has refused a call.
        """
        allowed: set[str] = set()
        while True:
            taken = self._intake(call.tool, tool).take(call.arguments)
            forms = [Call(call.tool, taken.filled), Call(call.tool, taken.converted)]
            if call.tool not in self.tracker.manual.by_name and is_allowed(call.tool, self.unknown):
                return CallDecision(call, forms[1], Judgement("allow"), taken.valid)
            judgement = self.tracker.judge(conversation, forms[0], running, allowed)
            if judgement.verdict != "refuse" and repr(forms[0]) != repr(forms[1]):
                converted = self.tracker.judge(conversation, forms[1], running, allowed)
                judgement = stricter(judgement, converted)
            if self.observe and judgement.verdict != "allow":
                LOG.warning("%s", judgement.words(call).replace(" was not ", " would not be ", 1))
                observed = judgement._replace(verdict="warn")
                return CallDecision(call, forms[1], observed, taken.valid, judgement.verdict)
            if judgement.verdict == "warn" and warned(judgement.rule) < self.retries:
                judgement = judgement._replace(verdict="refuse")
            if judgement.verdict == "warn":
                LOG.warning("%s is against %s: %s", call, judgement.rule, judgement.reason)
            for fruitless in judgement.fruitless:
                if fruitless not in self._fruitless:
                    self._fruitless.add(fruitless)
                    LOG.warning("%s was made and did not show what a rule needs", fruitless)
            if judgement.verdict != "ask":
                return CallDecision(call, forms[1], judgement, taken.valid)
            answer = ask(call, judgement)
            if answer.arguments is not None:  # a person wrote these: no second approval
                call, allowed = Call(call.tool, answer.arguments), {*self._asking}
            elif answer.approved:
                allowed.add(judgement.rule)
            else:
                reason = f"{judgement.reason}; {answer.why}"
                return CallDecision(call, forms[1], Judgement("refuse", judgement.rule, reason))

    def _intake(self, name: str, tool: Any) -> ArgumentIntake:
        intake = self._intakes.get(name)
        if intake is None or intake.source is not getattr(tool, "args_schema", None):
            intake = self._intakes[name] = ArgumentIntake(tool)
        return intake


class Thread:
    """The calls of one conversation that this process has let through, and how they ended."""

    def __init__(self, conversation: ConversationState) -> None:
        self.lock = RLock()
        self.runs: dict[str, Ran] = {}
        # The runs of each call of a reply: a middleware may repeat one, and keep either answer.
        self.by_call: dict[tuple[str, str], list[Ran]] = {}
        self.replies: set[str] = set()  # those that came from the model in this process
        self.refused = Counter[str]()
        # Of protected tools, whose graph keeps no state for them:
        self.conversation = conversation
        self.task, self.answers = "", dict[str, tuple[Call, Any]]()
        self.round = Round(None)

    def ended(self) -> list[Ran]:
        return [each for each in self.runs.values() if each["status"] != "running"]

    def running(self) -> list[Ran]:
        return [each for each in self.runs.values() if each["status"] == "running"]

    def reserve(self, passage: Passage, reply: str, at: str) -> Ran:
        """Record that an admitted call runs, by the manual's time or the clock."""
        judged = passage.decision.judged
        run = Ran(
            id=uuid4().hex, reply=reply, call_id=passage.call_id, tool=judged.tool,
            arguments=dict(judged.arguments), status="running", answer=None,
            at=at or datetime.now(UTC).isoformat(),
        )  # fmt: skip
        self.runs[run["id"]] = run
        self.by_call.setdefault((reply, run["call_id"]), []).append(run)
        return run

    def end(self, passage: Passage, answer: Any, error: BaseException | None) -> bool:
        """Record how a call ended; return whether it may have been carried out."""
        run, decision = passage.run, passage.decision
        if isinstance(error, GraphBubbleUp) or decision.not_taken(error):
            del self.runs[run["id"]]  # it gives its reservation back
            self.by_call[run["reply"], run["call_id"]].remove(run)
            return False
        messages = [m for m in messages_in(answer) if m.tool_call_id == passage.call_id]
        message = messages[0] if messages else _as_message(answer, error)
        run["answer"], run["status"] = message.text, message.status
        return True

    def forget_answers(self, reply: str | None = None) -> None:
        """Keep of the calls of a reply, by default of all, that they ran."""
        for each in self.ended():
            if each["answer"] is not None and reply in (None, each["reply"]):
                self.runs[each["id"]] = {**each, "answer": None}
                self.by_call.pop((each["reply"], each["call_id"]), None)


class Gate(ABC):
    """The gate in front of tools: judges each call that is about to run."""

    def __init__(self, guard: RulesGuard) -> None:
        self.guard, self.tracker = guard, guard.tracker

    def enter(self, passage: Passage) -> Any:
        """Admit a call that is right with and without the effects of the running calls."""
        passage.thread = thread = self.thread_of(passage)
        with thread.lock:
            try:
                if (earlier_answer := self.known_answer(thread, passage)) is not None:
                    return earlier_answer
                reply, calls = pending(passage.messages)
                decision = passage.decision = self.judge(thread, passage, reply, calls)
            except GraphBubbleUp:  # interrupts for a person
                raise
            except Exception as error:
                LOG.exception("the guard failed")
                decision = failure(passage.call, error)
            if decision.refused:
                thread.refused[decision.judgement.rule] += 1
                return decision.refusal(passage.call_id, passage.proposal)
            passage.call, passage.run = (
                decision.call,
                thread.reserve(passage, reply, self.tracker.manual.environment.now),
            )
            return None

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Record how a call ended, and note the decision in its answer."""
        with passage.thread.lock:
            ran = passage.thread.end(passage, answer, error)
            for message in messages_in(answer):
                if message.tool_call_id == passage.call_id:
                    passage.decision.note(message, passage.proposal, ran)
            self.after(passage, answer, error, ran)

    def judge(
        self, thread: Thread, passage: Passage, reply: str, calls: Sequence[ToolCall]
    ) -> CallDecision:
        if [str(call["id"]) for call in calls].count(passage.call_id) > 1:
            return failure(passage.call, f"two calls of this reply have the id '{passage.call_id}'")
        conversation = self.conversation(thread, passage)
        running = [
            Call(each["tool"], each["arguments"]) for each in thread.runs.values()
            if each["status"] == "running" or self.is_beside(each, passage)
        ]  # fmt: skip
        earlier = self.beside(thread, passage, reply, calls, conversation)
        tool, refused = passage.tool, thread.refused.__getitem__
        return self.guard.decide(conversation, passage.call, [*running, *earlier], tool, refused)

    def beside(
        self,
        thread: Thread,
        passage: Passage,
        reply: str,
        calls: Sequence[ToolCall],
        conversation: ConversationState,
    ) -> list[Call]:
        """The calls of the reply that come before this one and have not begun yet."""
        begun = {each["call_id"] for each in thread.runs.values() if each["reply"] == reply}
        waiting = [as_call(c) for c in before(calls, passage.call_id) if str(c["id"]) not in begun]
        return self.tracker.passing(conversation, waiting)

    def is_beside(self, run: Ran, passage: Passage) -> bool:
        """Return True for another call of the same reply, if the calls of a reply run together."""
        return False

    @abstractmethod
    def thread_of(self, passage: Passage | None) -> Thread:
        """The thread that a call belongs to."""

    @abstractmethod
    def conversation(self, thread: Thread, passage: Passage) -> ConversationState:
        """The state of the conversation, as far as it is evidence for a call."""

    def known_answer(self, thread: Thread, passage: Passage) -> Any:
        """The answer of a call that ran before its node was interrupted."""
        return None

    def after(self, passage: Passage, answer: Any, error: Any, ran: bool) -> None:  # noqa: B027
        """What else to do once a call has ended."""


class CallGate(Gate):
    """The gate that the middleware puts into the tool of one call of an agent."""

    def __init__(self, guard: RulesGuard, request: ToolCallRequest) -> None:
        super().__init__(guard)
        self.request, self.state = request, request.state
        self.reply, _ = pending(self.state["messages"])
        self.call, self.call_id = as_call(request.tool_call), str(request.tool_call["id"])
        self.entered = False
        self.refusal: ToolMessage | None = None
        if isinstance(request.tool, BaseTool):
            self.request = request.override(tool=GuardedTool.around(request.tool, self))
        else:  # the model made its name up: no tool will run
            decision = guard.decide(guard.tracker.begin(), self.call, ())
            if decision.refused:
                self.refusal = decision.refusal(self.call_id, self.call)

    def enter(self, passage: Passage) -> Any:
        passage.state, passage.call_id = self.state, self.call_id
        passage.runtime = passage.runtime or self.request.runtime
        if self.entered or repr(passage.call.arguments) != repr(self.call.arguments):
            LOG.warning("a middleware behind the guard changed or repeated %s", self.call)
        self.entered, passage.proposal = True, self.call
        return super().enter(passage)

    def thread_of(self, passage: Passage | None) -> Thread:
        guard = self.state.get("guard") or {"id": self.reply}
        return self.guard.thread(_thread_id(self.request.runtime) or guard["id"])

    def conversation(self, thread: Thread, passage: Passage) -> ConversationState:
        guard = self.state.get("guard") or self.tracker.begin()
        ran = [each for each in thread.ended() if not self.is_beside(each, passage)]
        ran += self.state.get(SEEN) or ()
        read = self.tracker.read(guard, self.state["messages"], ran, thread.replies)
        return {**read, "context": _context(passage.runtime)}

    def is_beside(self, run: Ran, passage: Passage) -> bool:
        """Which of them has ended already is chance, so none of their answers is evidence."""
        return run["reply"] == self.reply and run["call_id"] != passage.call_id

    def close(self, answer: Any) -> Any:
        """The answer, with how the call ended for the private channel.

        Also with how it ended before: a middleware may repeat a call, and keep either answer.
        """
        if not self.entered:
            LOG.warning("a middleware behind the guard answered %s itself", self.call)
        runs = self.thread_of(None).by_call.get((self.reply, self.call_id))
        if not runs:
            return answer
        update: dict[str, Any] = {SEEN: runs}
        if isinstance(answer, Command):
            updates = answer.update
            if isinstance(updates, Mapping):
                update = {**updates, **update}
            elif updates is not None:
                return _replaced(answer, [*cast(Any, updates), *update.items()])
            return _replaced(answer, update)
        if isinstance(answer, list):
            return [*answer, Command(update=update)]
        return Command(update={"messages": [answer], **update})

    def stop(self, error: PastTheGuard) -> Any:
        """The refusal of a call whose tool was swapped, or run past the gate."""
        self.entered = True
        reason = f"a middleware behind the guard ran '{error}' past it"
        LOG.warning("%s: %s", self.call, reason)
        judgement = Judgement("refuse", GUARD_FAILED, reason)
        decision = CallDecision(self.call, self.call, judgement)
        return self.close(decision.refusal(self.call_id, self.call))


def _context(runtime: Any) -> dict[str, Any]:
    """The runtime context of a run: who is logged in, and what else the caller says."""
    context = getattr(runtime, "context", None)
    if isinstance(context, Mapping):
        return dict(context)
    return dict(getattr(context, "__dict__", {}))


def _replaced(command: Command[Any], update: Any) -> Command[Any]:
    return Command(graph=command.graph, update=update, resume=command.resume, goto=command.goto)


def _thread_id(runtime: Any) -> str:
    """The thread of a run; empty without a checkpointer."""
    config = getattr(runtime, "config", None)
    if config is None:
        with suppress(RuntimeError):  # outside of a graph
            config = get_config()
    thread_id = ((config or {}).get("configurable") or {}).get("thread_id")
    return str(
        thread_id or getattr(getattr(runtime, "execution_info", None), "thread_id", "") or ""
    )


class RoundEntry(NamedTuple):
    """A call as the model wrote it, and the decision about it."""

    proposal: Call
    decision: CallDecision


class Round:
    """The calls of a reply in one run of a node, decided in order before any of them runs.

    So a person is asked before anything happens: after the interrupt the node runs again from its
    start, perhaps in another process, and no call must have been carried out by then. It also
    assigns the answers of several people to the right calls.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.decisions: dict[str, RoundEntry] = {}
        self.interrupt: GraphBubbleUp | None = None


class ToolsGate(Gate):
    """The gate of protected tools, by the thread that their calls belong to.

    Calls belong to the conversation of their thread id; without one, to that of the graph's first
    message. Without a graph, all calls of the tools that were protected together form one
    conversation.
    """

    def __init__(self, guard: RulesGuard, tools: Sequence[BaseTool]) -> None:
        super().__init__(guard)
        self.tools, self.name = {tool.name: tool for tool in tools}, uuid4().hex

    def thread_of(self, passage: Passage | None) -> Thread:
        assert passage is not None
        messages = passage.messages
        name = passage.thread_id or f"{self.name}:{messages[0].id if messages else ''}"
        thread = self.guard.thread(name)
        store = getattr(passage.runtime, "store", None)
        if store is not None and passage.thread_id and not thread.runs:
            for item in store.search((NAMESPACE, passage.thread_id), limit=10_000):
                thread.runs.setdefault(item.key, cast(Ran, dict(item.value)))
        return thread

    def conversation(self, thread: Thread, passage: Passage) -> ConversationState:
        read = self.tracker.read(
            thread.conversation, passage.messages, thread.ended(), thread.replies
        )
        if not thread.running():  # else a call that runs may yet turn out to be the earlier one
            thread.conversation = read
        return {**read, "context": _context(passage.runtime)}

    def known_answer(self, thread: Thread, passage: Passage) -> Any:
        if passage.task and passage.task == thread.task:
            proposal, answer = thread.answers.get(passage.call_id, (None, None))
            if proposal == passage.call:
                return answer
        return None

    def judge(
        self, thread: Thread, passage: Passage, reply: str, calls: Sequence[ToolCall]
    ) -> CallDecision:
        if passage.messages:
            thread.replies.add(reply)
        if passage.is_sent or not passage.messages:  # its siblings are judged in their own tasks
            return super().judge(thread, passage, reply, calls)
        if passage.node_run is None or passage.node_run is not thread.round.run:
            thread.round = Round(passage.node_run)
            self._decide_all(thread, passage, reply, calls)
        if thread.round.interrupt is not None:
            raise thread.round.interrupt
        entry = thread.round.decisions.pop(passage.call_id, None)
        if entry is not None and entry.proposal == passage.call:
            return entry.decision
        return super().judge(thread, passage, reply, calls)

    def _decide_all(
        self, thread: Thread, passage: Passage, reply: str, calls: Sequence[ToolCall]
    ) -> None:
        conversation = self.conversation(thread, passage)
        earlier_answer = {each["call_id"] for each in thread.ended() if each["reply"] == reply}
        running = [Call(each["tool"], each["arguments"]) for each in thread.running()]
        for call in calls:
            proposal, tool = as_call(call), self.tools.get(call["name"])
            if tool is None or str(call["id"]) in earlier_answer:
                continue
            try:
                refused = thread.refused.__getitem__
                decision = self.guard.decide(conversation, proposal, running, tool, refused)
            except GraphBubbleUp as interrupt:
                thread.round.interrupt = interrupt
                raise
            if [str(each["id"]) for each in calls].count(str(call["id"])) == 1:
                thread.round.decisions[str(call["id"])] = RoundEntry(proposal, decision)
            if not decision.refused:
                running.append(decision.judged)

    def beside(
        self,
        thread: Thread,
        passage: Passage,
        reply: str,
        calls: Sequence[ToolCall],
        conversation: ConversationState,
    ) -> list[Call]:
        if passage.is_sent or not passage.messages:
            return super().beside(thread, passage, reply, calls, conversation)
        entries = [entry.decision for entry in thread.round.decisions.values()]
        return [decision.judged for decision in entries if not decision.refused]

    def after(self, passage: Passage, answer: Any, error: Any, ran: bool) -> None:
        thread = passage.thread
        if error is None:
            if passage.task != thread.task:
                thread.task, thread.answers = passage.task, {}
            thread.answers[passage.call_id] = (passage.proposal, answer)
        store = getattr(passage.runtime, "store", None)
        if ran and store is not None and passage.thread_id:
            store.put((NAMESPACE, passage.thread_id), passage.run["id"], dict(passage.run))
        if not thread.running():
            thread.conversation = self.tracker.read(thread.conversation, (), thread.ended())
            if ENCLOSING.get() is None:  # else the agent around it may not have read them
                thread.forget_answers()


class CallDecision(NamedTuple):
    """The decision about a call.

    Attributes:
        call: the call to carry out; a person may have changed it.
        judged: the call with the tool's types and defaults.
        judgement: the rule and the reason.
        valid: false if the tool will reject the arguments.
        observed: the verdict that a guard would have given which does more than observe.
    """

    call: Call
    judged: Call
    judgement: Judgement
    valid: bool = True
    observed: str = ""

    @property
    def refused(self) -> bool:
        """True if the guard answers instead of the tool."""
        return self.judgement.verdict not in ("allow", "warn")

    def refusal(self, call_id: str, proposal: Call) -> ToolMessage:
        """The answer instead of the tool's."""
        answer = ToolMessage(
            self.judgement.words(self.call),
            tool_call_id=call_id, name=self.call.tool, status="error",
        )  # fmt: skip
        return self.note(answer, proposal, False)

    def note(self, message: ToolMessage, proposal: Call, ran: bool) -> ToolMessage:
        """Write the decision into an answer, for people and logs: the guard never reads it."""
        message.response_metadata[DECISION] = {
            **self.judgement._asdict(), "ran": ran, "proposal": str(proposal),
            "call": self.judged._asdict(),
            **({"observed": self.observed} if self.observed else {}),
        }  # fmt: skip
        return message

    def not_taken(self, error: BaseException | None) -> bool:
        """True if the tool rejected the arguments before it did anything."""
        return isinstance(error, ValidationError) and not self.valid


def failure(call: Call, error: BaseException | str) -> CallDecision:
    """The refusal when the guard itself could not decide."""
    what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    reason = f"the guard itself failed ({what})"
    return CallDecision(call, call, Judgement("refuse", GUARD_FAILED, reason))


def _as_message(answer: Any, error: BaseException | None) -> ToolMessage:
    if error is not None:
        return ToolMessage(f"Error: {error}", tool_call_id="", status="error")
    text = answer if isinstance(answer, str) else json.dumps(answer, default=str)
    return ToolMessage(text, tool_call_id="")


def _enforced(manual: Manual) -> list[EnforcedRule]:
    return [*manual.actions, *manual.environment.policy, *manual.forbidden]
