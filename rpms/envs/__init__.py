"""Environment adapters: everything the graph must not know about a particular world."""

from rpms.envs.base import (
    Demo,
    Environment,
    LiveGame,
    Outcome,
    Planted,
    Task,
    ToolWorld,
)
from rpms.envs.registry import environment_names, get_environment, world_with_tasks

__all__ = [
    "Demo",
    "Environment",
    "LiveGame",
    "Outcome",
    "Planted",
    "Task",
    "ToolWorld",
    "environment_names",
    "get_environment",
    "world_with_tasks",
]
