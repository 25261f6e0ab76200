"""Worlds by name, imported only when asked for so that one never slows the start of another.

A name is one of ours, an entry point of the group ``rpms.worlds`` in any installed package, a
package in the current folder, as ``rpms worlds new`` writes it, or ``module:attribute``. The name
is all that travels to worker processes and into run files; each process finds the world by it.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from rpms.envs import scienceworld, telecom
from rpms.envs.base import Environment
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file
from rpms.vocabulary.imports import is_path, look_here, paths_allowed
from rpms.vocabulary.spelling import offer

GROUP = "rpms.worlds"
BUILT_IN = {
    "alfworld": "rpms.envs.alfworld.adapter:ENVIRONMENT",
    "scienceworld": "rpms.envs.scienceworld.adapter:ENVIRONMENT",
    "telecom": "rpms.envs.telecom.adapter:ENVIRONMENT",
}
FIRST_WORLD = next(iter(BUILT_IN))


def missing_worlds() -> dict[str, str]:
    """Worlds of ours whose simulator is not installed, each with how to get it."""
    worlds = {"scienceworld": scienceworld, "telecom": telecom}
    return {name: world.MISSING for name, world in worlds.items() if not find_spec(world.PACKAGE)}


def environment_names() -> list[str]:
    """The worlds that can be named; ours first, and the very first is the one used by default."""
    others = {point.name for point in entry_points(group=GROUP)} - BUILT_IN.keys()
    missing = missing_worlds()
    return [*(name for name in BUILT_IN if name not in missing), *sorted(others)]


@cache
def get_environment(name: str, playable: bool = True) -> Environment:
    """The world called ``name``; an unknown name lists the known ones.

    One that need not be ``playable`` is found without its simulator: its rules and its reading of
    answers are ours.
    """
    point = _find(name, playable)
    try:
        world = point.load()
    except Exception as error:  # a module of somebody's own may raise anything when imported
        reason = f"{type(error).__name__}: {error}"
        raise RpmsError(f"cannot load the world '{name}' from '{point.value}': {reason}") from error
    if not isinstance(world, Environment):
        raise RpmsError(
            f"'{point.value}' is no world: it must be an object of a class that extends "
            "rpms.envs.Environment"
        )
    if world.name != name:
        world = copy(world)  # the same object may be known by another name too
        world.name = name
    return world


def _find(name: str, playable: bool) -> EntryPoint:
    if playable and (advice := missing_worlds().get(name)):
        raise RpmsError(advice)
    if name in BUILT_IN:
        return EntryPoint(name, BUILT_IN[name], GROUP)
    if paths_allowed() and is_path(name):
        look_here()
        return EntryPoint(name, name, GROUP)
    for point in entry_points(group=GROUP, name=name):
        return point
    if paths_allowed() and name.isidentifier() and is_file(f"{name}/world.py"):
        look_here()
        return EntryPoint(name, f"{name}.world:WORLD", GROUP)
    own = " (a world of your own: the name of its folder, if that lies here, or MODULE:ATTRIBUTE)"
    own = own if paths_allowed() else ""
    raise RpmsError(f"unknown environment '{name}'; {offer(name, environment_names())}{own}")
