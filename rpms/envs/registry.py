"""Worlds by name; each is imported only when it is used.

A name is a built-in world, an entry point of the group ``rpms.worlds`` in any installed package, a
package in the current folder, as ``rpms worlds new`` writes it, or ``module:attribute``. Worker
processes and run files get only the name; each process loads the world by it.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from rpms.envs import scienceworld, tau2
from rpms.envs.base import Environment, Task, ToolWorld
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file
from rpms.vocabulary.imports import allow_current_folder, is_path, paths_allowed
from rpms.vocabulary.spelling import offer

GROUP = "rpms.worlds"
BUILT_IN = {
    "alfworld": "rpms.envs.alfworld.adapter:ENVIRONMENT",
    "scienceworld": "rpms.envs.scienceworld.adapter:ENVIRONMENT",
    "telecom": "rpms.envs.telecom.adapter:ENVIRONMENT",
}
DESKS = {
    "airline": "rpms.envs.tau2.airline:DESK",
    "retail": "rpms.envs.tau2.retail:DESK",
}
"""Worlds without tasks of their own: other people's agents act in them, behind the guard."""
FIRST_WORLD = next(iter(BUILT_IN))


def missing_worlds() -> dict[str, str]:
    """Built-in worlds whose simulator is not installed, each with how to install it."""
    has_scienceworld = find_spec(scienceworld.PACKAGE) is not None
    missing = {} if has_scienceworld else {"scienceworld": scienceworld.MISSING}
    if not find_spec(tau2.PACKAGE):
        missing |= dict.fromkeys(("telecom", *DESKS), tau2.MISSING)
    return missing


def desk_names() -> list[str]:
    """The built-in worlds that only the guard, the audit and the rule check use."""
    missing = missing_worlds()
    return [name for name in DESKS if name not in missing]


def environment_names() -> list[str]:
    """The names of all worlds, built-in ones first; the first of them is the default."""
    others = {point.name for point in entry_points(group=GROUP)} - {*BUILT_IN, *DESKS}
    missing = missing_worlds()
    return [*(name for name in BUILT_IN if name not in missing), *sorted(others)]


@cache
def get_environment(name: str, playable: bool = True) -> Environment:
    """Load the world called ``name``; the error for an unknown name lists the known ones.

    With ``playable=False`` its simulator need not be installed: its rules and its parsing of
    answers work without.
    """
    point = _find(name, playable)
    try:
        world = point.load()
    except Exception as error:  # a custom module may raise anything when imported
        reason = f"{type(error).__name__}: {error}"
        raise RpmsError(f"cannot load the world '{name}' from '{point.value}': {reason}") from error
    if not isinstance(world, Environment):
        raise RpmsError(
            f"'{point.value}' is no world: it must be an object of a class that extends "
            "rpms.envs.Environment"
        )
    if world.name != name:
        world = copy(world)  # the same object may also be registered under another name
        world.name = name
    return world


# Growing a generated split to a mistyped index of ten digits would fill the disk.
DIGITS = 4


def world_with_tasks(name: str) -> Environment:
    """Load a world for episodes; a world of tools has none unless it lists tasks."""
    world = get_environment(name)
    if isinstance(world, ToolWorld) and not world.tasks(world.splits()[0], 1):
        raise RpmsError(
            f"'{name}' has no tasks to play: other agents act in it, behind rpms.guard; the "
            f"environments with tasks are {', '.join(environment_names())}"
        )
    return world


def find_task(env: str, split: str, task: str) -> Task:
    """Find a task by its id, by the end of its id (the trial), or by its index in the split."""
    name, world = task.strip(), world_with_tasks(env)
    if name.isdecimal():
        # Generated splits grow on request, so no more tasks are listed than the index needs.
        index = int(name) if len(name) <= DIGITS else None
        tasks = world.tasks(split, None if index is None else index + 1)
        if index is not None and index < len(tasks):
            return tasks[index]
        raise RpmsError(f"split '{split}' has {len(tasks)} tasks; there is no task {name[:20]}")
    tasks = world.tasks_with(split, [name])
    matching = [t for t in tasks if t["id"] == name] or [
        t for t in tasks if t["id"].endswith(f"/{name}")
    ]
    if not matching:
        raise RpmsError(
            f"no task '{name}' in split '{split}' of {env}; list them with: "
            f"rpms tasks --env {env} --split {split}"
        )
    if len(matching) > 1:
        raise RpmsError(f"'{name}' names {len(matching)} tasks of '{split}'; give the whole id")
    return matching[0]


def _find(name: str, playable: bool) -> EntryPoint:
    if playable and (advice := missing_worlds().get(name)):
        raise RpmsError(advice)
    if path := {**BUILT_IN, **DESKS}.get(name):
        return EntryPoint(name, path, GROUP)
    if paths_allowed() and is_path(name):
        allow_current_folder()
        return EntryPoint(name, name, GROUP)
    for point in entry_points(group=GROUP, name=name):
        return point
    if paths_allowed() and name.isidentifier() and is_file(f"{name}/world.py"):
        allow_current_folder()
        return EntryPoint(name, f"{name}.world:WORLD", GROUP)
    custom = " (a world of your own: the name of a folder in the current one, or MODULE:ATTRIBUTE)"
    advice = custom if paths_allowed() else ""
    desks = [f"{desk} (guard only)" for desk in desk_names()]
    offered = offer(name, [*environment_names(), *desks])
    raise RpmsError(f"unknown environment '{name}'; {offered}{advice}")
