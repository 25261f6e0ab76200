"""``rpms worlds`` and ``rpms tasks``: what can be played, and how each goal is understood."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.table import Table

from rpms.console import Console
from rpms.envs import Environment, environment_names, get_environment


def world_rows() -> list[dict[str, Any]]:
    """One object per world that can be named."""
    found = [get_environment(name) for name in environment_names()]
    return [
        {
            "name": world.name,
            "splits": world.splits(),
            "learning_split": world.learning_split,
            "goal_types": world.goal_types(),
            "max_steps": world.max_steps,
        }
        for world in found
    ]


def world_table(rows: list[dict[str, Any]]) -> None:
    """The same for people."""
    table = Table("world", "splits", "goal types", "steps")
    for row in rows:
        names = (", ".join(row[key]) for key in ("splits", "goal_types"))
        table.add_row(row["name"], *names, str(row["max_steps"]))
    Console(highlight=False).print(table)


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
