"""``rpms worlds`` and ``rpms tasks``: what can be played, and how each goal is understood."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from rich.markup import escape
from rich.padding import Padding

from rpms.console import Console
from rpms.envs import Environment, environment_names, get_environment
from rpms.showing import say
from rpms.terminal_tables import print_stacked


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


def print_worlds(rows: list[dict[str, Any]]) -> None:
    """The same for people."""
    for row in rows:
        told = {
            "splits": ", ".join(row["splits"]),
            "goal types": ", ".join(row["goal_types"]),
            "steps": str(row["max_steps"]),
        }
        print_stacked(Console(highlight=False), row["name"], told)


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


def print_tasks(rows: list[dict[str, Any]]) -> None:
    """A task's whole id on a line of its own, or one line per task where a program reads.

    Such a line begins with the id and has a tab between its parts: ``cut`` and ``grep`` find what
    they need, and ``--tasks @FILE`` takes the lines as they are. The count is on standard error.
    """
    console = Console(highlight=False)
    for row in rows:
        if console.is_terminal:
            console.print(f"[bold]{escape(row['id'])}[/]", soft_wrap=True)
            told = f"[dim]{row['index']}, {row['type']}:[/] {escape(row['goal'])}"
            console.print(Padding(told, (0, 0, 0, 2), expand=False))
        else:
            say(row["id"], row["index"], row["type"], " ".join(row["goal"].split()), sep="\t")
    counts = sorted(Counter(row["type"] for row in rows).items())
    told = f"{len(rows)} tasks: " + ", ".join(f"{n} {k}" for k, n in counts)
    Console(file=sys.stderr, highlight=False).print(told)
