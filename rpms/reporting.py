"""``rpms report`` and ``rpms compare``: run folders as tables in the terminal and as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from rpms.console import Console
from rpms.evals.comparison import Comparison, compare_runs, read_mapping
from rpms.evals.conditions import find_label
from rpms.evals.report import Report, read_report
from rpms.evals.report.page import write_report
from rpms.evals.run_folder import read_run
from rpms.terminal_tables import print_tables


def report(folder: str | Path) -> Report:
    """The report of a run folder: every table, ``as_json()`` and ``as_markdown()``."""
    return read_report(Path(folder))


def compare(
    folders: Sequence[str | Path],
    map: Mapping[str, str] | Sequence[str] = (),
    allow_differences: bool = False,
) -> Comparison:
    """Two or more runs side by side: ``tables``, ``differences``, ``as_json()``, ``as_markdown()``.

    Args:
        folders: run folders; the others are paired with the first.
        map: labels to be read as others, as a dictionary or as ``OLD=NEW``.
        allow_differences: go on where the protocols differ.
    """
    runs = [read_run(Path(folder)) for folder in folders]
    if isinstance(map, Mapping):
        known = {label for run in runs for label in run.conditions}
        mapping = {find_label(old, known): find_label(new, known) for old, new in map.items()}
    else:
        mapping = read_mapping(map, runs)
    return compare_runs(runs, mapping, allow_differences)


def report_run(folder: Path, html: Path | None, as_json: bool) -> dict[str, Any]:
    """Write the report's files, and print its tables unless JSON is wanted instead."""
    made = report(folder)
    files = write_report(made, html)
    if not as_json:
        console = Console(highlight=False)
        print_tables(console, made.tables)
        _print_end(console, made, files)
    return made.as_json()


def print_comparison(comparison: Comparison) -> None:
    """What was compared and what was set differently, then the tables."""
    console = Console(highlight=False)
    width = max(map(len, comparison.names)) + 1
    for name, source in zip(comparison.names, comparison.sources, strict=True):
        console.print(f"[bold]{escape(f'{name}:'.ljust(width))}[/] {escape(source)}")
    console.print("\n[bold]What was set differently[/]")
    for line in comparison.differences or ["nothing that the manifests record"]:
        console.print(f"  {escape(line)}")
    console.print()
    print_tables(console, comparison.tables, with_source=False)


def _print_end(console: Console, report: Report, files: Iterable[Path]) -> None:
    if not report.run.complete:
        played = f"{report.run.done} of {report.run.planned}"
        console.print(f"[yellow]This run is not finished: {played} episodes are there.[/]")
    for file in files:
        console.print(f"written: {escape(str(file))}", soft_wrap=True)
