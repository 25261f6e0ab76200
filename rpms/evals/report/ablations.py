"""One setting at a time: arbitration, SCF, rounds of learning, memory controls.

Which conditions belong together follows from their settings in the manifest, not from their
labels: those that are alike in everything but the setting in question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rpms.evals.conditions import effective
from rpms.evals.measures import metric_of, pair
from rpms.evals.report.results import figure, gain
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run
from rpms.evals.tables import Cell, Table, count, label, p_value
from rpms.memory_store.controls import CONTROLS

TITLES = {
    "arbitration": "Arbitration",
    "scf": "State-consistent filtering (SCF)",
    "memory_file": "Learning curve",
    "memory_control": "Memory controls",
}
ORDERS = {
    "arbitration": ("none", "soft", "hard", "hard+soft"),
    "scf": ("off", "occupancy", "preconditions"),
    "memory_control": CONTROLS,
}


def ablation_tables(run: Run) -> Iterator[Table]:
    """A table for every setting that was varied."""
    for field, title in TITLES.items():
        for number_, group in enumerate(varied(run, field)):
            key = field if not number_ else f"{field}-{number_ + 1}"
            yield _table(run, key, title, field, group)


def varied(run: Run, field: str) -> list[list[str]]:
    """Groups of conditions that differ in this setting alone, each in its natural order."""
    alike: dict[str, list[str]] = {}
    for name, context in run.manifest.conditions.items():
        others = effective(context)
        if others.pop(field, None) is not None:
            alike.setdefault(repr(sorted(others.items())), []).append(name)
    groups = [sorted(group, key=_place(run, field)) for group in alike.values() if len(group) > 1]
    return [_with_round_zero(run, group) for group in groups] if field == "memory_file" else groups


def _place(run: Run, field: str) -> Callable[[str], int]:
    """Values in their natural order; where they have none, conditions stay in their own."""

    def place(name: str) -> int:
        value = str(run.manifest.conditions[name].get(field, ""))
        order = ORDERS.get(field, ())
        return order.index(value) if value in order else round_of(name, value)

    return place


def round_of(name: str, file: str = "") -> int:
    """The number of the learning round, from the label or the snapshot's name."""
    for text in (name, file):
        if match := re.search(r"round\s*(\d+)", text):
            return int(match[1])
    return 1000


def _with_round_zero(run: Run, group: list[str]) -> list[str]:
    """Round 0 is the same agent without memory, where the run has it."""
    mine = run.manifest.conditions[group[0]]
    for name, context in run.manifest.conditions.items():
        same = all(context.get(key) == mine.get(key) for key in ("rules", "layout", "model"))
        if same and not context.get("memory"):
            return [name, *group]
    return group


def _table(run: Run, key: str, title: str, field: str, group: Sequence[str]) -> Table:
    metric = metric_of(run.manifest.env)
    rows = []
    for name in group:
        judged = run.judged(name)
        versus = pair(run.judged(group[0]), judged, metric)
        change = [Cell("")] * (4 if field == "memory_control" else 2)
        if name != group[0]:
            p = versus.p_score if metric == "score" else versus.p
            change = [gain(versus.difference, versus.interval, metric), p_value(p)]
            if field == "memory_control":
                change += [count(versus.only_first), count(versus.only_second)]
        row = [label(_value(run, name, field)), label(names(name)), figure(judged, metric)]
        rows.append([*row, *change])
    test = "Wilcoxon p" if metric == "score" else "McNemar p"
    first = _value(run, group[0], field)
    columns = [
        title.split(" (")[0].lower() if field != "memory_file" else "round", "condition",
        "mean score" if metric == "score" else "success rate", f"gain over {first}", test,
    ]  # fmt: skip
    notes = ["Gains and tests over the tasks that both finished; p values are not corrected."]
    if field == "memory_control":
        columns += [f"won by {names(group[0])} alone", "won by the control alone"]
        notes.append(
            "The same memory made useless in one way each; McNemar's test is exact and two-sided. "
            "A memory that helps beats every control."
        )
    heading = f"{title}, {_switches(run, group[-1])}" if len(varied(run, field)) > 1 else title
    return Table(key, heading, source_of(run), columns, rows, notes=notes, labels=2)


def _switches(run: Run, name: str) -> str:
    """Tells two tables of one setting apart."""
    context = run.manifest.conditions[name]
    return ", ".join(
        f"{switch} {'on' if context.get(switch) else 'off'}" for switch in ("rules", "memory")
    )


def _value(run: Run, name: str, field: str) -> str:
    context = run.manifest.conditions[name]
    if field != "memory_file":
        return str(context.get(field, ""))
    if not context.get("memory"):
        return "0 (no memory)"
    number_ = round_of(name, str(context.get(field, "")))
    return str(number_) if number_ < 1000 else str(context.get(field) or "shipped memory")
