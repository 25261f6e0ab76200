"""``rpms memory``: experience as plain files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

memory_app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

FileArgument = Annotated[Path, typer.Argument(help="Memory snapshot (JSONL).")]


@memory_app.command()
def stats(
    file: FileArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count entries by type and goal type."""
    from rich.console import Console
    from rich.table import Table

    from rpms.memory_store import read_snapshot

    header, entries = read_snapshot(file)
    goals = Counter(
        entry.goal_signature.split(":")[0] for entry in entries if hasattr(entry, "goal_signature")
    )
    if as_json:
        print(json.dumps({**header.model_dump(), "goal_types": dict(sorted(goals.items()))}))
        return
    console = Console(highlight=False)
    console.print(f"{file}: {header.entries} entries, learned in {header.env}")
    console.print(f"sources: {', '.join(header.sources) or 'unknown'}")
    table = Table("entries", "count")
    for name, count in [*header.counts.items(), *sorted(goals.items())]:
        table.add_row(name, str(count))
    console.print(table)


@memory_app.command()
def show(
    file: FileArgument,
    kind: Annotated[str, typer.Option("--type", help="Only this entry type.")] = "",
    goal: Annotated[str, typer.Option(help="Only goals whose signature contains this.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="How many; 0 for all.")] = 20,
) -> None:
    """Print entries, one JSON object per line."""
    from rpms.memory_store import read_snapshot

    _, entries = read_snapshot(file)
    shown = 0
    for entry in entries:
        data = entry.model_dump(mode="json")
        if (kind and data["type"] != kind) or goal not in data.get("goal_signature", ""):
            continue
        print(json.dumps(data, ensure_ascii=False))
        shown += 1
        if limit and shown >= limit:
            break


@memory_app.command()
def check(file: FileArgument) -> None:
    """Validate every line; the first mistake is reported with its line number."""
    from rpms.memory_store import read_snapshot

    header, _ = read_snapshot(file)
    counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
    print(f"{file}: ok, {header.entries} entries ({counts})")
