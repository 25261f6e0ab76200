"""LangChain middleware that adds our knowledge and our run files to your own agent.

``StateMemory`` adds rules, state and memories to the prompt. ``Recorder`` writes run files. The
guard of tool calls is ``rpms.guard.RulesGuard``. Each works alone. One conversation is one episode,
and its first message is the task. The agent's state holds the episode under ``episode``: the first
middleware folds new tool results into it, and the stages of our graph do the rest. List the
recorder after the others, with only the guard behind it, so that it sees the final prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NotRequired, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

import rpms.nodes as stages
from rpms.envs import Task, get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.records.checksums import rules_hash
from rpms.evals.records.run_folder import slug
from rpms.evals.running.costs import Tokens
from rpms.evals.running.episode import EpisodeRecorder
from rpms.evals.running.plan import Job
from rpms.evals.running.runner import check_recording, join_run
from rpms.graph.build import next_stage
from rpms.guard.answers import belief_after
from rpms.guard.audit import write_messages
from rpms.guard.conversation import DECISION, as_call
from rpms.models.cached import innermost
from rpms.models.prices import rates_for
from rpms.nodes.belief_update import follow_belief
from rpms.nodes.guard_check import note_played
from rpms.nodes.llm_call import read_usage
from rpms.nodes.prompt_build import arrange
from rpms.nodes.reset_env import fresh_state
from rpms.nodes.state import EpisodeState, apply_update, knowledge_of
from rpms.prompts.blocks import knowledge_blocks, tokens
from rpms.rules import match_action
from rpms.vocabulary.calls import Call
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import valid
from rpms.vocabulary.turn import Decision, Message, Turn, Verdict

LOG = logging.getLogger("rpms.recorder")
BASELINE = RunContext.for_condition("A", examples=0)
"""The settings of an agent without our knowledge; each middleware adds its own."""
PROMPT_KEYS = ("rules", "recalls", "truncated", "knowledge_tokens", "shortlist", "dropped_turns")
MOST_LIVE = 256
ROLES = {"human": "user", "ai": "assistant", "tool": "user"}

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
        ids, last = [message.id for message in messages], state["simulator_state"].get("read")
        reply, calls = AIMessage(""), dict[str | None, ToolCall]()
        for message in messages[ids.index(last) + 1 if last in ids else 0 :]:
            if isinstance(message, AIMessage):
                reply, calls = message, {call["id"]: call for call in message.tool_calls}
                state["simulator_state"] = {**state["simulator_state"], "read": message.id}
                usage = read_usage(episode, message)
                spent = {n: state[n] + count for n, count in Tokens.of(usage)._asdict().items()}
                spent["model_calls"] = state["model_calls"] + 1
                yield "llm_call", {**spent, "usage": usage, "reply": self.text(message)}
            elif isinstance(message, ToolMessage) and (call := calls.get(message.tool_call_id)):
                yield from self._take_answer(message, call, reply.text, episode)

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
    verdict: Verdict = "accepted" if not outcome["rule"] else "overridden"
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


class Recorder(EpisodeFollower):
    """Writes every episode of an agent into a run folder, in the format of ``rpms eval``.

    The constructor checks the folder. Later errors never reach the agent: they are logged under
    ``rpms.recorder``. The episodes of an agent form an arm of the run with the agent's name. Other
    rules, memories or settings make another arm: ``refund desk (rules 3f2a)``.

    An episode is written when the agent finishes; an interrupted one is not written. If a
    conversation continues, its episode is written again, and the last line counts.

    Args:
        world: the environment's name.
        out: the run folder: a new or an empty one, or one that a recorder wrote.
        won: a function of the episode's state that returns True for a won episode; by default an
            episode is won at 100% progress of the goal.
        name: the agent's name; by default that of ``create_agent(name=...)``, else the
            environment's.
        more: settings of ``RunContext``, such as ``model`` if the model object does not name it.
    """

    def __init__(
        self, world: str, out: str | PathLike[str], won: Any = None, name: str = "", **more: Any
    ) -> None:
        super().__init__(world, **more)
        self.out, self.won = Path(out), won or self._has_reached_goal
        self.agent = name
        self._live: dict[str, EpisodeRecorder] = {}
        self._checksums: dict[tuple[str, str], str] = {}
        self._checksum(self.context)
        check_recording(self.out, self.env.name)

    def _has_reached_goal(self, state: Mapping[str, Any]) -> bool:
        """Measure the progress here, because an agent without rules may have no sub-goal."""
        pointer = self.env.sub_goal(state["goal"], state["belief"], state["history"])
        return pointer["progress"] >= 100

    def before_model(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Fold new tool results into the episode."""
        with _logged_errors():
            return super().before_model(state, runtime)
        return {}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Record the prompt and the duration of the call."""
        recorder = self._note_prompt(request)
        response = handler(request)
        if recorder:
            recorder.arrived("llm_call")
        return response

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Record the call on an event loop; files are read in a thread."""
        recorder = await asyncio.to_thread(self._note_prompt, request)
        response = await handler(request)
        if recorder:
            recorder.arrived("llm_call")
        return response

    def after_agent(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Write the episode; ``simulator_state`` keeps its repeat in case it continues."""
        with _logged_errors():
            episode = cast(Any, state).get("episode", {})
            recorder = self._live.pop(episode.get("episode_id"), None)
            if recorder is None:
                return None
            self._catch_up(recorder, state["messages"])
            recorder.conversation = write_messages(state["messages"])
            won = bool(self.won(recorder.state))
            mode = None if won else "wrong_termination"
            recorder.state |= {"success": won, "score": float(won), "failure_mode": mode}
            context = settings(recorder.state["settings"])
            job = join_run(
                self.out, episode["spec"], context, recorder, name=self._agent_name(),
                repeat=episode["simulator_state"].get("repeat", 0), rules=self._checksum(context),
            )  # fmt: skip
            return {
                "episode": {
                    **episode,
                    "simulator_state": {**episode["simulator_state"], "repeat": job.repeat},
                }
            }
        return None

    def _agent_name(self) -> str:
        name = self.agent or get_config().get("metadata", {}).get("lc_agent_name")
        return " ".join(valid(str(name or self.env.name)).split())

    def _checksum(self, context: RunContext) -> str:
        """Return the checksum of the manual as first read; later edits need a new recorder."""
        manual = context.rules_dir, context.without_rules
        if manual not in self._checksums:
            self._checksums[manual] = rules_hash(self.env.name, *manual)
        return self._checksums[manual]

    def _note_prompt(self, request: ModelRequest[Any]) -> EpisodeRecorder | None:
        """Record the prompt; after an error the next call starts a new recorder."""
        state = cast(Any, request.state)
        if "episode" not in state:  # before_model has logged the error
            return None
        episode = state["episode"]
        with _logged_errors():
            guard = {"guard": "verify"} if "guard" in state else {}
            overrides = {
                **episode["settings"],
                **guard,
                **_decoding(request.model),
                **self.overrides,
            }
            recorder = self._live.get(episode["episode_id"]) or self._open(
                episode, settings(overrides)
            )
            self._catch_up(recorder, state["messages"])
            whole = [*filter(None, [request.system_message]), *request.messages]
            prompt = [{"role": ROLES.get(m.type, m.type), "content": self.text(m)} for m in whole]
            leading = {name: episode[name] for name in PROMPT_KEYS}
            recorder.note("prompt_build", {**leading, "settings": overrides, "prompt": prompt})
            return recorder
        self._live.pop(episode.get("episode_id"), None)
        return None

    def _open(self, episode: EpisodeState, context: RunContext) -> EpisodeRecorder:
        rates = rates_for(context.model, context.base_url)
        recorder = EpisodeRecorder(Job("", episode["spec"]), False, rates)
        recorder.state |= {"task": episode["task_id"], "split": episode["split"]}
        self._live[episode["episode_id"]] = recorder
        if len(self._live) > MOST_LIVE:  # interrupted episodes never end
            self._live.pop(next(iter(self._live)), None)
        return recorder

    def _catch_up(self, recorder: EpisodeRecorder, messages: Messages) -> None:
        """Record all messages so far, also those of an episode that began elsewhere."""
        for stage, update in self.read(messages, recorder.state):
            recorder.note(stage, update)


@contextmanager
def _logged_errors() -> Iterator[None]:
    """Log our errors instead of raising them into the agent."""
    try:
        yield
    except RpmsError as error:
        LOG.error("an episode is not recorded: %s", error)
    except Exception:  # an environment's code may raise anything
        LOG.exception("an episode is not recorded")


def _decoding(model: Any) -> dict[str, Any]:
    """Return a model's name and temperature; clients have different fields for the name."""
    model = innermost(model)
    names = (getattr(model, field, None) for field in ("model_name", "model", "model_id"))
    name = next((n for n in names if n and isinstance(n, str)), type(model).__name__)
    temperature = getattr(model, "temperature", None)
    temperature = (
        float(temperature) if isinstance(temperature, int | float) and temperature >= 0 else 0.0
    )
    return {"model": valid(name), "temperature": temperature}
