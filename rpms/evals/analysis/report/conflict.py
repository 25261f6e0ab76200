"""The table of what arbitration made of wrong advice that was planted beside the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rpms.evals.analysis.measures import rate
from rpms.evals.analysis.report.source import names, source_of
from rpms.evals.analysis.step_analysis import LEARNED, analyses
from rpms.evals.analysis.tables import Cell, Table, count, label, part_of, percent
from rpms.evals.records.run_folder import Run
from rpms.memory_store.plants import PLANTS

ADVICE = {**{kind: f"planted: {kind}" for kind in PLANTS}, LEARNED: LEARNED}


def conflict_table(run: Run) -> Table | None:
    """Planted and learned advice before the arbiter; None where nothing was planted."""
    controls = [run.settings(name).get("memory_control") for name in run.conditions]
    if "conflict" not in controls:
        return None
    rows = [row for name in run.conditions for row in _rows(run, name)]
    notes = [
        "Advice that came before the arbiter (snippets and lessons), counted once for each step. "
        "Planted: rule, what a rule forbids by its making; corrupted, spoiled as by the control of "
        "that name; goal, of a sub-goal that this type of goal does not have. Not everything that "
        "is corrupted or foreign contradicts a rule at every moment. Learned: the memory as it is, "
        "where a removal is sound advice lost, unless it could not be followed just then.",
        "In the prompt: neither removed nor without room, warned of or not. Entries: the same by "
        "entry and episode; caught every time, those that never passed without a word.",
    ]
    columns = ["condition", "advice", "success", "before the arbiter", "removed", "warned",
               "in the prompt", "entries", "caught every time"]  # fmt: skip
    return Table(
        "conflict", "Planted conflicts and what arbitration made of them", source_of(run),
        columns, rows, labels=2, notes=notes,
    )  # fmt: skip


def _rows(run: Run, name: str) -> Iterator[list[Cell]]:
    """A row for each kind of advice that a condition met; one without memory has its success."""
    judged = run.judged(name)
    success, outcomes = percent(rate(judged).share), dict[str, Counter[str]]()
    for analysis in analyses(run, judged).values():
        for kind, outcome in analysis.advice.items():
            outcomes.setdefault(kind, Counter()).update(outcome)
    for kind in [kind for kind in ADVICE if kind in outcomes] or [""]:
        outcome = outcomes.get(kind, Counter())
        candidates, entries = outcome["candidates"], outcome["entries"]
        yield [
            *(label(names(name)), label(ADVICE.get(kind, "")), success, count(candidates)),
            *(part_of(outcome[what], candidates) for what in ("removed", "warned", "shown")),
            *(count(entries), part_of(outcome["caught"], entries)),
        ]
