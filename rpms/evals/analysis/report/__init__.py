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
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.joined_runs import read_joined
from rpms.evals.analysis.report.behaviour import (
    cause_table,
    conflict_table,
    error_table,
    failure_table,
    guard_table,
    guarded_arms,
    mechanism_table,
    step_table,
    token_table,
)
from rpms.evals.analysis.report.results import (
    main_table,
    pair_table,
    repeat_table,
    run_table,
    square_of,
    square_table,
    task_kinds,
    task_table,
    trial_table,
    type_table,
)
from rpms.evals.analysis.report.rounds import curves, round_table
from rpms.evals.analysis.report.rules import rule_table
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.report.verdict import verdict
from rpms.evals.analysis.tables import Table, latex_comment, markdown_text, sources
from rpms.evals.records.conditions import find_label
from rpms.evals.records.protocol_card import protocol_card, protocol_of
from rpms.evals.records.run_folder import Run, as_folders
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

if TYPE_CHECKING:
    from rpms.evals.analysis.plotting import Plot

__all__ = ["Report", "read_report", "report"]


def _always(data: Results) -> bool:
    return True


TABLES: dict[str, tuple[Callable[[Results], Table], Callable[[Results], bool]]] = {
    "main": (main_table, _always),
    "runs": (run_table, lambda data: bool(data.run.parts)),
    "square": (square_table, lambda data: bool(square_of(data.run))),
    "types": (type_table, _always),
    "tasks": (task_table, lambda data: bool(task_kinds(data))),
    "pairs": (pair_table, lambda data: len(data.arms) > 1),
    "rounds": (round_table, lambda data: bool(curves(data.run))),
    "repeats": (repeat_table, lambda data: data.run.repeats > 1 and not data.run.pooled),
    "trials": (trial_table, lambda data: data.run.trials > 1),
    "failures": (failure_table, _always),
    "causes": (cause_table, lambda data: not data.played.success.all()),
    "rules": (rule_table, lambda data: any(data.judged.broken)),
    "steps": (step_table, _always),
    "errors": (error_table, _always),
    "mechanisms": (mechanism_table, lambda data: bool(data.judged.recalled.sum())),
    "conflict": (conflict_table, lambda data: any(
        data.run.settings(arm).get("memory_control") == "conflict" for arm in data.arms)),
    "guard": (guard_table, lambda data: bool(guarded_arms(data))),
    "tokens": (token_table, _always),
}  # fmt: skip
"""In reading order, each with the condition under which a run has it."""

BRIEF = (("main",), ("runs", "rounds", "square", "types"), ("causes", "failures"))
"""The brief report has the first available table of each group; the verdict covers the pairs."""
EXPERIMENT_BRIEF = (("main",), ("runs",), ("pairs",), ("types",))


@dataclass(frozen=True, repr=False)
class Report:
    """A run and its tables, in reading order; a notebook shows the verdict and main tables.

    Step logs are read and a table is made when it is first asked for.
    """

    data: Results
    chosen: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tables that were chosen, or else all that the run has."""
        return self.chosen or tuple(name for name, (_, has) in TABLES.items() if has(self.data))

    @property
    def run(self) -> Run:
        return self.data.run

    @cached_property
    def tables(self) -> list[Table]:
        source, protocol = self.origin
        model = self.run.manifest.model_label
        made = (TABLES[name][0](self.data) for name in self.names)
        return [replace(t, source=source, protocol=protocol, model=model) for t in made]

    @cached_property
    def verdict(self) -> list[str]:
        """The main results in a few sentences."""
        return verdict(self.data)

    def __repr__(self) -> str:
        return f"<report of {heading(self.run)}: {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.verdict)
        chosen = self.brief()
        others = [name for name in self.names if name not in chosen.names]
        more = f"<p>Other tables: {escape(', '.join(others))}</p>" if others else ""
        tables = "".join(table.as_html() for table in chosen.tables)
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
        chosen = tuple(dict.fromkeys(names))
        for name in chosen:
            if name not in self.names:
                raise RpmsError(f"this run has no table '{name}'; {offer(name, self.names)}")
        return replace(self, chosen=chosen)

    def plot(self, kind: str = "success", out: str | PathLike[str] = "") -> Plot:
        """Draw a plot for a paper or a notebook, and write it to ``out`` (.svg, .pdf, .png).

        Args:
            kind: success, square, differences, types, steps, memories, rules or rounds.
            out: the file; without it the plot is only returned.
        """
        from rpms.evals.analysis.plotting import plot

        drawn = plot(self.data, kind)
        if out:
            drawn.save(out)
        return drawn

    def brief(self) -> Report:
        """The report with its three main tables: results, their breakdown, and causes of losses."""
        brief = EXPERIMENT_BRIEF if self.run.pooled else BRIEF
        choices = (next((name for name in names if name in self.names), "") for names in brief)
        return self.only(filter(None, choices))


def heading(run: Run) -> str:
    return f"{run.manifest.env} {run.manifest.split}: {run.manifest.model_label}"


def report(
    folders: str | Path | Iterable[str | Path],
    separate: bool = False,
    *,
    against: str | Sequence[str] = (),
) -> Report:
    """The report of a run folder: every table, ``as_json()``, ``as_markdown()``, ``only()``.

    Several runs of the same arms by other models, with other seeds or over other tasks are one
    experiment: each task counts once, with the mean over its runs. Other runs of the same tasks are
    joined as separate arms, and the labels name the settings in which the runs differ; ``separate``
    joins every run so. Verdict and pairs compare all arms with those named in ``against``, if any,
    and correct for these pairs only.
    """
    run = read_joined(as_folders(folders), separate)
    names = [against] if isinstance(against, str) else against
    return Report(Results(replace(run, against=_arms(run, names))))


def _arms(run: Run, names: Iterable[str]) -> tuple[str, ...]:
    """The labels of arms as they were typed."""
    arms = tuple(dict.fromkeys(find_label(name, run.conditions) for name in names))
    for arm in arms:
        if arm not in run.manifest.conditions:
            raise RpmsError(f"this run has no arm '{arm}'; {offer(arm, run.conditions)}")
    return arms


read_report = report  # for modules in which ``report`` is a variable
