"""``RulesGuard``: the manual in front of an agent's tools.

As middleware of LangChain's ``create_agent`` it judges every tool call before it runs. What it
knows of the conversation lies in the agent's state, so that it holds after a resume, and only the
guard writes it. ``protect`` puts the same guard into the tools themselves.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, NamedTuple, NotRequired, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from rpms.guard.answers import GuardedWorld
from rpms.guard.conversation import (
    DECISION,
    Conversations,
    ConversationState,
    as_call,
    before,
    decision_of,
    pending,
)
from rpms.guard.decision import Judgement, stricter
from rpms.guard.protected import (
    Decided,
    GuardedTool,
    Passage,
    SessionGate,
    doubled,
    failure,
    messages_in,
)
from rpms.guard.tools import Intake, Unknown, compare_tools, is_allowed, name_of
from rpms.rules import Manual
from rpms.rules.schema import Enforced
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

LOG = logging.getLogger("rpms.guard")
MOST_REPLIES = 1024
Handler = Callable[..., Any]


class GuardState(AgentState[Any]):
    """An agent's state with what the guard knows of the conversation."""

    guard: NotRequired[Annotated[ConversationState, PrivateStateAttr]]


class RulesGuard(AgentMiddleware[GuardState, Any, Any]):
    """Holds every tool call to a manual.

    A call against a rule never reaches the tool: it is answered with the rule, the reason and what
    would help. A rule that says ``on_violation: ask`` interrupts the graph for a person to decide,
    one that says ``warn`` lets the call pass and logs it.

    Put it last in the list of middleware, so that it judges what really runs. One behind it that
    changes a call is noticed: the changed call is judged, too.

    Args:
        world: a ``ToolWorld``, or the name of one.
        rules: a folder of rules to lay over the world's own.
        unknown: tools that need no rule: ``"allow"`` for all that the manual does not have, or
            their names. Any other tool that the manual does not have is an error.
        partial: the agent has only some of the manual's tools.
        retries: how often a call against a rule that only warns is sent back before it may pass.
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
    ) -> None:
        super().__init__()
        # The registry of worlds lies above the guard, and is needed only for a name.
        found: GuardedWorld = (
            import_module("rpms.envs").get_environment(world) if isinstance(world, str) else world
        )
        self.desk = Conversations.open(found, rules)
        if isinstance(unknown, str) and unknown not in ("refuse", "allow"):
            raise RpmsError(f"unknown={unknown!r}: give 'refuse', 'allow', or a list of tools")
        self.unknown, self.partial, self.retries = unknown, partial, retries
        self._asking = {
            rule.id for rule in _enforced(self.desk.manual) if rule.on_violation == "ask"
        }
        self._compared: set[frozenset[str]] = set()
        self.runs: OrderedDict[str, list[ReplyCalls]] = OrderedDict()
        self._intakes: dict[str, Intake] = {}
        self.lock = Lock()

    def protect(self, tools: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
        """The same tools with the guard inside, for any graph, ``ToolNode`` or plain call."""
        made = [each if isinstance(each, BaseTool) else as_tool(each) for each in tools]
        self.compare(made)
        gate = SessionGate(self.desk, self.decide, made)
        known = self.desk.manual.by_name
        return [GuardedTool.around(t, gate) if t.name in known else t for t in made]

    def compare(self, tools: Sequence[Any]) -> None:
        """Raise an error where the tools and the manual do not know each other."""
        world = self.desk.world
        name = world.name or type(world).__name__  # an object that no registry has named
        compare_tools(self.desk.manual, tools, self.unknown, self.partial, name)

    def source(self, rule: str) -> str:
        """Where a rule of the manual comes from, as it says itself."""
        return next((each.source for each in _enforced(self.desk.manual) if each.id == rule), "")

    def before_model(self, state: GuardState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Read the tools' new answers."""
        memory, messages = self.read(state), state["messages"]
        reply = memory.get("reply") or pending(messages)[0]
        return {"guard": self.desk.settle(memory, self._unnoted(messages, reply))}

    def after_model(self, state: GuardState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Keep which calls are due: their answers might be removed before they are read."""
        reply, calls = pending(state["messages"])
        return {"guard": {**self.read(state), "open": calls, "reply": reply}}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Compare the agent's tools with the manual, the first time that they are seen."""
        self._compare_once(request)
        return handler(request)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """The same on an event loop."""
        self._compare_once(request)
        return await handler(request)

    def _compare_once(self, request: ModelRequest[Any]) -> None:
        names = frozenset(map(name_of, request.tools))
        if names not in self._compared:
            self.compare(request.tools)
            self._compared.add(names)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Any:
        """Answer in the tool's place, or let it."""
        gate = self._admit(request)
        if gate.refusal is not None:
            return gate.refusal
        return gate.note(handler(gate.request))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Any:
        """The same on an event loop."""
        gate = self._admit(request)
        if gate.refusal is not None:
            return gate.refusal
        return gate.note(await handler(gate.request))

    def read(self, state: Any) -> ConversationState:
        """What is known of the conversation, with answers that no model has seen yet."""
        return self.desk.read(state.get("guard") or self.desk.begin(), state["messages"])

    def _admit(self, request: ToolCallRequest) -> JudgedGate:
        """Judge a call; a guard that fails refuses."""
        gate = JudgedGate(self, request)
        try:
            gate.judge()
        except GraphBubbleUp:  # a person is asked
            raise
        except Exception as error:
            LOG.exception("the guard failed")
            gate.refuse(failure(gate.call, error))
        return gate

    def decide(
        self,
        memory: ConversationState,
        call: Call,
        running: Sequence[Call],
        tool: Any = None,
        warned: Callable[[str], int] = lambda rule: 0,
    ) -> Decided:
        """Judge a call with the tool's defaults, and ask a person where a rule says so.

        ``warned`` tells how often a rule that only warns has sent a call back.
        """
        allowed: set[str] = set()
        while True:
            taken = self._intake(call.tool, tool).take(call.arguments)
            forms = [Call(call.tool, taken.given), Call(call.tool, taken.converted)]
            if call.tool not in self.desk.manual.by_name and is_allowed(call.tool, self.unknown):
                return Decided(call, forms[1], Judgement("allow"), taken.valid)
            judgement = self.desk.judge(memory, forms[0], running, allowed)
            if judgement.verdict != "refuse" and repr(forms[0]) != repr(forms[1]):
                converted = self.desk.judge(memory, forms[1], running, allowed)
                judgement = stricter(judgement, converted)
            if judgement.verdict == "warn" and warned(judgement.rule) < self.retries:
                judgement = judgement._replace(verdict="refuse")
            if judgement.verdict == "warn":
                LOG.warning("%s is against %s: %s", call, judgement.rule, judgement.reason)
            if judgement.verdict != "ask":
                return Decided(call, forms[1], judgement, taken.valid)
            answer = ask(call, judgement)
            if answer.arguments is not None:  # what a person wrote, no other person need allow
                call, allowed = Call(call.tool, answer.arguments), {*self._asking}
            elif answer.approved:
                allowed.add(judgement.rule)
            else:
                reason = f"{judgement.reason}; {answer.why}"
                return Decided(call, forms[1], Judgement("refuse", judgement.rule, reason))

    def _intake(self, name: str, tool: Any) -> Intake:
        found = self._intakes.get(name)
        if found is None or found.source is not getattr(tool, "args_schema", None):
            found = self._intakes[name] = Intake(tool)
        return found

    def running_in(self, reply: str, call_id: str) -> list[Call]:
        """The calls of a reply that this guard has let through, but for one that is still to run.

        One that was carried out, or may have been before it raised, counts when it comes again.
        """
        return [run.call for run in self.runs.get(reply, ()) if run.id != call_id or run.over]

    def let_through(self, reply: str, call_id: str, call: Call) -> ReplyCalls:
        """Note that a call runs."""
        run = ReplyCalls(call_id, call)
        self.runs[reply] = [*self.runs.get(reply, ()), run]
        if len(self.runs) > MOST_REPLIES:
            self.runs.popitem(last=False)
        return run

    def call_off(self, reply: str, run: ReplyCalls | None) -> None:
        """Note that a call is not carried out after all."""
        self.runs[reply] = [each for each in self.runs.get(reply, ()) if each is not run]

    def runs_besides(self, reply: str, run: ReplyCalls | None, call_id: str) -> list[Call]:
        """What else was carried out under the id of a call: a middleware may have repeated it."""
        runs = self.runs.get(reply, ())
        return [r.call for r in runs if r.id == call_id and r.over and r is not run]

    def note_repeat(self, reply: str, run: ReplyCalls) -> None:
        """Write a call that was carried out again into the answer that it had before.

        A middleware may keep that answer, and another process go on with it.
        """
        for other in self.runs.get(reply, ()):
            if other.id == run.id and other is not run and other.answer is not None:
                decision = other.answer.response_metadata[DECISION]
                decision["besides"] = [*decision.get("besides", ()), run.call._asdict()]

    def _unnoted(self, messages: Sequence[AnyMessage], reply: str) -> list[tuple[str, Call]]:
        """Calls of a reply that were carried out and that no answer speaks of, by their ids.

        A middleware may have repeated a call and kept one answer, or written one itself. Where the
        reply was removed from the messages, so was all before it.
        """
        noted: list[tuple[str, Call | None]] = []
        places = [place for place, message in enumerate(messages) if message.id == reply]
        for message in messages[places[-1] :] if places else messages:
            if isinstance(message, ToolMessage):
                decision, name = decision_of(message), message.tool_call_id
                told = [decision["call"]] if decision.get("ran") else []
                noted += [(name, Call(**each)) for each in (*told, *decision.get("besides", ()))]
                noted += [] if decision else [(name, None)]
        unnoted = []
        for run in self.runs.get(reply, ()):
            if run.over and not run.noted:
                run.noted = True
                found = [each for each in noted if each in ((run.id, run.call), (run.id, None))]
                if found:
                    noted.remove(found[0])
                else:
                    unnoted.append((run.id, run.call))
        return unnoted


class ReplyCalls:
    """A call that was let through; it is over once the tool has ended, if only by an exception."""

    def __init__(self, call_id: str, call: Call) -> None:
        self.id, self.call, self.over, self.noted = call_id, call, False, False
        self.answer: ToolMessage | None = None


class JudgedGate:
    """Stands before a tool for one call of an agent: what was judged may pass, once."""

    def __init__(self, guard: RulesGuard, request: ToolCallRequest) -> None:
        self.guard, self.request = guard, request
        self.call = as_call(request.tool_call)
        self.call_id = str(request.tool_call["id"])
        self.refusal: ToolMessage | None = None
        self.memory, self.reply = guard.desk.begin(), ""
        self.decided = Decided(self.call, self.call, Judgement("allow"))
        self.run: ReplyCalls | None = None
        self.entered = self.passed = self.rejected = False

    def judge(self) -> None:
        """Decide about the call after those before it in the reply."""
        guard, messages = self.guard, self.request.state["messages"]
        self.memory = guard.read(self.request.state)
        self.reply, calls = pending(messages)
        if why := doubled(calls, self.call_id):
            return self.refuse(failure(self.call, why))
        with guard.lock:
            started = {run.id for run in guard.runs.get(self.reply, ())}
            earlier = [
                as_call(call)
                for call in before(calls, self.request.tool_call["id"])
                if str(call["id"]) not in started
            ]
            running = guard.running_in(self.reply, self.call_id)
            running += guard.desk.passing(self.memory, earlier)
            self.decided = guard.decide(
                self.memory, self.call, running, self.request.tool, self._warned
            )
            if self.decided.refused:
                return self.refuse(self.decided)
            self.run = guard.let_through(self.reply, self.call_id, self.decided.judged)
        changed = {**self.request.tool_call, "args": dict(self.decided.call.arguments)}
        request = self.request.override(tool_call=cast(Any, changed))
        if isinstance(request.tool, BaseTool):
            request = request.override(tool=GuardedTool.around(request.tool, self))
        self.request = request

    def _warned(self, rule: str) -> int:
        """How often a rule has sent a call back in this conversation."""
        found = [decision_of(message) for message in self.request.state["messages"]]
        return sum(each.get("rule") == rule and each.get("ran") is False for each in found)

    def refuse(self, decided: Decided) -> None:
        """Answer in the tool's place."""
        self.decided = decided
        self.refusal = decided.refusal(self.call_id, self.call, self._besides())

    def enter(self, passage: Passage) -> Any:
        """Let the judged call pass; judge one that another middleware has changed or repeated."""
        self.entered = True
        judged = self.decided.call.arguments
        if repr(passage.call.arguments) == repr(judged) and not self.passed:
            self.passed = True
            return None
        LOG.warning("a middleware behind the guard changed or repeated %s", self.decided.call)
        guard = self.guard
        try:
            with guard.lock:
                running = guard.running_in(self.reply, self.call_id)
                decided = guard.decide(self.memory, passage.call, running, passage.tool)
                if not decided.refused:
                    self.decided, self.passed = decided, True
                    passage.call = decided.call
                    if self.run is not None and not self.run.over:
                        guard.call_off(self.reply, self.run)
                    self.run = guard.let_through(self.reply, self.call_id, decided.judged)
        except GraphBubbleUp:
            raise
        except Exception as error:
            LOG.exception("the guard failed")
            decided = failure(passage.call, error)
        if not decided.refused:
            return None
        self.rejected = not self.passed
        return decided.refusal(self.call_id, self.call, self._besides())

    def _besides(self) -> list[Call]:
        return self.guard.runs_besides(self.reply, self.run, self.call_id)

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Remember a call that the tool did not take, and one that may have taken effect."""
        if isinstance(error, GraphBubbleUp) or self.decided.not_taken(error):
            self.guard.call_off(self.reply, self.run)
            self.rejected, self.passed = True, False
        elif self.run is not None:
            self.run.over = True
            self.guard.note_repeat(self.reply, self.run)

    def note(self, answer: Any) -> Any:
        """Write into an answer what was decided about its call."""
        if not self.entered and isinstance(self.request.tool, GuardedTool):
            LOG.warning("a middleware behind the guard answered %s itself", self.decided.call)
        for message in messages_in(answer):
            if message.tool_call_id == self.call_id:
                self.decided.note(message, self.call, not self.rejected, self._besides())
                if self.run is not None:
                    self.run.answer = message
        return answer


def _enforced(manual: Manual) -> list[Enforced]:
    return [*manual.actions, *manual.environment.policy, *manual.forbidden]


class PersonsAnswer(NamedTuple):
    """What a person decided about a call: approved, changed, or neither."""

    approved: bool = False
    arguments: dict[str, Any] | None = None
    why: str = ""


def ask(call: Call, judgement: Judgement) -> PersonsAnswer:
    """Interrupt the graph until a person has decided; anything but a clear yes is a no.

    The request has the form of LangChain's own for one call. It is answered by ``{"type":
    "approve"}``, ``{"type": "edit", "edited_action": {"name": ..., "args": {...}}}`` or
    ``{"type": "reject", "message": ...}``.
    """
    description = f"{call} is against [{judgement.rule}]: {judgement.reason}."
    question = {
        "type": "tool_approval",
        "name": call.tool,
        "args": dict(call.arguments),
        "description": description,
        "rule": judgement.rule,
        "reason": judgement.reason,
        "allowed_decisions": ["approve", "edit", "reject"],
    }
    try:
        answer = interrupt(question)
    except (RuntimeError, KeyError):  # as LangGraph says that no graph is running
        return PersonsAnswer(why="a person has to be asked, and only a graph can do that")
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list):
        answer = answer["decisions"][0] if len(answer["decisions"]) == 1 else {}
    decision = answer if isinstance(answer, Mapping) else {"type": answer}
    edited = decision.get("edited_action")
    if decision.get("type") == "approve":
        return PersonsAnswer(approved=True)
    if decision.get("type") == "reject":
        said = f": {decision['message']}" if decision.get("message") else ""
        return PersonsAnswer(why=f"a person was asked and rejected it{said}")
    if decision.get("type") == "edit" and isinstance(edited, Mapping):
        arguments = edited.get("args")
        if edited.get("name", call.tool) == call.tool and isinstance(arguments, Mapping):
            return PersonsAnswer(arguments=dict(arguments))
    LOG.warning("an answer to %s could not be read: %r", description, answer)
    return PersonsAnswer(why="a person was asked, and the answer could not be read")
