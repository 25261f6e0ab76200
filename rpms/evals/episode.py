"""Playing one episode of a run and turning it into its line and its step log."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from rpms.envs import get_environment, live
from rpms.evals.budget import Meter
from rpms.evals.costs import Price, nothing_spent, unknown_price
from rpms.evals.manifest import now
from rpms.evals.pacing import Pacing, Place
from rpms.evals.plan import Job
from rpms.evals.step_log import StepLog, decision_counts, drift_counts, look_at_truth, memory_counts
from rpms.graph.build import RpmsGraph
from rpms.nodes.context import RunContext
from rpms.nodes.state import EpisodeInput, EpisodeState, follow
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.errors import EnvironmentFault, ModelFault, RpmsError
from rpms.vocabulary.safe_text import redact

COUNTS = ("steps", "invalid_actions", "format_errors", "prompt_tokens", "cached_tokens",
          "output_tokens", "model_calls", "cache_hits", "capped_replies")  # fmt: skip


class EpisodeResult(NamedTuple):
    """What the run folder keeps of an episode."""

    line: dict[str, Any]
    steps: bytes


class Recorder:
    """Follows one episode through the graph's updates."""

    def __init__(
        self, job: Job, truth: bool, price: Price = unknown_price, meter: Meter | None = None
    ) -> None:
        """Nothing has happened yet."""
        self.job = job
        self.env = get_environment(job.task["env"])
        self.log = StepLog(job.condition, job.task["id"], self.env)
        self.state: dict[str, Any] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.spent = nothing_spent()
        self._price, self._meter = price, meter
        self.started = now()
        self._truth = truth
        self.passed = 0.0
        self._began = self._last = perf_counter()

    def arrived(self, stage: str) -> None:
        """A stage is done: the time since the one before was its."""
        self.passed = perf_counter() - self._last
        self.seconds[stage] += self.passed

    async def take(self, stage: str, update: dict[str, Any] | None) -> None:
        """Note what a stage changed."""
        follow(self.state, update or {})
        state = cast(EpisodeState, self.state)
        if stage == "belief_update":
            step = self.log.believed(state)
            if self._truth:
                look = partial(look_at_truth, self.env, state["belief"])
                seen = await live.ainspect(state["episode_id"], look)
                step["truth"], step["drift"] = seen or ({}, [])
        elif stage == "prompt_build":
            self.log.asked(state)
        elif stage == "llm_call" and not state["done"]:
            self.log.answered(state, self.passed, self._spend(state))
        elif stage == "env_step" and len(state["history"]) == len(self.log.steps):
            self.log.played(state)  # a world that broke down adds no turn
        self._last = perf_counter()

    def _spend(self, state: EpisodeState) -> float | None:
        """Count one reply; what it cost."""
        usage, call = state["usage"], nothing_spent()
        if not usage["replayed"]:
            for name in call:
                call[name] = usage[name]  # type: ignore[literal-required]
                self.spent[name] += usage[name]  # type: ignore[literal-required]
        cost = self._price(call)
        if self._meter:
            self._meter.add(call, cost)
        return cost

    def fail(self, error: Exception) -> None:
        """Something outside the agent broke: the world, the set-up, or a model asked for a text."""
        text = redact(" ".join(str(error).split()))
        known = isinstance(error, EnvironmentFault | RpmsError)
        of_the_model = isinstance(error, ModelFault)
        self.state |= {
            "failure_mode": "model_error" if of_the_model else "infrastructure_error",
            "error": text if known else f"{type(error).__name__}: {text}",
            "error_place": place_of(error, anywhere=not known),
            "success": False,
        }

    def result(self) -> EpisodeResult:
        """The line and the log, whatever state the episode was left in."""
        try:
            return self._result()
        except Exception as error:  # a world of somebody's own is asked here, too
            if not self.state.get("error"):
                self.fail(error)
            self.log = StepLog(self.job.condition, self.job.task["id"], self.env)
            return self._result()

    def _result(self) -> EpisodeResult:
        steps, task = self.log.steps, self.job.task
        goal = self.state.get("goal") or self.env.parse_goal(task["goal"])
        knowledge = [step["knowledge_tokens"] for step in steps if "knowledge_tokens" in step]
        often = {"repeat": self.job.repeat, "trial": self.job.trial}
        carried = {"carried": dict(self.job.carried)} if self.job.trial > 1 else {}
        line = {
            "condition": self.job.condition,
            **often,
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
            "knowledge_tokens": round(sum(knowledge) / len(knowledge), 1) if knowledge else 0.0,
            "dropped_turns": max((step.get("dropped_turns", 0) for step in steps), default=0),
            **{f"spent_{name}": count for name, count in self.spent.items()},
            "cost_usd": self._price(self.spent),
            **drift_counts(steps),
            **memory_counts(steps),
            **decision_counts(self.state.get("decisions", [])),
            **self.log.analysed(cast(EpisodeState, self.state), goal),
            "seconds": round(perf_counter() - self._began, 3),
            "env_seconds": round(self.seconds["env_step"] + self.seconds["reset_env"], 3),
            "model_seconds": round(self.seconds["llm_call"], 3),
            "started": self.started,
            "first_observation": self.state.get("first_observation", ""),
            "history": self.state.get("history", []),
            **carried,
        }
        return EpisodeResult(line, self.log.pack(cast(EpisodeState, self.state)))


async def play_job(
    graph: RpmsGraph,
    job: Job,
    context: RunContext,
    truth: bool,
    pacing: Pacing | None = None,
    price: Price = unknown_price,
    meter: Meter | None = None,
) -> EpisodeResult:
    """Play one episode; whatever goes wrong in it is its result, never the run's end.

    Once the budget is spent no further call is made: the episode waits, and whoever holds the
    ``meter`` too stops the run.
    """
    place = Place(pacing or Pacing())
    await place.start()
    recorder = Recorder(job, truth, price, meter)
    asked = EpisodeInput(env=job.task["env"], split=job.task["split"], task=job.task["id"])
    if job.carried:
        asked["carried"] = dict(job.carried)
    try:
        # The graph does not go on before the next update is asked for, so that waiting here
        # for a place holds the episode between two stages.
        async for update in graph.astream(asked, context=context, stream_mode="updates"):
            for stage, change in cast(dict[str, Any], update).items():
                recorder.arrived(stage)
                await place.passed(stage)
                await recorder.take(stage, change)
                if stage == "prompt_build" and meter and meter.is_spent:
                    await asyncio.Event().wait()
    except Exception as error:  # one episode's trouble must not be another's
        recorder.fail(error)
        if episode_id := recorder.state.get("episode_id"):
            with suppress(Exception):  # a game of somebody's own may not even close
                await live.afinish(episode_id, job.task)
    finally:
        place.leave()
    return recorder.result()
