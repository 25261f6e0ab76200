"""Our knowledge and our run files in an agent of one's own, as LangChain middleware.

``StateMemory`` puts rules, state and memories into the prompt; ``Recorder`` writes run files. The
guard of tool calls is ``rpms.guard.RulesGuard``. One conversation is one episode, and its first
message the task. It lies in the agent's state under ``episode``; whichever middleware comes first
reads the new answers into it, and our stages do the rest as they do in our own graph. Each can be
had alone; the recorder stands last but for the guard, for it sees what the model is really sent.
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
from rpms.models.prices import rates_for
from rpms.nodes.action_arbitration import note_played
from rpms.nodes.belief_update import follow_belief
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
BARE = RunContext.for_condition("A", examples=0)
"""An agent without our knowledge; each middleware adds what it brings."""
LED_TO_PROMPT = ("rules", "recalls", "truncated", "knowledge_tokens", "shortlist", "dropped_turns")
MOST_LIVE = 256
ROLES = {"human": "user", "ai": "assistant", "tool": "user"}

Handler = Callable[..., Any]
Messages = Sequence[Any]
Updates = Iterator[tuple[str, Mapping[str, Any]]]


class ToolAgentState(AgentState[Any]):
    """An agent's state with the episode; its ``split`` and ``task`` may be given as input."""

    episode: NotRequired[EpisodeState]


class EpisodeFollower(AgentMiddleware[ToolAgentState, Any, Any]):
    """Keeps goal, turns and belief in the agent's state, from the messages alone."""

    state_schema = ToolAgentState

    def __init__(self, world: str, **chosen: Any) -> None:
        """The world by its name, as everywhere; ``chosen`` are settings of ``RunContext``."""
        super().__init__()
        self.env, self.chosen = get_environment(world), chosen
        self.context = settings({**BARE.plain, **chosen})
        self.manual = load_manual(world, self.context.rules_dir, self.context.without_rules)

    def before_model(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Take in what the tools have answered, and that this middleware has a part in it."""
        episode: dict[str, Any] = {**state.get("episode", {})}
        for _, update in self.read(state["messages"], episode):
            apply_update(episode, update)
        guarded = {"guard": "verify"} if "guard" in state else {}
        context = settings({**episode["settings"], **guarded, **self.chosen})
        return {"episode": {**episode, "settings": context.plain, "condition": context.condition}}

    def read(self, messages: Messages, state: dict[str, Any]) -> Updates:
        """Yield what is new in a conversation, as updates of our stages.

        The caller applies each update to ``state`` before the next; ``simulator_state`` holds the
        last reply whose answers were read.
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

    def _begin(self, messages: Messages, named: Mapping[str, Any]) -> EpisodeState:
        """A fresh episode; a task without a name is known by its sentence."""
        goal = valid(next((m.text for m in messages if isinstance(m, HumanMessage)), ""))
        name = valid(str(named.get("task", slug(goal))))
        split = named.get("split", self.env.splits()[0])
        task = Task(env=self.env.name, split=split, index=0, id=name, goal=goal, source="")
        begun = EpisodeState(first_observation=goal, observation=goal, simulator_state={})
        return {**fresh_state(self.context, task), **begun}

    def _take_answer(
        self, answer: ToolMessage, call: ToolCall, thought: str, state: EpisodeState
    ) -> Updates:
        text, step, judged = answer.text, state["steps"] + 1, as_call(call)
        action = self.action(judged)
        if decided := answer.response_metadata.get(DECISION):
            # What ran may have been changed by a person, and has the tool's defaults.
            asked, (tool, ran) = judged.arguments, Call(**decided["call"])
            judged = Call(tool, {name: ran[name] for name in (*asked, *ran) if name in ran})
            action = self.action(judged)
            proposal = self.action(Call(call["name"], {**judged.arguments, **asked}))
            decision = _as_decision(decided, step, proposal, action)
            # All of them: one that equals the first, alone, would be taken for it.
            decisions, again = [*state["decisions"], decision], state["retries"] + 1
            yield "action_arbitration", EpisodeState(decisions=decisions, retries=again)
            if not decided["ran"]:
                return
        failed = answer.status == "error" or self.env.failed(text)
        turn = Turn(step=step, thought=thought, action=action, observation=text, failed=failed,
                    reply="", call=judged._asdict())  # fmt: skip
        refused, played = state["invalid_actions"] + failed, note_played(state, action)
        yield "env_step", EpisodeState(history=[turn], observation=text, steps=step, retries=0,
                                       invalid_actions=refused, played_in=played)  # fmt: skip
        belief = belief_after(self.env, self.manual, state["belief"], turn)
        yield "belief_update", follow_belief(state, belief)

    def text(self, message: Any) -> str:
        """What a message says and calls, for logs."""
        calls = (self.action(as_call(call)) for call in getattr(message, "tool_calls", ()))
        return "\n".join(filter(None, (message.text, *calls)))

    def action(self, call: Call) -> str:
        """A call as an action of the manual, as prompts and memories say it; else as a call."""
        rule = self.manual.by_name.get(call.tool)
        if rule is None or call.arguments.keys() != rule.called.keys():
            return str(call)
        names = {parameter: str(call.arguments[name]) for name, parameter in rule.called.items()}
        action = rule.syntax.format(**names)
        return action if match_action(self.manual, action) == (rule, names) else str(call)


def _as_decision(decided: Mapping[str, Any], step: int, proposal: str, action: str) -> Decision:
    """What the guard of tools decided, as the logs say it."""
    verdict: Verdict = "accepted" if not decided["rule"] else "overridden"
    return Decision(
        step=step, proposal=proposal, verdict=verdict if decided["ran"] else "retried",
        rule=decided["rule"], reason=decided["reason"], repair=decided["repair"],
        played=action if decided["ran"] else "",
    )  # fmt: skip


class StateMemory(EpisodeFollower):
    """Puts the rules, the state and what fits it of a memory into every model call.

    The same stages as in our graph retrieve, filter and arbitrate. Where ``memory`` names no file,
    the agent's store has it, or ``memory.jsonl`` beside the world. Everything stands in the
    system message; with ``layout="cache_friendly"`` what changes comes last, behind the messages.
    """

    def __init__(self, world: str, memory: str | PathLike[str] | bool = True, **more: Any) -> None:
        file = {} if isinstance(memory, bool) else {"memory_file": fspath(memory)}
        super().__init__(world, **{"rules": True, "memory": memory is not False, **file, **more})

    def before_model(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Go through our stages as far as the prompt."""
        episode, stage = super().before_model(state, runtime)["episode"], "belief_update"
        now, here = cast(Any, episode), Runtime(context=self.context, store=runtime.store)
        while (stage := next_stage(stage, now)) != "prompt_build":
            run = getattr(stages, stage)
            apply_update(episode, run(now, here) if stage == "goal_retrieval" else run(now))
        blocks = knowledge_blocks(knowledge_of(now))
        parts = arrange(blocks, self.context.layout, self.env)
        texts = ["\n\n".join(filter(None, part)) for part in parts]
        episode["prompt"] = [Message(role="system", content=text) for text in texts]
        return {"episode": {**episode, "knowledge_tokens": tokens(blocks)}}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Let the model read it."""
        return handler(self.inform(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """The same on an event loop."""
        return await handler(self.inform(request))

    def inform(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with our blocks."""
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
    """Writes every episode of an agent into a run folder, as ``rpms eval`` writes its own.

    The folder is checked when the recorder is made. After that nothing is raised into the agent:
    what cannot be written is logged (``rpms.recorder``). The episodes of an agent are an arm of
    the run, called by the agent's name. With other rules, memories or settings they are another
    arm: ``refund desk (rules 3f2a)``.

    An episode that breaks off is not written; of one that goes on, the last line counts.

    Args:
        world: the world by its name.
        out: the run folder: a new or an empty one, or one that a recorder wrote.
        won: tells from an episode's state whether it was won; by default at 100% of the goal.
        name: what the agent is called; by default as in ``create_agent(name=...)``, else as the
            world.
        more: settings of ``RunContext``, such as ``model`` where it cannot be read off the model.
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
        """A measure, so it is taken whether or not the agent itself has a sub-goal."""
        pointer = self.env.sub_goal(state["goal"], state["belief"], state["history"])
        return pointer["progress"] >= 100

    def before_model(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Take in what the tools have answered."""
        with _logged_errors():
            return super().before_model(state, runtime)
        return {}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """Note what the model is sent, and how long it takes."""
        recorder = self._note_prompt(request)
        response = handler(request)
        if recorder:
            recorder.arrived("llm_call")
        return response

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Any:
        """The same on an event loop, which waits for no file."""
        recorder = await asyncio.to_thread(self._note_prompt, request)
        response = await handler(request)
        if recorder:
            recorder.arrived("llm_call")
        return response

    def after_agent(self, state: ToolAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Write the episode; ``simulator_state`` has which repeat it is, should it go on."""
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
        named = self.agent or get_config().get("metadata", {}).get("lc_agent_name")
        return " ".join(valid(str(named or self.env.name)).split())

    def _checksum(self, context: RunContext) -> str:
        """Of the manual as it was first read: an edited file counts for the next recorder."""
        manual = context.rules_dir, context.without_rules
        if manual not in self._checksums:
            self._checksums[manual] = rules_hash(self.env.name, *manual)
        return self._checksums[manual]

    def _note_prompt(self, request: ModelRequest[Any]) -> EpisodeRecorder | None:
        """A recorder that fails is given up; the next call makes another from the messages."""
        state = cast(Any, request.state)
        if "episode" not in state:  # that it could not be read has been logged
            return None
        episode = state["episode"]
        with _logged_errors():
            guard = {"guard": "verify"} if "guard" in state else {}
            chosen = {**episode["settings"], **guard, **_decoding(request.model), **self.chosen}
            recorder = self._live.get(episode["episode_id"]) or self._open(
                episode, settings(chosen)
            )
            self._catch_up(recorder, state["messages"])
            whole = [*filter(None, [request.system_message]), *request.messages]
            prompt = [{"role": ROLES.get(m.type, m.type), "content": self.text(m)} for m in whole]
            leading = {name: episode[name] for name in LED_TO_PROMPT}
            recorder.note("prompt_build", {**leading, "settings": chosen, "prompt": prompt})
            return recorder
        self._live.pop(episode.get("episode_id"), None)
        return None

    def _open(self, episode: EpisodeState, context: RunContext) -> EpisodeRecorder:
        rates = rates_for(context.model, context.base_url)
        recorder = EpisodeRecorder(Job("", episode["spec"]), False, rates)
        recorder.state |= {"task": episode["task_id"], "split": episode["split"]}
        self._live[episode["episode_id"]] = recorder
        if len(self._live) > MOST_LIVE:  # those that broke off never end
            self._live.pop(next(iter(self._live)), None)
        return recorder

    def _catch_up(self, recorder: EpisodeRecorder, messages: Messages) -> None:
        """Also with what came before, where the episode was begun elsewhere."""
        for stage, update in self.read(messages, recorder.state):
            recorder.note(stage, update)


@contextmanager
def _logged_errors() -> Iterator[None]:
    """Log an error of ours, so that the agent goes on."""
    try:
        yield
    except RpmsError as error:
        LOG.error("an episode is not recorded: %s", error)
    except Exception:  # a world's own code may raise anything
        LOG.exception("an episode is not recorded")


def _decoding(model: Any) -> dict[str, Any]:
    """A model's name and temperature; clients call the name differently."""
    names = (getattr(model, field, None) for field in ("model_name", "model", "model_id"))
    name = next((n for n in names if n and isinstance(n, str)), type(model).__name__)
    heat = getattr(model, "temperature", None)
    heat = float(heat) if isinstance(heat, int | float) and heat >= 0 else 0.0
    return {"model": valid(name), "temperature": heat}
