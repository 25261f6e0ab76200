"""The report of a run: its verdict and tables, as Markdown, JSON, LaTeX, CSV and one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpms.evals.analysis.experiment import replicate_of, run_names
from rpms.evals.analysis.joined_runs import read_joined
from rpms.evals.analysis.report.behaviour import (
    cause_table,
    error_table,
    failure_table,
    guard_table,
    mechanism_table,
    step_table,
    token_table,
)
from rpms.evals.analysis.report.conflict import conflict_table
from rpms.evals.analysis.report.results import (
    main_table,
    pair_table,
    repeat_table,
    run_table,
    square_tables,
    task_table,
    trial_table,
    type_table,
)
from rpms.evals.analysis.report.rounds import round_tables
from rpms.evals.analysis.report.rules import rule_table
from rpms.evals.analysis.report.run_means import experiment_tables
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.report.verdict import verdict
from rpms.evals.analysis.step_analysis import read_analyses
from rpms.evals.analysis.tables import Table, latex_comment, markdown_text, sources
from rpms.evals.records.conditions import find_label
from rpms.evals.records.protocol_card import protocol_card, protocol_of
from rpms.evals.records.run_folder import Run, as_folders
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

if TYPE_CHECKING:
    from rpms.evals.analysis.plotting import Plot

__all__ = ["Report", "build_report", "read_report", "report"]

TABLES: tuple[Callable[[Run], Table | Iterable[Table] | None], ...] = (
    main_table, run_table, square_tables, type_table, task_table, pair_table, round_tables,
    repeat_table, trial_table, failure_table, cause_table, rule_table, step_table, error_table,
    mechanism_table, conflict_table, guard_table, token_table,
)  # fmt: skip
"""In reading order; a function returns None if the run has no data for its table."""
EXPERIMENT_TABLES: tuple[Callable[[Run], Table | Iterable[Table] | None], ...] = (
    experiment_tables, round_tables, square_tables, task_table, trial_table, rule_table, step_table,
    error_table, mechanism_table, conflict_table, guard_table, token_table,
)  # fmt: skip
"""The tables of an experiment with several runs."""

BRIEF = (("main",), ("runs", "rounds", "square", "types"), ("causes", "failures"))
"""The brief report has the first available table of each group; the verdict covers the pairs."""
EXPERIMENT_BRIEF = (("main",), ("runs",), ("pairs",), ("types",))


@dataclass(frozen=True, repr=False)
class Report:
    """A run and its tables, in reading order; a notebook shows the verdict and main tables."""

    run: Run
    tables: list[Table]

    @cached_property
    def verdict(self) -> list[str]:
        """The main results in a few sentences."""
        return verdict(self.run)

    def __repr__(self) -> str:
        return f"<report of {heading(self.run)}: {', '.join(table.id for table in self.tables)}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.verdict)
        chosen = self.brief().tables or self.tables
        others = [table.id for table in self.tables if table not in chosen]
        more = f"<p>Other tables: {escape(', '.join(others))}</p>" if others else ""
        tables = "".join(table.as_html() for table in chosen)
        return f"<h3>{escape(heading(self.run))}</h3><ul>{lines}</ul>{tables}{more}"

    def as_json(self) -> dict[str, Any]:
        """One object for programs: the run's description, and every table by its id."""
        manifest = self.run.manifest
        fields = ("env", "split", "model", "model_label", "created", "finished")
        return {
            "format": 1,
            "source": source_of(self.run),
            "protocol": protocol_card(manifest),
            "commit": manifest.commits,
            **{name: getattr(manifest, name) for name in fields},
            "complete": self.run.complete,
            "runs": self._runs(),
            "verdict": self.verdict,
            "planned": self.run.planned,
            "played": self.run.done,
            "tables": {table.id: table.as_json() for table in self.tables},
        }

    def _runs(self) -> list[dict[str, Any]]:
        """The runs of an experiment; empty otherwise."""
        if not self.run.pooled:
            return []
        return [
            {"name": name, "folder": str(part.folder), **replicate_of(part)._asdict(),
             "commit": part.manifest.commits, "played": part.done}
            for name, part in zip(run_names(self.run), self.run.parts, strict=True)
        ]  # fmt: skip

    def as_markdown(self) -> str:
        """Source, protocol and verdict once, then the tables."""
        head = [f"# {heading(self.run)}", *sources(*self.origin)]
        head.append("\n".join(f"- {markdown_text(line)}" for line in self.verdict))
        parts = ["\n\n".join(head) + "\n", *(table.as_markdown(False) for table in self.tables)]
        return "\n".join(parts)

    def as_latex(self) -> str:
        """One booktabs table each; source, protocol and verdict are comments."""
        head = latex_comment(*self.origin, *self.verdict)
        return "\n".join([head, *(table.as_latex(False) for table in self.tables)])

    def as_csv(self) -> str:
        """A single table alone; several tables each below a line with the table's name."""
        if len(self.tables) == 1:
            return self.tables[0].as_csv()
        return "\n".join(f"# {table.id}: {table.title}\n{table.as_csv()}" for table in self.tables)

    @property
    def origin(self) -> tuple[str, str]:
        """Source and protocol of all tables."""
        return source_of(self.run), protocol_of(self.run.manifest)

    def only(self, names: Iterable[str]) -> Report:
        """The report with these tables only, given by id, in this order."""
        tables = {table.id: table for table in self.tables}
        for name in names:
            if name not in tables:
                raise RpmsError(f"this run has no table '{name}'; {offer(name, tables)}")
        return replace(self, tables=[tables[name] for name in dict.fromkeys(names)])

    def plot(self, kind: str = "success", out: str | PathLike[str] = "") -> Plot:
        """Draw a plot for a paper or a notebook, and write it to ``out`` (.svg, .pdf, .png).

        Args:
            kind: success, square, differences, types, steps, memories, rules, rounds or tokens.
            out: the file; without it the plot is only returned.
        """
        from rpms.evals.analysis.plotting import plot

        drawn = plot(self.run, kind)
        if out:
            drawn.save(out)
        return drawn

    def brief(self) -> Report:
        """The report with its three main tables: results, their breakdown, and causes of losses."""
        available = {table.id for table in self.tables}
        brief = EXPERIMENT_BRIEF if self.run.pooled else BRIEF
        choices = (next((name for name in names if name in available), "") for names in brief)
        return self.only(list(filter(None, choices)))


def heading(run: Run) -> str:
    return f"{run.manifest.env} {run.manifest.split}: {run.manifest.model_label}"


def build_report(run: Run, processes: int = 1) -> Report:
    read_analyses(run, processes)
    protocol, tables = protocol_of(run.manifest), list[Table]()
    for answer in (make(run) for make in (EXPERIMENT_TABLES if run.pooled else TABLES)):
        tables += [answer] if isinstance(answer, Table) else answer or ()
    return Report(run, [replace(table, protocol=protocol) for table in tables])


def report(
    folders: str | Path | Iterable[str | Path],
    separate: bool = False,
    *,
    against: str | Sequence[str] = (),
    processes: int = 1,
) -> Report:
    """The report of a run folder: every table, ``as_json()``, ``as_markdown()``, ``only()``.

    Several runs of the same arms by other models or seeds are one experiment: the figures are means
    over the runs. Other runs of the same tasks are joined as separate arms, and the labels name the
    settings in which the runs differ; ``separate`` joins every run so. Verdict and pairs compare
    all arms with those named in ``against``, if any, and correct for these pairs only. Several
    ``processes`` read the step logs of a large run.
    """
    run = read_joined(as_folders(folders), separate)
    names = [against] if isinstance(against, str) else against
    return build_report(replace(run, against=_arms(run, names)), processes)


def _arms(run: Run, names: Iterable[str]) -> tuple[str, ...]:
    """The labels of arms as they were typed."""
    arms = tuple(dict.fromkeys(find_label(name, run.conditions) for name in names))
    for arm in arms:
        if arm not in run.manifest.conditions:
            raise RpmsError(f"this run has no arm '{arm}'; {offer(arm, run.conditions)}")
    return arms


read_report = report  # for modules in which ``report`` is a variable
