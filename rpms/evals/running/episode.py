"""Runs one episode and records its line and its step log.

The step log has everything that led to each action, for the page and for later analyses. It is
collected from the graph's stream of updates, so that no stage depends on it. A prompt repeats
nearly all of the previous one, so each distinct text is stored once.
"""

from __future__ import annotations

import asyncio
import gzip
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from langchain_core.messages import convert_to_openai_messages

from rpms.envs import Environment, get_environment, live
from rpms.envs.manuals import load_manual
from rpms.evals.records.schema import EpisodeLine
from rpms.evals.running.costs import Meter, Tokens, cost_of
from rpms.evals.running.manifest import timestamp
from rpms.evals.running.plan import Job
from rpms.graph.build import RpmsGraph
from rpms.models.prices import Rates
from rpms.nodes.reset_env import listed_task
from rpms.nodes.state import EpisodeInput, EpisodeState, apply_update
from rpms.rules import ActiveRules
from rpms.rules.manual import SITUATION
from rpms.rules.verdicts import verdicts_on
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.errors import EnvironmentFault, ModelFault, RpmsError
from rpms.vocabulary.files import json_bytes
from rpms.vocabulary.safe_text import redact
from rpms.vocabulary.turn import Decision

NOTHING = Tokens()
LEVEL = 5
UNANSWERED: dict[str, Any] = {
    "reply": "", "thought": "", "action": "", "result": "", "failed": False, "replayed": False,
    "usage": Tokens()._asdict(), "seconds": 0.0,
    "cost_usd": None, "proposal": "", "judged": [],
}  # fmt: skip
"""The fields of a step in which the episode was interrupted."""


def look_at_truth(env: Environment, belief: Belief, game: Any) -> tuple[dict[str, str], list[str]]:
    """The true state and the belief errors; the agent never sees them."""
    facts = game.facts()
    return env.true_state(facts), env.belief_errors(belief, facts)


def _rule_ids(rules: ActiveRules) -> dict[str, Any]:
    """Rule ids by tier, in printed order; rules of the situation with their texts."""
    ids = {name: [rule["id"] for rule in tier] for name, tier in rules.items()}
    return {**ids, SITUATION: [dict(rule) for rule in rules[SITUATION]]}


COUNTS = ("steps", "prompt_tokens", "cached_tokens", "output_tokens", "model_calls", "cache_hits",
          "capped_replies")  # fmt: skip


class EpisodeResult(NamedTuple):
    """An episode's line and its compressed step log."""

    line: EpisodeLine
    steps: bytes


class EpisodeRecorder:
    """Records one episode from the graph's updates."""

    def __init__(
        self,
        job: Job,
        truth: bool,
        rates: Rates | None = None,
        meter: Meter | None = None,
        spent: Tokens = NOTHING,
    ) -> None:
        """``spent`` are the tokens that the memory used for this episode before it starts."""
        self.job = job
        self.env = get_environment(job.task["env"])
        self.state: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []  # each becomes a ``records.Step``
        self.spent = spent
        self.conversation: list[dict[str, Any]] = []  # of an agent with tools, for `rpms audit`
        self._texts: dict[str, int] = {}
        self._truth, self._rates, self._meter = truth, rates, meter
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._elapsed = 0.0
        self._started = timestamp()
        self._began = self._last = perf_counter()

    def arrived(self, stage: str) -> None:
        """Measure the time of a stage that is done."""
        self._elapsed = perf_counter() - self._last
        self._seconds[stage] += self._elapsed

    @property
    def model_seconds(self) -> float:
        """The time of all model calls so far."""
        return self._seconds["llm_call"]

    async def take(self, stage: str, update: dict[str, Any] | None) -> None:
        """Record the update of a stage, and at the start of a step the true state, if set."""
        self.note(stage, update or {})
        if stage == "belief_update" and self._truth:
            look = partial(look_at_truth, self.env, self.state["belief"])
            checked = await live.awaited(live.inspect, self.state["episode_id"], look)
            self.steps[-1]["truth"], self.steps[-1]["belief_errors"] = checked or ({}, [])
            self._last = perf_counter()

    def note(self, stage: str, update: Mapping[str, Any]) -> None:
        """Record the update of a stage without the true state."""
        apply_update(self.state, update)
        state = cast(EpisodeState, self.state)
        if stage == "belief_update":
            self._begin_step(state)
        elif stage == "prompt_build":
            self._note_prompt(state)
        elif stage == "llm_call" and not state["done"]:
            self._note_reply(state)
        elif stage == "guard_check":  # at once, because a vetoed action has no turn
            self.steps[-1]["decisions"] = self._decisions(state)
            self._note_vetoes(state)
        elif stage == "env_step" and len(state["history"]) == len(self.steps):
            self._note_turn(state)  # an environment that failed adds no turn
        self._last = perf_counter()

    def _begin_step(self, state: EpisodeState) -> None:
        """Begin a step with belief and progress, which are measured in every arm."""
        pointer = state["sub_goal"]
        step: dict[str, Any] = {
            "step": state["steps"] + 1,
            "observation": state["observation"],
            "belief": state["belief"],
            "sub_goal": {n: pointer[n] for n in ("name", "target", "progress")},
            "truth": {},
            "belief_errors": [],
            **UNANSWERED,
        }
        self.steps.append(step)

    def _note_prompt(self, state: EpisodeState) -> None:
        prompt = self._numbered(state)
        copied = ("recalls", "truncated", "knowledge_tokens", "dropped_turns", "shortlist")
        self.steps[-1] |= {
            "rules": _rule_ids(state["rules"]),
            "prompt": prompt,
            **{name: self.state[name] for name in copied},
        }

    def _note_vetoes(self, state: EpisodeState) -> None:
        """Keep the vetoed replies and the guard's answers, which continue the step's prompt."""
        prompt = self.steps[-1].get("prompt")  # a tool agent writes its own prompts
        if prompt and state["retries"]:
            self.steps[-1]["vetoes"] = self._numbered(state)[len(prompt) :]

    def _numbered(self, state: EpisodeState) -> list[list[Any]]:
        """The prompt; the number of a text says where it is in the log's messages."""
        messages: Any = convert_to_openai_messages(state["prompt"])
        return [[message["role"], self._index(message["content"])] for message in messages]

    def _index(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _note_reply(self, state: EpisodeState) -> None:
        """Count the call; the cost is None without a price."""
        usage = Tokens.of(state["usage"])
        call = NOTHING if state["usage"]["replayed"] else usage
        self.spent = self.spent.plus(call)
        cost = cost_of(call, self._rates)
        if self._meter:
            self._meter.add(call, cost)
        self.steps[-1] |= {
            "reply": state["reply"],
            "usage": usage._asdict(),
            "replayed": state["usage"]["replayed"],
            "seconds": round(self._elapsed, 4),
            "cost_usd": cost,
        }

    def _decisions(self, state: EpisodeState) -> list[Decision]:
        return [d for d in state["decisions"] if d["step"] == self.steps[-1]["step"]]

    def _note_turn(self, state: EpisodeState) -> None:
        turn, step = state["history"][-1], self.steps[-1]
        decisions = self._decisions(state)
        # The model's first proposal, before a guard retried or replaced it.
        proposal = decisions[0]["proposal"] if decisions else turn["action"]
        settings = state["settings"]
        rules = (str(settings.get(name) or "") for name in ("rules_dir", "without_rules"))
        manual = load_manual(state["env"], *rules)
        step |= {
            "decisions": decisions,
            "proposal": proposal,
            "judged": [*verdicts_on(manual, proposal, step["belief"], state["goal"]).items()],
            "thought": turn["thought"],
            "action": turn["action"],
            "result": turn["observation"],
            "failed": turn["failed"],
        }

    def fail(self, error: Exception) -> None:
        """Record an error of the environment, of the set-up, or of a model that writes a text."""
        text = redact(" ".join(str(error).split()))
        is_expected = isinstance(error, EnvironmentFault | RpmsError)
        is_model_error = isinstance(error, ModelFault)
        self.state |= {
            "failure_mode": "model_error" if is_model_error else "infrastructure_error",
            "error": text if is_expected else f"{type(error).__name__}: {text}",
            "error_place": place_of(error, anywhere=not is_expected),
            "success": False,
        }

    def result(self) -> EpisodeResult:
        """The line and the log, for any state of the episode."""
        try:
            return self._result()
        except Exception as error:  # code of a custom environment may fail here, too
            if not self.state.get("error"):
                self.fail(error)
            self.steps, self._texts = [], {}
            return self._result()

    def _result(self) -> EpisodeResult:
        task = self.job.task
        goal = self.state.get("goal") or self.env.parse_goal(task["goal"])
        cross_trial_memory = (
            {"cross_trial_memory": dict(self.job.cross_trial_memory)} if self.job.trial > 1 else {}
        )
        fields: dict[str, Any] = {
            "condition": self.job.condition,
            "repeat": self.job.repeat,
            "trial": self.job.trial,
            "env": task["env"],
            "split": task["split"],
            "task": task["id"],
            "index": task["index"],
            "type": goal["type"],
            "goal": task["goal"],
            "signature": goal["signature"],
            "success": self.state.get("success", False),
            "score": self.state.get("score", 0.0),
            "failure_mode": self.state.get("failure_mode"),
            "error": self.state.get("error", ""),
            "error_place": self.state.get("error_place"),
            **{name: self.state.get(name, 0) for name in COUNTS},
            **{f"spent_{name}": count for name, count in self.spent._asdict().items()},
            "cost_usd": cost_of(self.spent, self._rates),
            "seconds": round(perf_counter() - self._began, 3),
            "env_seconds": round(self._seconds["env_step"] + self._seconds["reset_env"], 3),
            "model_seconds": round(self.model_seconds, 3),
            "started": self._started,
            "first_observation": self.state.get("first_observation", ""),
            "history": self.state.get("history", []),
            **cross_trial_memory,
        }
        return EpisodeResult(EpisodeLine.model_construct(**fields), self._pack())

    def _pack(self) -> bytes:
        """The step log as compressed bytes."""
        goal = self.state.get("goal")
        for step in self.steps:
            step["state_lines"] = self.env.describe_belief(step["belief"], goal) if goal else []
        log = {
            "condition": self.job.condition,
            "task": self.job.task["id"],
            "messages": list(self._texts),
            "steps": self.steps,
            **({"conversation": self.conversation} if self.conversation else {}),
        }
        # Without a timestamp the same episode gives the same bytes.
        return gzip.compress(json_bytes(log), compresslevel=LEVEL, mtime=0)


def never_played(job: Job, error: Exception, rates: Rates | None = None) -> EpisodeResult:
    """The result of an episode that could not start, or was given up."""
    recorder = EpisodeRecorder(job, truth=False, rates=rates)
    recorder.fail(error)
    return recorder.result()


async def play_job(
    graph: RpmsGraph,
    job: Job,
    context: RunContext,
    truth: bool,
    rates: Rates | None = None,
    meter: Meter | None = None,
    spent: Tokens = NOTHING,
) -> EpisodeResult:
    """Run one episode; an error in it becomes its result and does not end the run.

    Once the budget is spent, the episode makes no further call and waits until the run is stopped.
    """
    recorder = EpisodeRecorder(job, truth, rates, meter, spent)
    start = EpisodeInput(env=job.task["env"], split=job.task["split"], task=job.task["id"])
    listed_task.set(job.task)
    if job.cross_trial_memory:
        start["cross_trial_memory"] = dict(job.cross_trial_memory)
    try:
        async for update in graph.astream(start, context=context, stream_mode="updates"):
            for stage, change in cast(dict[str, Any], update).items():
                recorder.arrived(stage)
                await recorder.take(stage, change)
                if stage == "prompt_build" and meter and meter.is_spent:
                    await asyncio.Event().wait()
    except Exception as error:  # an error in one episode must not affect others
        recorder.fail(error)
        if episode_id := recorder.state.get("episode_id"):
            with suppress(Exception):  # a custom game may fail to close
                await live.awaited(live.finish, episode_id, job.task)
    return recorder.result()
