"""Conditions side by side: the same tasks under A, B, C, D."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel

from envs import Task, get_environment
from graph import build_graph, run_episode
from nodes.context import RunContext
from nodes.state import EpisodeOutput


@dataclass
class Tally:
    """Results of one condition, overall, for one task type (or family), or for one task.

    Episodes that ended in a model or infrastructure error say nothing about the agent, so they
    are counted apart and left out of every rate. A negative score counts as 0 in the ``floored``
    sum, which is the primary one; the ``raw`` sum keeps it.
    """

    episodes: int = 0
    wins: int = 0
    steps: int = 0
    invalid: int = 0
    errors: int = 0
    floored: float = 0.0
    raw: float = 0.0
    by_type: dict[str, Tally] = field(default_factory=dict)
    by_task: dict[str, Tally] = field(default_factory=dict)

    def add(self, result: EpisodeOutput) -> None:
        """Count one finished episode."""
        if result["failure_mode"] in ("model_error", "infrastructure_error"):
            self.errors += 1
            return
        self.episodes += 1
        self.wins += result["success"]
        self.steps += result["steps"]
        self.invalid += result["invalid_actions"]
        self.floored += max(0.0, result["score"])
        self.raw += result["score"]

    @property
    def rate(self) -> float:
        """Success rate in percent."""
        return 100 * self.wins / self.episodes if self.episodes else 0.0

    @property
    def mean_score(self) -> float:
        """Score per episode, negative ones floored at 0."""
        return self.floored / self.episodes if self.episodes else 0.0

    @property
    def mean_raw_score(self) -> float:
        """Score per episode as the environment gave it."""
        return self.raw / self.episodes if self.episodes else 0.0

    @property
    def mean_steps(self) -> float:
        """Steps per episode."""
        return self.steps / self.episodes if self.episodes else 0.0

    @property
    def invalid_rate(self) -> float:
        """Share of steps that were refused or unreadable, in percent (P1)."""
        return 100 * self.invalid / self.steps if self.steps else 0.0


def run_conditions(
    conditions: Sequence[str],
    tasks: Sequence[Task],
    *,
    model: BaseChatModel | None = None,
    context: RunContext | None = None,
) -> Iterator[tuple[str, str, EpisodeOutput, dict[str, Tally]]]:
    """Play every task under every condition; yields after each episode what stands so far."""
    base = context or RunContext()
    contexts = {name: RunContext.for_condition(name) for name in conditions}
    graph = build_graph(model=model)
    tallies = {name: Tally() for name in conditions}
    for task in tasks:
        world = get_environment(task["env"])
        kind = world.parse_goal(task["goal"])["type"]
        for name in conditions:
            chosen = contexts[name]
            result = run_episode(
                task["id"],
                env=task["env"],
                split=task["split"],
                context=base.with_(rules=chosen.rules, memory=chosen.memory),
                graph=graph,
            )
            tally = tallies[name]
            tally.add(result)
            tally.by_type.setdefault(kind, Tally()).add(result)
            tally.by_task.setdefault(world.task_name(task), Tally()).add(result)
            yield name, kind, result, tallies
