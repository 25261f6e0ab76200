"""tau2's domains as data and tools: tasks, policy, database, and the calls of a conversation."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import parse_json


@cache
def domain(name: str) -> Any:
    """A domain of tau2, imported on first use because the import writes logs."""
    from loguru import logger

    logger.disable("tau2")
    return import_module(f"tau2.domains.{name}.environment")


class CopiedTable(dict[str, Any]):
    """A table whose entries are copied when a tool asks for them, so that the original stays."""

    def __init__(self, original: Mapping[str, Any]) -> None:
        super().__init__(original)
        self.original = original

    def __getitem__(self, key: str) -> Any:
        entry: Any = super().__getitem__(key)
        if key in self.original and entry is self.original[key]:
            self[key] = entry = entry.model_copy(deep=True)
        return entry

    def get(self, key: str, default: Any = None) -> Any:
        """As of any table."""
        try:
            return self[key]
        except KeyError:
            return default


@cache
def _database(name: str) -> Any:
    return domain(name).get_environment().tools.db


def open_environment(name: str) -> Any:
    """A desk's environment with a database of its own; the file is read once."""
    database = _database(name)
    tables = {key: CopiedTable(table) for key, table in database if isinstance(table, dict)}
    return domain(name).get_environment(database.model_copy(update=tables))


@cache
def all_tasks(name: str) -> dict[str, Any]:
    module = domain(name)
    tasks = module.get_tasks_full() if name == "telecom" else module.get_tasks(None)
    return {task.id: task for task in tasks}


def read_tasks(file: Path) -> dict[str, Any]:
    """The tasks in a file of tau2's form (JSON, perhaps packed by xz) by their ids."""
    data = file.read_bytes()
    text = lzma.decompress(data) if file.suffix == ".xz" else data
    model = import_module("tau2.data_model.tasks").Task
    tasks = [model.model_validate(each) for each in parse_json(text, str(file))]
    return {task.id: task for task in tasks}


def get_task(name: str, tasks: Mapping[str, Any], task: str) -> Any:
    """One task; the error for an unknown one says which there are."""
    if task not in tasks:
        ids = [*tasks]
        raise RpmsError(f"{name} has no task '{task}'; its tasks are {ids[0]} to {ids[-1]}")
    return tasks[task]


def policy_file(name: str) -> Path:
    domain(name)  # silences the logs
    utils = import_module(f"tau2.domains.{name}.utils")
    return Path(vars(utils)[f"{name.upper()}_POLICY_PATH"])


def gold_calls(task: Any) -> list[Call]:
    """The calls of tau2's reference solution, in order; those of a simulated user are left out."""
    actions = task.evaluation_criteria.actions or []
    return [Call(a.name, dict(a.arguments)) for a in actions if a.requestor == "assistant"]


def set_up(env: Any, task: Any) -> None:
    if (initial := task.initial_state) is not None:
        env.set_state(initial.initialization_data, initial.initialization_actions, [])


def answer_of(env: Any, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Call a tool: its answer, and whether it is an error."""
    from tau2.data_model.message import ToolCall

    answer = env.get_response(ToolCall(id="", name=tool, arguments=arguments))
    return answer.content, answer.error


def tools_of(env: Any) -> list[Any]:
    """tau2's own objects for the tools of an environment, of both sides if the user has some."""
    return [*env.get_tools(), *(env.get_user_tools() if env.user_tools else ())]


def as_tools(env: Any, call: Callable[[str, dict[str, Any]], str]) -> list[BaseTool]:
    return [
        StructuredTool.from_function(
            lambda tool=tool.name, **arguments: call(tool, arguments),
            name=tool.name, description=tool.short_desc or tool.name,
            args_schema=tool.params.model_json_schema(),
        )
        for tool in tools_of(env)
    ]  # fmt: skip
