"""The table of what arbitration made of wrong advice that was planted beside the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rpms.evals.measures import rate
from rpms.evals.records import Episode
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run, read_log
from rpms.evals.tables import Cell, Table, count, label, part_of, percent
from rpms.memory_store.contradictions import CONTRADICTIONS, contradiction_kind
from rpms.vocabulary.files import stamp_of

JUDGED = ("success", "failure", "critical_failure")
"""What the arbiter holds against the rules; schemas and finds advise nothing."""
UNJUDGED = ("not groundable", "scf")
"""Outcomes that an entry meets before the arbiter sees it; every other one comes after."""
LEARNED = "learned"
ADVICE = {**{kind: f"planted: {kind}" for kind in CONTRADICTIONS}, LEARNED: LEARNED}
CACHED_LOGS = 20_000
"""In memory: a run that is watched is read again and again."""


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
    success, outcomes = percent(rate(judged).share), _outcomes(run, judged)
    for kind in [kind for kind in ADVICE if kind in outcomes] or [""]:
        outcome = outcomes.get(kind, Counter())
        candidates, entries = outcome["candidates"], outcome["entries"]
        yield [
            *(label(names(name)), label(ADVICE.get(kind, "")), success, count(candidates)),
            *(part_of(outcome[what], candidates) for what in ("removed", "warned", "shown")),
            *(count(entries), part_of(outcome["caught"], entries)),
        ]


def _outcomes(run: Run, episodes: Iterable[Episode]) -> dict[str, Counter[str]]:
    total: dict[str, Counter[str]] = {}
    for episode in episodes:
        file = run.log_file(episode)
        for kind, outcome in _outcomes_in(file, stamp_of(file)).items():
            total.setdefault(kind, Counter()).update(outcome)
    return total


@lru_cache(maxsize=CACHED_LOGS)
def _outcomes_in(file: Path, _stamp: tuple[int, int]) -> Mapping[str, Counter[str]]:
    """What became of each kind of advice in one episode."""
    outcomes: dict[str, Counter[str]] = {}
    slips: dict[str, bool] = {}
    for recall in _judged((read_log(file) or {}).get("steps", [])):
        entry = str(recall["entry"].get("id"))
        removed, warned = recall["dropped_by"] == "arbitration", bool(recall["warning"])
        outcome = outcomes.setdefault(contradiction_kind(entry) or LEARNED, Counter())
        outcome.update(candidates=1, removed=removed, warned=warned, shown=not recall["dropped_by"])
        slips[entry] = slips.get(entry, False) or not (removed or warned)
    for entry, slipped in slips.items():
        outcomes[contradiction_kind(entry) or LEARNED].update(entries=1, caught=not slipped)
    return outcomes


def _judged(steps: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for step in steps:
        for recall in step.get("recalls", []):
            if recall["entry"].get("type") in JUDGED and recall["dropped_by"] not in UNJUDGED:
                yield recall
