"""From episodes to figures: rates, mean scores, and conditions paired task by task.

Episodes that ended in a model or infrastructure error never reach these functions: callers pass
judged episodes, and say how many were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rpms.envs import get_environment
from rpms.evals.run_files import Episode, Run
from rpms.evals.statistics import Interval, mcnemar, mean_interval, ratio_interval, wilcoxon, wilson

Metric = Literal["success", "score"]


def metric_of(env: str) -> Metric:
    """What the primary figure of an environment is: marks for parts of a task, or won or not."""
    return "score" if get_environment(env).graded else "success"


def merit(episode: Episode, metric: Metric) -> float:
    """The primary figure of one episode: won or not, or the floored score."""
    return episode.floored if metric == "score" else float(episode.success)


@dataclass(frozen=True)
class Rate:
    """How many were won, with Wilson's interval."""

    wins: int
    n: int
    interval: Interval | None

    @property
    def share(self) -> float | None:
        """Between 0 and 1; nothing where nothing was played."""
        return self.wins / self.n if self.n else None


@dataclass(frozen=True)
class Mean:
    """A mean with its bootstrap interval."""

    value: float | None
    n: int
    interval: Interval | None


@dataclass(frozen=True)
class Pair:
    """Two conditions (or runs) over the tasks that both finished without an error.

    Attributes:
        n: how many tasks that is.
        both: won by both.
        only_first: won by the first alone.
        only_second: won by the second alone.
        difference: second minus first, in the primary figure.
        interval: paired bootstrap interval of the difference.
        p: exact McNemar test of the wins.
        p_score: Wilcoxon's signed-rank test of the floored scores.
    """

    n: int
    both: int
    only_first: int
    only_second: int
    difference: float | None
    interval: Interval | None
    p: float
    p_score: float


def rate(episodes: Sequence[Episode]) -> Rate:
    """The success rate."""
    wins = sum(episode.success for episode in episodes)
    return Rate(wins, len(episodes), wilson(wins, len(episodes)))


def average(values: Sequence[float]) -> float | None:
    """A mean without an interval; nothing where there is nothing."""
    return sum(values) / len(values) if values else None


def mean(values: Sequence[float]) -> Mean:
    """The mean of anything, with its interval."""
    return Mean(average(values), len(values), mean_interval(values))


def share(parts: Sequence[float], wholes: Sequence[float]) -> Mean:
    """sum(parts) / sum(wholes), e.g. refused actions per step."""
    total = sum(wholes)
    value = sum(parts) / total if total else None
    return Mean(value, len(parts), ratio_interval(parts, wholes))


def by_task(episodes: Iterable[Episode]) -> dict[str, Episode]:
    """Judged episodes by their task."""
    return {episode.task: episode for episode in episodes}


def shared_tasks(*sides: Mapping[str, Episode]) -> list[str]:
    """Tasks that every side finished, in the order of the first."""
    return [task for task in sides[0] if all(task in side for side in sides[1:])]


def pair(first: Iterable[Episode], second: Iterable[Episode], metric: Metric) -> Pair:
    """Compare two conditions task by task."""
    left, right = by_task(first), by_task(second)
    tasks = shared_tasks(left, right)
    won = [(left[task].success, right[task].success) for task in tasks]
    gains = [merit(right[task], metric) - merit(left[task], metric) for task in tasks]
    scores = [right[task].floored - left[task].floored for task in tasks]
    only_first, only_second = won.count((True, False)), won.count((False, True))
    found = mean(gains)
    return Pair(
        n=len(tasks),
        both=won.count((True, True)),
        only_first=only_first,
        only_second=only_second,
        difference=found.value,
        interval=found.interval,
        p=mcnemar(only_first, only_second),
        p_score=wilcoxon(scores),
    )


def groups(run: Run) -> list[str]:
    """Goal types (or families) of the run, sorted."""
    return sorted({task.type for task in run.manifest.tasks})
