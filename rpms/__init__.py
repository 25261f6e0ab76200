"""RPMS: rules, belief and memory for LLM agents in closed worlds.

The public API is what this module names; everything below it may move.
"""

from envs import environment_names, get_environment
from graph import (
    STAGES,
    arun_episode,
    astream_episode,
    build_graph,
    run_episode,
    stream_episode,
)
from models import SimPlanner, open_model
from nodes import EpisodeInput, EpisodeOutput, EpisodeState, RunContext
from rules import Manual, check_action, load_manual
from vocabulary.belief import Belief
from vocabulary.errors import EnvironmentFault, RpmsError
from vocabulary.goal import GoalSpec
from vocabulary.recall import Recall, surviving
from vocabulary.turn import Turn

__version__ = "0.1.0"

__all__ = [
    "STAGES",
    "Belief",
    "EnvironmentFault",
    "EpisodeInput",
    "EpisodeOutput",
    "EpisodeState",
    "GoalSpec",
    "Manual",
    "Recall",
    "RpmsError",
    "RunContext",
    "SimPlanner",
    "Turn",
    "arun_episode",
    "astream_episode",
    "build_graph",
    "check_action",
    "environment_names",
    "get_environment",
    "load_manual",
    "open_model",
    "run_episode",
    "stream_episode",
    "surviving",
]
