"""Success against cost, and which conditions no other one beats in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rpms.evals.measures import average, merit, metric_of
from rpms.evals.records import Episode
from rpms.evals.report.results import figure
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run
from rpms.evals.tables import Table, label, number


class Point(NamedTuple):
    """A condition: what an episode of it cost, and the primary figure."""

    cost: float
    merit: float


def frontier_table(run: Run) -> Table | None:
    """A row for each condition that was played; None where there is nothing to compare."""
    found = points(run)
    if len(found) < 2:
        return None
    front, metric = frontier(found), metric_of(run.manifest.env)
    rows = []
    for name in found:
        judged = run.judged(name)
        calls = average([e.model_calls + e.cache_hits for e in judged])
        rows.append([
            label(names(name)),
            figure(judged, metric),
            number(average([tokens(e) for e in judged]), ",.0f"),
            number(_dollars(judged), ".6f"),
            number(calls, ".1f"),
            number(average([e.steps for e in judged]), ".1f"),
            label("yes" if name in front else "no"),
        ])  # fmt: skip
    columns = [
        "condition", "mean score" if metric == "score" else "success rate", "tokens per episode",
        "USD per episode", "model calls", "steps", "on the front",
    ]  # fmt: skip
    unit = "USD" if in_dollars(run) else "tokens"
    notes = [
        f"On the front: no other condition is at least as good for at most the same {unit} per "
        "episode, and better or cheaper. Means over the episodes that did not end in an error. "
        "Cost is counted in USD only where something was paid, every episode has a price and no "
        "reply came from the cache: a replayed one costs nothing, but is as long as before.",
    ]
    return Table(
        "frontier", "Success against cost", source_of(run), columns, rows, notes=notes
    )  # fmt: skip


def points(run: Run) -> dict[str, Point]:
    """Cost and figure of every condition that has episodes to judge."""
    metric, dollars = metric_of(run.manifest.env), in_dollars(run)
    found = {}
    for name in run.conditions:
        if judged := run.judged(name):
            cost = _dollars(judged) if dollars else average([tokens(e) for e in judged])
            found[name] = Point(cost or 0.0, average([merit(e, metric) for e in judged]) or 0.0)
    return found


def frontier(found: Mapping[str, Point]) -> list[str]:
    """The conditions that no other one beats, cheapest first."""
    kept = [name for name, one in found.items() if not any(_beats(o, one) for o in found.values())]
    return sorted(kept, key=lambda name: found[name])


def _beats(other: Point, one: Point) -> bool:
    return other != one and other.cost <= one.cost and other.merit >= one.merit


def in_dollars(run: Run) -> bool:
    """Whether money can be compared: all of it is known, and none was saved by the cache.

    What costs nothing at all, such as a local model, is compared by its tokens.
    """
    judged = [episode for name in run.conditions for episode in run.judged(name)]
    known = all(e.cost_usd is not None and not e.cache_hits for e in judged)
    return known and any(e.cost_usd for e in judged)


def tokens(episode: Episode) -> int:
    """What went out and came back, whether it was paid for or replayed."""
    return episode.prompt_tokens + episode.output_tokens


def _dollars(judged: list[Episode]) -> float | None:
    prices = [episode.cost_usd for episode in judged]
    known = [price for price in prices if price is not None]
    return average(known) if len(known) == len(prices) else None
