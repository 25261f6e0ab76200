"""The report of a run: every table, as Markdown, JSON and one self-contained page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rpms.evals.protocol_card import protocol_card, protocol_of
from rpms.evals.report.behaviour import (
    cause_table,
    failure_table,
    fate_table,
    guard_table,
    prediction_table,
    refusal_table,
    step_table,
    token_table,
)
from rpms.evals.report.conflict import conflict_table
from rpms.evals.report.results import (
    main_table,
    pair_table,
    repeat_table,
    square_table,
    trial_table,
    type_table,
)
from rpms.evals.report.source import source_of
from rpms.evals.run_folder import Run, read_run
from rpms.evals.tables import Table

__all__ = ["Report", "build_report", "read_report", "report"]

TABLES: tuple[Callable[[Run], Table | Iterable[Table] | None], ...] = (
    main_table, square_table, type_table, pair_table, repeat_table, trial_table,
    failure_table, cause_table, step_table, fate_table, conflict_table, guard_table,
    refusal_table, prediction_table, token_table,
)  # fmt: skip
"""A question each, in reading order; None where a run has nothing to say to it."""


@dataclass(frozen=True)
class Report:
    """A run and its tables, in reading order."""

    run: Run
    tables: list[Table]

    def as_json(self) -> dict[str, Any]:
        """One object for programs: what was run, and every table by its id."""
        manifest = self.run.manifest
        about = ("env", "split", "model", "model_label", "created", "finished")
        return {
            "format": 1,
            "source": source_of(self.run),
            "protocol": protocol_card(manifest),
            "commit": manifest.commits,
            **{name: getattr(manifest, name) for name in about},
            "complete": self.run.complete,
            "planned": self.run.planned,
            "played": self.run.done,
            "tables": {table.id: table.as_json() for table in self.tables},
        }

    def as_markdown(self) -> str:
        """All tables under one heading."""
        parts = [f"# {heading(self.run)}\n", *(table.as_markdown() for table in self.tables)]
        return "\n".join(parts)


def heading(run: Run) -> str:
    """What the report is about, in one line."""
    return f"{run.manifest.env} {run.manifest.split}: {run.manifest.model_label}"


def build_report(run: Run) -> Report:
    """Every table the run has data for."""
    protocol, tables = protocol_of(run.manifest), list[Table]()
    for answer in (make(run) for make in TABLES):
        tables += [answer] if isinstance(answer, Table) else answer or ()
    return Report(run, [replace(table, protocol=protocol) for table in tables])


def read_report(folder: Path) -> Report:
    """The report of a run folder."""
    return build_report(read_run(folder))


def report(folder: str | Path) -> Report:
    """The report of a run folder: every table, ``as_json()`` and ``as_markdown()``."""
    return read_report(Path(folder))
