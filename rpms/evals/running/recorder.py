"""Middleware that writes the episodes of your own agent into a run folder.

List it after other middleware, with only the guard behind it, so that it sees the final prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, cast

from langchain.agents.middleware import ModelRequest
from langgraph.config import get_config
from langgraph.runtime import Runtime

from rpms.evals.records.checksums import rules_hash
from rpms.evals.running.episode import EpisodeRecorder
from rpms.evals.running.plan import Job
from rpms.evals.running.runner import check_recording, join_run
from rpms.graph.state_memory import EpisodeFollower, Handler, Messages, ToolAgentState
from rpms.guard.audit import write_messages
from rpms.models.constrained import innermost
from rpms.models.prices import rates_for
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import valid

LOG = logging.getLogger("rpms.recorder")
PROMPT_KEYS = ("rules", "recalls", "truncated", "knowledge_tokens", "shortlist", "dropped_turns")
MOST_LIVE = 256
ROLES = {"human": "user", "ai": "assistant", "tool": "user"}


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
