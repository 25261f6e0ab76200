"""Worlds by name, imported only when asked for so that one never slows the start of another."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from rpms.envs.base import Environment
from rpms.vocabulary.errors import RpmsError

# Each module offers ``ENVIRONMENT``. Adding a world means adding one line here.
_MODULES = {
    "alfworld": "rpms.envs.alfworld.adapter",
    "scienceworld": "rpms.envs.scienceworld.adapter",
}


def environment_names() -> list[str]:
    """The worlds that can be named on the command line and in a run's input."""
    return sorted(_MODULES)


@cache
def get_environment(name: str) -> Environment:
    """The world called ``name``; an unknown name lists the known ones."""
    if name not in _MODULES:
        known = ", ".join(environment_names())
        raise RpmsError(f"unknown environment '{name}'; known environments: {known}")
    environment: Environment = import_module(_MODULES[name]).ENVIRONMENT
    return environment
