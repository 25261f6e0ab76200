"""Environment adapters: everything the graph must not know about a particular world."""

from rpms.envs.base import (
    Demo,
    Environment,
    LiveGame,
    Outcome,
    Planted,
    Task,
    ToolGame,
    ToolWorld,
)
from rpms.envs.registry import environment_names, get_environment

__all__ = [
    "Demo",
    "Environment",
    "LiveGame",
    "Outcome",
    "Planted",
    "Task",
    "ToolGame",
    "ToolWorld",
    "environment_names",
    "get_environment",
]
