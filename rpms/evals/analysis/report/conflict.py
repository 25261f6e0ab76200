"""The table of planted conflicts: how arbitration handles wrong advice added to the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import task_mean
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.step_analysis import LEARNED
from rpms.evals.analysis.tables import Cell, Table, count, label, part_of, percent
from rpms.vocabulary.context import condition_title

if TYPE_CHECKING:
    from pandas import DataFrame


def conflict_table(data: Results) -> Table:
    """Planted and learned advice that reached arbitration."""
    rows = [row for (name,), side in data.by("condition") for row in _rows(side, name)]
    notes = [
        "Candidates are the snippets and lessons that reached arbitration, counted at each step. "
        "Planted: rule is advice that a rule forbids by construction; corrupted is advice changed "
        "as by the memory control of that name; goal is advice for a sub-goal that this type of "
        "goal does not have. Corrupted and goal advice need not contradict a rule at every step. "
        "Learned is the unchanged memory: a removal loses sound advice, unless the advice could "
        "not be followed at that step.",
        "Shown: in the prompt, with or without a warning. Entries: distinct entries per episode. "
        "Always caught: entries that were removed or shown with a warning every time.",
    ]
    columns = ["condition", "advice", "success rate", "candidates", "removed", "warned",
               "shown", "entries", "always caught"]  # fmt: skip
    return Table(
        "conflict", "Planted conflicts", source_of(data.run), columns, rows, labels=2, notes=notes
    )


def _rows(side: DataFrame, name: str) -> Iterator[list[Cell]]:
    """A row for each kind of advice; a condition without memory has one row with its success."""
    success, outcomes = percent(task_mean(side, "success").value), dict[str, Counter[str]]()
    for advice in side.advice:
        for kind, outcome in advice.items():
            outcomes.setdefault(kind, Counter()).update(outcome)
    from rpms.memory_store.contradictions import CONTRADICTIONS

    titles = {**{kind: f"planted: {kind}" for kind in CONTRADICTIONS}, LEARNED: LEARNED}
    for kind in [kind for kind in titles if kind in outcomes] or [""]:
        outcome = outcomes.get(kind, Counter())
        candidates, entries = outcome["candidates"], outcome["entries"]
        yield [
            *(label(condition_title(name)), label(titles.get(kind, "")), success),
            count(candidates),
            *(part_of(outcome[result], candidates) for result in ("removed", "warned", "shown")),
            *(count(entries), part_of(outcome["caught"], entries)),
        ]
