"""How often each mechanism was at work in a run, counted from its step logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rpms.evals.protocol_card import protocol_of
from rpms.evals.records import Episode
from rpms.evals.report.source import source_of
from rpms.evals.run_folder import Run, read_log
from rpms.evals.step_analysis import decision_counts, memory_counts
from rpms.evals.tables import Table, count, label

TITLES = {
    "recalled": "memories recalled",
    "dropped_scf": "dropped by SCF",
    "dropped_arbitration": "removed by the arbiter",
    "warned": "warned by the arbiter",
    "refused": "actions refused",
    "explained": "refusals explained",
    "vetoed": "vetoed by the guard",
    "circles": "of them circles broken",
}
# The principle "do something else"; a veto that cites it broke a repetition or a circle.
_CIRCLE = "U-FAIL-001"


def mechanism_table(run: Run) -> Table:
    """A row for each mechanism, a column for each condition: sums over all steps."""
    counts = {name: _count(run, run.played(name)) for name in run.conditions}
    rows = [
        [label(title), *(count(counts[name][key]) for name in run.conditions)]
        for key, title in TITLES.items()
    ]
    return Table(
        "mechanisms", "How often each mechanism was at work", source_of(run),
        ["", *run.conditions], rows,
        notes=["Counted in the step logs: a memory recalled at ten steps counts ten times."],
        protocol=protocol_of(run.manifest),
    )  # fmt: skip


def _count(run: Run, episodes: Iterable[Episode]) -> Counter[str]:
    total: Counter[str] = Counter()
    for episode in episodes:
        log = read_log(run.log_file(episode))
        total.update(step_counts(log["steps"]) if log else {})
    return total


def step_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What was at work in the steps of one episode."""
    decisions = [decision for step in steps for decision in step.get("decisions", [])]
    judged = decision_counts(decisions)
    return {
        **memory_counts(steps),
        "refused": sum(step["failed"] for step in steps),
        "explained": sum(_explains(after, before) for before, after in pairwise(steps)),
        "vetoed": judged["asked_again"] + judged["replaced"] + judged["fell_back"],
        "circles": judged["vetoes"].get(_CIRCLE, 0),
    }


def _explains(step: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the prompt said why the action before was refused."""
    refusal = f"'{before['action']}' was refused"
    situation = step.get("rules", {}).get("situation", [])
    return before["failed"] and any(refusal in rule["text"] for rule in situation)
