"""``rpms tasks``: a split, and what the goal parser reads from each sentence."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table

from rpms.envs import Environment


def task_rows(env: Environment, split: str, count: int | None) -> list[dict[str, Any]]:
    """One object per task; everything but the id comes from the task sentence alone."""
    rows = []
    for task in env.tasks(split, count):
        goal = env.parse_goal(task["goal"])
        rows.append(
            {
                "index": task["index"],
                "id": task["id"],
                "goal": task["goal"],
                "type": goal["type"],
                "object": goal["object"],
                "state": goal["state"],
                "count": goal["count"],
                "destination": goal["destination"],
            }
        )
    return rows


def task_table(rows: list[dict[str, Any]]) -> None:
    """The same for people, with a count per type below."""
    table = Table("#")
    table.add_column("id", overflow="fold")  # whole, so that it can be copied
    table.add_column("type")
    table.add_column("goal")
    for row in rows:
        table.add_row(str(row["index"]), row["id"], row["type"], row["goal"])
    console = Console()
    console.print(table)
    counts = Counter(row["type"] for row in rows)
    console.print(f"{len(rows)} tasks: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
