"""Middleware that gives your own agent our knowledge: rules, state and memories in the prompt.

One conversation is one episode, and its first message is the task. The agent's state holds the
episode under ``episode``: the first middleware folds new tool results into it, and the stages of
our graph do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, NotRequired, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langgraph.runtime import Runtime

import rpms.nodes as stages
from rpms.envs import Task, get_environment
from rpms.envs.manuals import load_manual
from rpms.graph.build import next_stage
from rpms.guard.conversation import DECISION, as_call, turns_of
from rpms.nodes.belief_update import follow_belief
from rpms.nodes.guard_check import note_played
from rpms.nodes.llm_call import read_usage
from rpms.nodes.prompt_build import arrange
from rpms.nodes.reset_env import fresh_state
from rpms.nodes.state import EpisodeState, apply_update, knowledge_of
from rpms.prompts.blocks import knowledge_blocks, tokens
from rpms.rules import match_action
from rpms.rules.answers import belief_after
from rpms.vocabulary.calls import Call
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import slug, valid
from rpms.vocabulary.turn import ActionVerdict, Decision, Message, Turn

BASELINE = RunContext.for_condition("A", examples=0)
"""The settings of an agent without our knowledge; each middleware adds its own."""
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")

Handler = Callable[..., Any]
Messages = Sequence[Any]
Updates = Iterator[tuple[str, Mapping[str, Any]]]


class ToolAgentState(AgentState[Any]):
    """An agent's state with the episode; the input may set the episode's ``split`` and ``task``."""

    episode: NotRequired[EpisodeState]


class EpisodeFollower(AgentMiddleware[ToolAgentState, Any, Any]):
    """Keeps goal, turns and belief in the agent's state, computed from the messages alone."""

    state_schema = ToolAgentState

    def __init__(self, world: str, **overrides: Any) -> None:
        """``world`` names the environment; ``overrides`` are settings of ``RunContext``."""
        super().__init__()
        if not isinstance(world, str):
            name = getattr(world, "name", "")
            raise RpmsError(
                f"{type(self).__name__} takes the name of an environment, which 'rpms worlds' lists"
                + (f": '{name}'" if name else "")
            )
        self.env, self.overrides = get_environment(world), overrides
        self.context = settings({**BASELINE.plain, **overrides})
        self.manual = load_manual(world, self.context.rules_dir, self.context.without_rules)

    def before_model(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Fold new tool results into the episode, and this middleware's settings."""
        episode: dict[str, Any] = {**state.get("episode", {})}
        for _, update in self.read(state["messages"], episode):
            apply_update(episode, update)
        guarded = {"guard": "verify"} if "guard" in state else {}
        context = settings({**episode["settings"], **guarded, **self.overrides})
        return {"episode": {**episode, "settings": context.plain, "condition": context.condition}}

    def read(self, messages: Messages, state: dict[str, Any]) -> Updates:
        """Yield the new messages of a conversation as updates of our stages.

        The caller applies each update to ``state`` before the next. ``simulator_state`` holds the
        id of the last reply that was read.
        """
        episode = cast(EpisodeState, state)
        if "simulator_state" not in state:
            yield "reset_env", self._begin(messages, state)
            yield "belief_update", stages.belief_update(episode)
        last = state["simulator_state"].get("read")
        turns = turns_of(messages)
        names = [turn.name for turn in turns]
        for turn in turns[names.index(last) + 1 if last in names else 0 :]:
            if not isinstance(turn.message, AIMessage):
                continue
            state["simulator_state"] = {**state["simulator_state"], "read": turn.name}
            usage = read_usage(episode, turn.message)
            spent = {name: state[name] + cast(Any, usage)[name] for name in TOKENS}
            spent["model_calls"] = state["model_calls"] + 1
            yield "llm_call", {**spent, "usage": usage, "reply": self.text(turn.message)}
            for place, answer in turn.answers.items():
                yield from self._take_answer(answer, turn.calls[place], turn.message.text, episode)

    def _begin(self, messages: Messages, state: Mapping[str, Any]) -> EpisodeState:
        """Start an episode; a task without an id gets one made from its sentence."""
        goal = valid(next((m.text for m in messages if isinstance(m, HumanMessage)), ""))
        name = valid(str(state.get("task", slug(goal))))
        split = state.get("split", self.env.splits()[0])
        task = Task(env=self.env.name, split=split, index=0, id=name, goal=goal, source="")
        start = EpisodeState(first_observation=goal, observation=goal, simulator_state={})
        return {**fresh_state(self.context, task), **start}

    def _take_answer(
        self, answer: ToolMessage, call: ToolCall, thought: str, state: EpisodeState
    ) -> Updates:
        text, step, executed = answer.text, state["steps"] + 1, as_call(call)
        action = self.action(executed)
        if outcome := answer.response_metadata.get(DECISION):
            # The executed call may have been edited by a person, and has the tool's defaults.
            arguments, (tool, ran) = executed.arguments, Call(**outcome["call"])
            executed = Call(tool, {name: ran[name] for name in (*arguments, *ran) if name in ran})
            action = self.action(executed)
            proposal = self.action(Call(call["name"], {**executed.arguments, **arguments}))
            decision = _as_decision(outcome, step, proposal, action)
            # The whole list: a single decision equal to the first would count as the old list.
            decisions, retries = [*state["decisions"], decision], state["retries"] + 1
            yield "guard_check", EpisodeState(decisions=decisions, retries=retries)
            if not outcome["ran"]:
                return
        failed = answer.status == "error" or self.env.failed(text)
        turn = Turn(step=step, thought=thought, action=action, observation=text, failed=failed,
                    reply="", call=executed._asdict())  # fmt: skip
        refused, played = state["invalid_actions"] + failed, note_played(state, action)
        yield "env_step", EpisodeState(history=[turn], observation=text, steps=step, retries=0,
                                       invalid_actions=refused, played_in=played)  # fmt: skip
        belief = belief_after(self.env, self.manual, state["belief"], turn)
        yield "belief_update", follow_belief(state, belief)

    def text(self, message: Any) -> str:
        """Print a message and its tool calls, for logs."""
        calls = (self.action(as_call(call)) for call in getattr(message, "tool_calls", ()))
        return "\n".join(filter(None, (message.text, *calls)))

    def action(self, call: Call) -> str:
        """Word a call as an action of the manual, as prompts and memories do, if it has one."""
        rule = self.manual.by_name.get(call.tool)
        if rule is None or call.arguments.keys() != rule.called.keys():
            return str(call)
        names = {parameter: str(call.arguments[name]) for name, parameter in rule.called.items()}
        action = rule.syntax.format(**names)
        return action if match_action(self.manual, action) == (rule, names) else str(call)


def _as_decision(outcome: Mapping[str, Any], step: int, proposal: str, action: str) -> Decision:
    """Convert a decision of the tool guard to the form of the logs."""
    verdict: ActionVerdict = "accepted" if not outcome["rule"] else "overridden"
    return Decision(
        step=step, proposal=proposal, verdict=verdict if outcome["ran"] else "retried",
        rule=outcome["rule"], reason=outcome["reason"], repair=outcome["repair"],
        played=action if outcome["ran"] else "",
    )  # fmt: skip


class StateMemory(EpisodeFollower):
    """Adds the rules, the state and fitting memories to every model call.

    The stages of our graph retrieve, filter and arbitrate the memories. If ``memory`` names no
    file, they come from the agent's store, or from the environment's ``memory.jsonl``. The blocks
    are added to the system message. With ``layout="cache_friendly"`` the blocks that change come
    last, after the messages.
    """

    def __init__(self, world: str, memory: str | PathLike[str] | bool = True, **more: Any) -> None:
        file = {} if isinstance(memory, bool) else {"memory_file": fspath(memory)}
        super().__init__(world, **{"rules": True, "memory": memory is not False, **file, **more})

    def before_model(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Run our stages up to the prompt."""
        episode, stage = super().before_model(state, runtime)["episode"], "belief_update"
        view, step_runtime = cast(Any, episode), Runtime(context=self.context, store=runtime.store)
        while (stage := next_stage(stage, view)) != "prompt_build":
            run = getattr(stages, stage)
            apply_update(
                episode, run(view, step_runtime) if stage == "goal_retrieval" else run(view)
            )
        blocks = knowledge_blocks(knowledge_of(view))
        parts = arrange(blocks, self.context.layout, self.env)
        texts = ["\n\n".join(filter(None, part)) for part in parts]
        episode["prompt"] = [Message(role="system", content=text) for text in texts]
        return {"episode": {**episode, "knowledge_tokens": tokens(blocks)}}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Add the blocks to the request."""
        return handler(self.inform(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Add the blocks to the request, on an event loop."""
        return await handler(self.inform(request))

    def inform(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return the request with our blocks."""
        opening, closing = (m["content"] for m in cast(Any, request.state)["episode"]["prompt"])
        if opening:
            system = request.system_message
            before: list[Any] = [*system.content_blocks] if system else []
            text = {"type": "text", "text": f"\n\n{opening}" if before else opening}
            request = request.override(system_message=SystemMessage(content=[*before, text]))
        if closing:
            request = request.override(messages=[*request.messages, HumanMessage(closing)])
        return request
