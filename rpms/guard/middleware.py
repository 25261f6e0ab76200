"""``RulesGuard``: checks an agent's tool calls against a manual.

As middleware of LangChain's ``create_agent`` it judges every tool call before it runs. It keeps the
state of the conversation in the agent's state, so it survives a resume; only the guard writes it.
``protect`` puts the same guard into the tools themselves.
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
    ConversationState,
    ConversationTracker,
    as_call,
    before,
    decision_of,
    pending,
)
from rpms.guard.decision import Judgement, stricter
from rpms.guard.protected import (
    CallDecision,
    GuardedTool,
    Passage,
    SessionGate,
    doubled,
    failure,
    messages_in,
)
from rpms.guard.tools import ArgumentIntake, Unknown, compare_tools, is_allowed, name_of
from rpms.rules import Manual
from rpms.rules.schema import EnforcedRule
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

LOG = logging.getLogger("rpms.guard")
MOST_REPLIES = 1024
Handler = Callable[..., Any]


class GuardState(AgentState[Any]):
    """An agent's state, extended by the guard's state of the conversation."""

    guard: NotRequired[Annotated[ConversationState, PrivateStateAttr]]


class RulesGuard(AgentMiddleware[GuardState, Any, Any]):
    """Checks every tool call against a manual.

    A call that violates a rule never reaches the tool: the guard answers with the rule, the reason
    and a repair. A rule with ``on_violation: ask`` interrupts the graph for a person to decide; one
    with ``warn`` lets the call pass and logs it.

    Put it last in the list of middleware, so that it judges what really runs. If a middleware
    behind it changes a call, the changed call is judged as well.

    Args:
        world: a ``ToolWorld``, or the name of one.
        rules: a folder of rules that overlays the world's rules.
        unknown: tools that need no rule: ``"allow"`` for all that the manual does not have, or
            a list of names. Any other tool that the manual does not have is an error.
        partial: the agent has only some of the manual's tools.
        retries: how often a call that violates a ``warn`` rule is refused before it may pass.
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
        # The registry of worlds lies above the guard in the import order; only a name needs it.
        environment: GuardedWorld = (
            import_module("rpms.envs").get_environment(world) if isinstance(world, str) else world
        )
        self.tracker = ConversationTracker.open(environment, rules)
        if isinstance(unknown, str) and unknown not in ("refuse", "allow"):
            raise RpmsError(f"unknown={unknown!r}: give 'refuse', 'allow', or a list of tools")
        self.unknown, self.partial, self.retries = unknown, partial, retries
        self._asking = {
            rule.id for rule in _enforced(self.tracker.manual) if rule.on_violation == "ask"
        }
        self._compared: set[frozenset[str]] = set()
        self.runs: OrderedDict[str, list[CallRun]] = OrderedDict()
        self._intakes: dict[str, ArgumentIntake] = {}
        self.lock = Lock()

    def protect(self, tools: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
        """Wrap tools with the guard, for any graph, ``ToolNode`` or plain call."""
        langchain_tools = [each if isinstance(each, BaseTool) else as_tool(each) for each in tools]
        self.compare(langchain_tools)
        gate = SessionGate(self.tracker, self.decide, langchain_tools)
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
        """Read new tool answers into the guard's state."""
        conversation, messages = self.read(state), state["messages"]
        reply = conversation.get("reply") or pending(messages)[0]
        return {"guard": self.tracker.settle(conversation, self._unnoted(messages, reply))}

    def after_model(self, state: GuardState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Note the calls of the reply: their answers might be removed before they are read."""
        reply, calls = pending(state["messages"])
        return {"guard": {**self.read(state), "open": calls, "reply": reply}}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Compare the agent's tools with the manual when they are first seen."""
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
        """ReplyCalls the tool, or answer instead of it with a refusal."""
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
        """The state of the conversation, including answers that no model has seen yet."""
        return self.tracker.read(state.get("guard") or self.tracker.begin(), state["messages"])

    def _admit(self, request: ToolCallRequest) -> JudgedGate:
        """Judge a call; if the guard itself fails, it refuses."""
        gate = JudgedGate(self, request)
        try:
            gate.judge()
        except GraphBubbleUp:  # interrupts for a person
            raise
        except Exception as error:
            LOG.exception("the guard failed")
            gate.refuse(failure(gate.call, error))
        return gate

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
            if judgement.verdict == "warn" and warned(judgement.rule) < self.retries:
                judgement = judgement._replace(verdict="refuse")
            if judgement.verdict == "warn":
                LOG.warning("%s is against %s: %s", call, judgement.rule, judgement.reason)
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

    def running_in(self, reply: str, call_id: str) -> list[Call]:
        """The admitted calls of a reply, except a call of this id that has not finished.

        A call that finished, if only by an exception, counts when it is repeated.
        """
        return [run.call for run in self.runs.get(reply, ()) if run.id != call_id or run.over]

    def record_run(self, reply: str, call_id: str, call: Call) -> CallRun:
        """Record that an admitted call runs."""
        run = CallRun(call_id, call)
        self.runs[reply] = [*self.runs.get(reply, ()), run]
        if len(self.runs) > MOST_REPLIES:
            self.runs.popitem(last=False)
        return run

    def cancel_run(self, reply: str, run: CallRun | None) -> None:
        """Remove a call that was not carried out after all."""
        self.runs[reply] = [each for each in self.runs.get(reply, ()) if each is not run]

    def runs_besides(self, reply: str, run: CallRun | None, call_id: str) -> list[Call]:
        """Further calls carried out under the same id: a middleware may have repeated the call."""
        runs = self.runs.get(reply, ())
        return [r.call for r in runs if r.id == call_id and r.over and r is not run]

    def note_repeat(self, reply: str, run: CallRun) -> None:
        """Note a repeated call in the answer of its first run.

        A middleware may keep that answer, and another process may continue from it.
        """
        for other in self.runs.get(reply, ()):
            if other.id == run.id and other is not run and other.answer is not None:
                decision = other.answer.response_metadata[DECISION]
                decision["besides"] = [*decision.get("besides", ()), run.call._asdict()]

    def _unnoted(self, messages: Sequence[AnyMessage], reply: str) -> list[tuple[str, Call]]:
        """Calls of a reply that were carried out and that no answer mentions, with their ids.

        A middleware may have repeated a call and kept one answer, or written an answer itself. If
        the reply was removed from the messages, so was everything before it.
        """
        noted: list[tuple[str, Call | None]] = []
        positions = [index for index, message in enumerate(messages) if message.id == reply]
        for message in messages[positions[-1] :] if positions else messages:
            if isinstance(message, ToolMessage):
                decision, call_id = decision_of(message), message.tool_call_id
                calls = [decision["call"]] if decision.get("ran") else []
                noted += [
                    (call_id, Call(**each)) for each in (*calls, *decision.get("besides", ()))
                ]
                noted += [] if decision else [(call_id, None)]
        unnoted = []
        for run in self.runs.get(reply, ()):
            if run.over and not run.noted:
                run.noted = True
                matches = [each for each in noted if each in ((run.id, run.call), (run.id, None))]
                if matches:
                    noted.remove(matches[0])
                else:
                    unnoted.append((run.id, run.call))
        return unnoted


class CallRun:
    """A call that was admitted; it is over once the tool has ended, if only by an exception."""

    def __init__(self, call_id: str, call: Call) -> None:
        self.id, self.call, self.over, self.noted = call_id, call, False, False
        self.answer: ToolMessage | None = None


class JudgedGate:
    """The gate in front of a tool for one call of an agent: the judged call may pass once."""

    def __init__(self, guard: RulesGuard, request: ToolCallRequest) -> None:
        self.guard, self.request = guard, request
        self.call = as_call(request.tool_call)
        self.call_id = str(request.tool_call["id"])
        self.refusal: ToolMessage | None = None
        self.conversation, self.reply = guard.tracker.begin(), ""
        self.decision = CallDecision(self.call, self.call, Judgement("allow"))
        self.run: CallRun | None = None
        self.entered = self.passed = self.rejected = False

    def judge(self) -> None:
        """Decide about the call after those before it in the reply."""
        guard, messages = self.guard, self.request.state["messages"]
        self.conversation = guard.read(self.request.state)
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
            running += guard.tracker.passing(self.conversation, earlier)
            self.decision = guard.decide(
                self.conversation, self.call, running, self.request.tool, self._warned
            )
            if self.decision.refused:
                return self.refuse(self.decision)
            self.run = guard.record_run(self.reply, self.call_id, self.decision.judged)
        changed = {**self.request.tool_call, "args": dict(self.decision.call.arguments)}
        request = self.request.override(tool_call=cast(Any, changed))
        if isinstance(request.tool, BaseTool):
            request = request.override(tool=GuardedTool.around(request.tool, self))
        self.request = request

    def _warned(self, rule: str) -> int:
        """How often a rule has refused a call in this conversation."""
        decisions = [decision_of(message) for message in self.request.state["messages"]]
        return sum(each.get("rule") == rule and each.get("ran") is False for each in decisions)

    def refuse(self, decision: CallDecision) -> None:
        self.decision = decision
        self.refusal = decision.refusal(self.call_id, self.call, self._besides())

    def enter(self, passage: Passage) -> Any:
        """Let the judged call pass; judge it again if a middleware has changed or repeated it."""
        self.entered = True
        judged = self.decision.call.arguments
        if repr(passage.call.arguments) == repr(judged) and not self.passed:
            self.passed = True
            return None
        LOG.warning("a middleware behind the guard changed or repeated %s", self.decision.call)
        guard = self.guard
        try:
            with guard.lock:
                running = guard.running_in(self.reply, self.call_id)
                decision = guard.decide(self.conversation, passage.call, running, passage.tool)
                if not decision.refused:
                    self.decision, self.passed = decision, True
                    passage.call = decision.call
                    if self.run is not None and not self.run.over:
                        guard.cancel_run(self.reply, self.run)
                    self.run = guard.record_run(self.reply, self.call_id, decision.judged)
        except GraphBubbleUp:
            raise
        except Exception as error:
            LOG.exception("the guard failed")
            decision = failure(passage.call, error)
        if not decision.refused:
            return None
        self.rejected = not self.passed
        return decision.refusal(self.call_id, self.call, self._besides())

    def _besides(self) -> list[Call]:
        return self.guard.runs_besides(self.reply, self.run, self.call_id)

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Record whether the tool rejected the call or may have carried it out."""
        if isinstance(error, GraphBubbleUp) or self.decision.not_taken(error):
            self.guard.cancel_run(self.reply, self.run)
            self.rejected, self.passed = True, False
        elif self.run is not None:
            self.run.over = True
            self.guard.note_repeat(self.reply, self.run)

    def note(self, answer: Any) -> Any:
        """Write the decision about a call into its answer."""
        if not self.entered and isinstance(self.request.tool, GuardedTool):
            LOG.warning("a middleware behind the guard answered %s itself", self.decision.call)
        for message in messages_in(answer):
            if message.tool_call_id == self.call_id:
                self.decision.note(message, self.call, not self.rejected, self._besides())
                if self.run is not None:
                    self.run.answer = message
        return answer


def _enforced(manual: Manual) -> list[EnforcedRule]:
    return [*manual.actions, *manual.environment.policy, *manual.forbidden]


class PersonDecision(NamedTuple):
    """A person's decision about a call: approved, changed, or neither."""

    approved: bool = False
    arguments: dict[str, Any] | None = None
    why: str = ""


def ask(call: Call, judgement: Judgement) -> PersonDecision:
    """Interrupt the graph until a person has decided; only a clear yes approves.

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
    except (RuntimeError, KeyError):  # LangGraph raises these when no graph is running
        return PersonDecision(why="a person has to be asked, and only a graph can do that")
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list):
        answer = answer["decisions"][0] if len(answer["decisions"]) == 1 else {}
    decision = answer if isinstance(answer, Mapping) else {"type": answer}
    edited = decision.get("edited_action")
    if decision.get("type") == "approve":
        return PersonDecision(approved=True)
    if decision.get("type") == "reject":
        message = f": {decision['message']}" if decision.get("message") else ""
        return PersonDecision(why=f"a person was asked and rejected it{message}")
    if decision.get("type") == "edit" and isinstance(edited, Mapping):
        arguments = edited.get("args")
        if edited.get("name", call.tool) == call.tool and isinstance(arguments, Mapping):
            return PersonDecision(arguments=dict(arguments))
    LOG.warning("an answer to %s could not be read: %r", description, answer)
    return PersonDecision(why="a person was asked, and the answer could not be read")
