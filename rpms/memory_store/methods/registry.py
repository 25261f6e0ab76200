"""Find memory methods by name or import path, and call them for a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Signature, iscoroutinefunction, isfunction, signature
from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.memory_store.methods.expel import ExpeL
from rpms.memory_store.methods.lang_mem import LangMem
from rpms.memory_store.methods.method import MemoryMethod
from rpms.memory_store.methods.note_method import Trajectories
from rpms.memory_store.methods.reflexion import Reflexion
from rpms.memory_store.methods.rpms import RpmsMemory
from rpms.memory_store.methods.workflows import Workflows
from rpms.memory_store.methods.writing import Writer
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object
from rpms.vocabulary.turn import EpisodeRecord, Message

METHODS: dict[str, type[MemoryMethod]] = {
    method.name: method
    for method in (
        RpmsMemory,
        Trajectories,
        Reflexion,
        ExpeL,
        Workflows,
        LangMem,
    )
}
ATTRIBUTES = {
    "name": str, "cumulative": bool, "learns": bool, "needs_file": bool, "needs_model": bool
}  # fmt: skip


@cache
def find_method(name: str) -> MemoryMethod:
    """Return the method of that name; one object per process, without state of episodes."""
    if name in METHODS:
        return METHODS[name]()
    if not is_path(name):
        raise RpmsError(
            f"unknown memory method '{name}'; choose from {', '.join(METHODS)}, or give the import "
            "path of a class, package.module:Class"
        )
    return checked_method(name, load_object(name, "memory method"))


def checked_method(path: str, kind: Any) -> MemoryMethod:
    """Make a method of a user's class; its first fault is an error of one line."""
    where = f"memory method '{path}'"
    if not (isinstance(kind, type) and issubclass(kind, MemoryMethod)):
        raise RpmsError(f"{where} is no subclass of rpms.memory_store.methods.MemoryMethod")
    where += f": {kind.__name__}"
    for name, type_ in ATTRIBUTES.items():
        value = getattr(kind, name, None)
        if not isinstance(value, type_) or value == "":
            example = "a name, such as 'mine'" if type_ is str else "True or False"
            raise RpmsError(f"{where}.{name} is {value!r}; it must be {example}")
    missing = {*kind.__abstractmethods__}
    if kind.learns and kind.learn is MemoryMethod.learn:
        missing.add("learn")
    for name in sorted(missing):
        raise RpmsError(f"{where} has no '{name}'; {_form(name)}")
    if fault := _misfit(signature(kind)):
        raise RpmsError(f"{where}() is made without arguments: {fault}")
    for name in filter(lambda name: isfunction(getattr(MemoryMethod, name)), vars(MemoryMethod)):
        if fault := _fault(name, getattr(kind(), name)):
            raise RpmsError(f"{where}.{name}: {fault}; {_form(name)}")
    return kind()


def _fault(name: str, method: Any) -> str:
    if not callable(method):
        return "it is no method"
    base = getattr(MemoryMethod, name)
    if iscoroutinefunction(base) != iscoroutinefunction(method):
        return "it is not async" if iscoroutinefunction(base) else "it must not be async"
    also = {"manual"} & {*signature(method).parameters} if name == "learn" else ()
    arguments = list(signature(base).parameters)[1:]
    return _misfit(signature(method), *arguments, **dict.fromkeys(also, ""))


def _misfit(form: Signature, *arguments: str, **keywords: str) -> str:
    try:
        form.bind(*arguments, **keywords)
    except TypeError as error:
        return str(error)
    return ""


def _form(name: str) -> str:
    base = getattr(MemoryMethod, name)
    word = "async def" if iscoroutinefunction(base) else "def"
    return f"write '{word} {name}({', '.join(signature(base).parameters)})'"


def takes_manual(function: Callable[..., Any]) -> bool:
    return "manual" in signature(function).parameters


def check_memory(env: str, context: RunContext) -> None:
    """Check the method and its file before the first step."""
    if context.memory:
        find_method(context.memory_method).check(env, context)


def file_of(env: str, context: RunContext) -> Path | None:
    """Return the memory file that a run reads, if it reads one."""
    if context.memory_file:
        return Path(context.memory_file)
    return get_environment(env).memory if context.memory_method == RpmsMemory.name else None


def check_trials(env: str, context: RunContext) -> None:
    """Raise an error if the method's texts between trials have no model that can write them."""
    method = find_method(context.memory_method)
    if context.memory and method.cumulative and method.needs_model:
        Writer(env, context, method.name)


async def after_trial(
    env: str,
    context: RunContext,
    cross_trial_memory: Mapping[str, Any],
    record: EpisodeRecord,
) -> dict[str, Any]:
    """Return the ``cross_trial_memory`` of the next trial as JSON data; empty for a frozen method.

    The model that writes is opened here, and its errors are raised. The key ``spent`` holds its
    calls and tokens over all trials of the task so far.
    """
    method = find_method(context.memory_method)
    if not context.memory or not method.cumulative:
        return {}
    rules = {}
    if takes_manual(method.carry):
        rules["manual"] = load_manual(
            env, context.rules_dir, context.without_rules, syntax_only=not context.rules
        )
    if not method.needs_model:
        memory = await method.carry(cross_trial_memory, record, _no_model, **rules)
        return {**memory, "method": method.name}
    writer = Writer(env, context, method.name)
    memory = await method.carry(cross_trial_memory, record, writer, **rules)
    before = cross_trial_memory.get("spent", {})
    spent = {name: before.get(name, 0) + count for name, count in writer.spent.items()}
    return {**memory, "method": method.name, "spent": spent}


async def _no_model(messages: list[Message]) -> str:
    raise RpmsError("a memory method asked for a text without 'needs_model = True' in its class")
