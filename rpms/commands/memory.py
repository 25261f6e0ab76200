"""``rpms memory``: counts, prints and checks the entries of a memory snapshot."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from rpms.commands.help_text import App
from rpms.commands.options import JsonOption, print_json
from rpms.vocabulary.output import print_safe, print_wrapped, quantity

memory_app = App()

FileArgument = Annotated[Path, typer.Argument(help="The memory snapshot (JSONL).")]


@memory_app.command()
def stats(file: FileArgument, as_json: JsonOption = False) -> None:
    """Count the entries by type and goal type."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_rows
    from rpms.evals.analysis.tables import Cell, Table, count, label
    from rpms.memory_store import read_snapshot
    from rpms.vocabulary.output import open_console

    header, entries = read_snapshot(file)
    goals = Counter(
        entry.goal_signature.split(":")[0] for entry in entries if hasattr(entry, "goal_signature")
    )
    helped = sum(getattr(entry, "manual", False) for entry in entries)
    if as_json:
        more = {"goal_types": dict(sorted(goals.items())), "helped_by_manual": helped}
        print_json({**header.model_dump(), **more})
        return
    console = open_console(highlight=False)
    summary = f"{file}: {quantity(header.entries, 'entry')}, learned in {header.env}"
    console.print(escape(summary))
    console.print(escape(f"sources: {', '.join(header.sources) or 'unknown'}"))
    console.print(f"learned with the help of the manual: {helped}")
    for kind, counts in (("type", header.counts), ("goal type", dict(sorted(goals.items())))):
        rows: list[list[Cell]] = [[label(name), count(n)] for name, n in counts.items()]
        if rows:
            console.print()
            print_rows(console, Table("", "", [kind, "entries"], rows))


@memory_app.command()
def show(
    file: FileArgument,
    kind: Annotated[str, typer.Option("--type", help="Print only entries of this type.")] = "",
    goal: Annotated[
        str, typer.Option(help="Print only entries whose goal signature contains this.")
    ] = "",
    limit: Annotated[int, typer.Option(min=0, help="Print this many entries; 0 means all.")] = 20,
) -> None:
    """Print the entries, one JSON object per line."""
    from rpms.memory_store import read_snapshot

    _, entries = read_snapshot(file)
    shown = 0
    for entry in entries:
        data = entry.model_dump(mode="json")
        if (kind and data["type"] != kind) or goal not in data.get("goal_signature", ""):
            continue
        print_safe(json.dumps(data, ensure_ascii=False))
        shown += 1
        if limit and shown >= limit:
            break


@memory_app.command()
def check(file: FileArgument) -> None:
    """Validate every line, and list the entries that their episode does not support.

    The first line that cannot be read is an error. The list has entries that contradict the outcome
    of their episode, repeat a step, or name a thing of another task; the exit status is then 1.
    """
    from rpms.envs import get_environment
    from rpms.memory_store import read_snapshot
    from rpms.memory_store.lessons import unearned

    header, entries = read_snapshot(file)
    lines = {entry.id: number for number, entry in enumerate(entries, start=2)}
    found = list(unearned(entries, get_environment(header.env)))
    for entry, problem in found:
        print_safe(f"{file}:{lines[entry.id]}: {entry.id}: {problem}")
    counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
    state = f"{quantity(len(found), 'problem')} in" if found else "ok,"
    print_wrapped(f"{file}: {state} {quantity(header.entries, 'entry')} ({counts})")
    if found:
        raise typer.Exit(1)
