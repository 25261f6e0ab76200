"""Playing one episode of a run and turning it into its line and its step log.

The log has everything that led to each decision, for the viewer and for later questions. It is
collected from the graph's stream of updates, so that no stage knows of it. A prompt repeats nearly
all of the one before; each distinct text is therefore kept once, in a table.

Left alone, an event loop shares itself out evenly. Thirty replies that arrive together are then
worked on together, all next requests go out together at the end, and every round takes the
model's time plus thirty times ours. When a few episodes at a time are worked on until their next
request is out, they spread over the model's time and the waiting hides the work.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import defaultdict
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from rpms.envs import Environment, get_environment, live
from rpms.evals.costs import Meter, cost_of, nothing_spent
from rpms.evals.manifest import now
from rpms.evals.plan import Job
from rpms.evals.records import EpisodeLine
from rpms.evals.rule_compliance import (
    compliance_counts,
    failure_counts,
    judge,
    judging_manual,
    mark_failures,
    prediction_counts,
)
from rpms.evals.step_counts import decision_counts, drift_counts, memory_counts, source_counts
from rpms.graph.build import RpmsGraph
from rpms.models.prices import Rates
from rpms.nodes.context import RunContext
from rpms.nodes.state import EpisodeInput, EpisodeState, follow
from rpms.rules import ActiveRules
from rpms.rules.manual import SITUATION
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.error_place import place_of
from rpms.vocabulary.errors import EnvironmentFault, ModelFault, RpmsError
from rpms.vocabulary.goal import GoalSpec, printed_sub_goal
from rpms.vocabulary.safe_text import redact

STEPPING = 2
"""Two, so that one can compute while the simulator works for the other."""


class ComputeSlots:
    """The places of one event loop."""

    def __init__(self) -> None:
        """One game is started at a time, so that steps never wait behind a row of them."""
        self.starting = asyncio.Semaphore(1)
        self.stepping = asyncio.Semaphore(STEPPING)


class ComputeSlot:
    """What one episode holds: a place to start, a place to step, or none while it waits."""

    def __init__(self, slots: ComputeSlots) -> None:
        """None yet."""
        self._slots = slots
        self._held: asyncio.Semaphore | None = None

    async def start(self) -> None:
        """Wait for the turn to start a game."""
        await self._take(self._slots.starting)

    async def passed(self, stage: str) -> None:
        """A stage is done; before the model is asked the place is given up."""
        if stage == "prompt_build":
            self.leave()
        elif stage in ("reset_env", "llm_call"):
            await self._take(self._slots.stepping)

    async def _take(self, semaphore: asyncio.Semaphore) -> None:
        self.leave()
        await semaphore.acquire()
        self._held = semaphore

    def leave(self) -> None:
        """Let the next one in."""
        if self._held is not None:
            self._held.release()
            self._held = None


LEVEL = 5
UNANSWERED: dict[str, Any] = {
    "reply": "", "thought": "", "action": "", "result": "", "failed": False, "replayed": False,
    "usage": {"prompt_tokens": 0, "cached_tokens": 0, "output_tokens": 0}, "seconds": 0.0,
    "cost_usd": None, "proposal": "", "judged": [], "lacked": "",
}  # fmt: skip
"""How a step reads when the episode broke off in it."""


class StepLog:
    """Takes the state after each stage; gives the file's bytes at the end."""

    def __init__(self, condition: str, task: str, env: Environment) -> None:
        """An empty log of one episode."""
        self._head = {"condition": condition, "task": task}
        self._env = env
        self._messages: dict[str, int] = {}
        self.steps: list[dict[str, Any]] = []  # each a ``records.Step`` in the making

    def believed(self, state: EpisodeState) -> dict[str, Any]:
        """A new step begins with what is believed; the truth may be added to it."""
        step: dict[str, Any] = {
            "step": state["steps"] + 1,
            "observation": state["observation"],
            "belief": state["belief"],
            "sub_goal": printed_sub_goal(state["sub_goal"]),
            "truth": {},
            "drift": [],
            **UNANSWERED,
        }
        self.steps.append(step)
        return step

    def asked(self, state: EpisodeState) -> None:
        """The prompt stands: note what went into it."""
        self.steps[-1].update(
            rules=_rule_ids(state["rules"]),
            recalls=state["recalls"],
            prompt=[[m["role"], self._place(m["content"])] for m in state["prompt"]],
            knowledge_tokens=state["knowledge_tokens"],
            dropped_turns=state["dropped_turns"],
            shortlist=state["shortlist"],
        )

    def answered(self, state: EpisodeState, seconds: float, cost_usd: float | None) -> None:
        """The reply has come; the cost is None when no price is known."""
        usage = state["usage"]
        counts = ("prompt_tokens", "cached_tokens", "output_tokens")
        self.steps[-1].update(
            reply=state["reply"],
            usage={name: usage[name] for name in counts},  # type: ignore[literal-required]
            replayed=usage["replayed"],
            seconds=round(seconds, 4),
            cost_usd=cost_usd,
        )

    def played(self, state: EpisodeState) -> None:
        """The environment has answered."""
        turn, step = state["history"][-1], self.steps[-1]
        decisions = [d for d in state["decisions"] if d["step"] == turn["step"]]
        # What the model said of its own accord, before a guard asked again or played another.
        proposal = decisions[0]["proposal"] if decisions else turn["action"]
        manual = judging_manual(state["env"], state["settings"])
        step.update(
            decisions=decisions,
            proposal=proposal,
            judged=judge(manual, proposal, step["belief"], state["goal"]),
            thought=turn["thought"],
            action=turn["action"],
            result=turn["observation"],
            failed=turn["failed"],
        )

    def analysed(self, state: EpisodeState, goal: GoalSpec) -> dict[str, Any]:
        """The counts for the line: rules kept, why actions failed, where memories came from."""
        settings, mode = state.get("settings", {}), state.get("failure_mode")
        if self.steps:
            manual = judging_manual(state["env"], settings)
            mark_failures(self.steps, manual, goal, settings, mode)
        return {
            **compliance_counts(self.steps),
            **prediction_counts(self.steps),
            **failure_counts(self.steps, mode),
            **source_counts(self.steps, settings, self._goal_type),
        }

    def _goal_type(self, printed: str) -> str:
        return self._env.read_signature(printed).type

    def pack(self, state: EpisodeState) -> bytes:
        """The whole log as the file's bytes."""
        goal = state.get("goal")
        for step in self.steps:
            lines = self._env.describe_belief(step["belief"], goal) if goal else []
            step["state_lines"] = lines
        log = {**self._head, "messages": list(self._messages), "steps": self.steps}
        text = json.dumps(log, ensure_ascii=False, separators=(",", ":"))
        # No time stamp: the same episode gives the same bytes.
        return gzip.compress(text.encode(), compresslevel=LEVEL, mtime=0)

    def _place(self, text: str) -> int:
        return self._messages.setdefault(text, len(self._messages))


def look_at_truth(env: Environment, belief: Belief, game: Any) -> tuple[dict[str, str], list[str]]:
    """The true state, and what of the belief contradicts it. A metric, never a hint."""
    facts = game.facts()
    return env.true_state(facts), env.drift(belief, facts)


def _rule_ids(rules: ActiveRules) -> dict[str, Any]:
    """By tier, in the order they were printed; what a situation says stands nowhere else."""
    ids = {name: [rule["id"] for rule in tier] for name, tier in rules.items()}
    return {**ids, SITUATION: [dict(rule) for rule in rules[SITUATION]]}


COUNTS = ("steps", "invalid_actions", "format_errors", "prompt_tokens", "cached_tokens",
          "output_tokens", "model_calls", "cache_hits", "capped_replies")  # fmt: skip


class EpisodeResult(NamedTuple):
    """What the run folder keeps of an episode."""

    line: EpisodeLine
    steps: bytes


class Recorder:
    """Follows one episode through the graph's updates."""

    def __init__(
        self, job: Job, truth: bool, rates: Rates | None = None, meter: Meter | None = None
    ) -> None:
        """Nothing has happened yet."""
        self.job = job
        self.env = get_environment(job.task["env"])
        self.log = StepLog(job.condition, job.task["id"], self.env)
        self.state: dict[str, Any] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.spent = nothing_spent()
        self._rates, self._meter = rates, meter
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
        cost = cost_of(call, self._rates)
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
        carried = {"carried": dict(self.job.carried)} if self.job.trial > 1 else {}
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
            "knowledge_tokens": round(sum(knowledge) / len(knowledge), 1) if knowledge else 0.0,
            "dropped_turns": max((step.get("dropped_turns", 0) for step in steps), default=0),
            **{f"spent_{name}": count for name, count in self.spent.items()},
            "cost_usd": cost_of(self.spent, self._rates),
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
        line = EpisodeLine.model_construct(**fields)
        return EpisodeResult(line, self.log.pack(cast(EpisodeState, self.state)))


async def play_job(
    graph: RpmsGraph,
    job: Job,
    context: RunContext,
    truth: bool,
    slots: ComputeSlots | None = None,
    rates: Rates | None = None,
    meter: Meter | None = None,
) -> EpisodeResult:
    """Play one episode; whatever goes wrong in it is its result, never the run's end.

    Once the budget is spent no further call is made: the episode waits, and whoever holds the
    ``meter`` too stops the run.
    """
    place = ComputeSlot(slots or ComputeSlots())
    await place.start()
    recorder = Recorder(job, truth, rates, meter)
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
