"""RPMS: rules, belief and memory for LLM agents in closed worlds.

The public API is what this module names; everything below it may move. Names are imported when
they are first used, so that ``import rpms`` does not pay for LangGraph or a world.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpms.envs import Demo as Demo
    from rpms.envs import Environment as Environment
    from rpms.envs import LiveGame as LiveGame
    from rpms.envs import Outcome as Outcome
    from rpms.envs import Task as Task
    from rpms.envs import ToolWorld as ToolWorld
    from rpms.envs import environment_names as environment_names
    from rpms.envs import get_environment as get_environment
    from rpms.envs.manuals import load_manual as load_manual
    from rpms.evals.analysis.frames import load as load
    from rpms.evals.analysis.report import report as report
    from rpms.evals.running.arms import Arm as Arm
    from rpms.evals.running.arms import Variant as Variant
    from rpms.evals.running.costs import Budget as Budget
    from rpms.evals.running.evaluate import ExecutionOptions as ExecutionOptions
    from rpms.evals.running.evaluate import evaluate as evaluate
    from rpms.evals.running.learn import learn as learn
    from rpms.evals.running.recorder import Recorder as Recorder
    from rpms.graph import STAGES as STAGES
    from rpms.graph import RpmsGraph as RpmsGraph
    from rpms.graph import arun_episode as arun_episode
    from rpms.graph import astream_episode as astream_episode
    from rpms.graph import build_graph as build_graph
    from rpms.graph import make_builder as make_builder
    from rpms.graph import run_episode as run_episode
    from rpms.graph import stream_episode as stream_episode
    from rpms.graph.state_memory import StateMemory as StateMemory
    from rpms.guard import Judgement as Judgement
    from rpms.guard import LoopGuard as LoopGuard
    from rpms.guard import RulesGuard as RulesGuard
    from rpms.guard import judge as judge
    from rpms.models import SimPlanner as SimPlanner
    from rpms.models import open_model as open_model
    from rpms.nodes import EpisodeInput as EpisodeInput
    from rpms.nodes import EpisodeOutput as EpisodeOutput
    from rpms.nodes import EpisodeState as EpisodeState
    from rpms.nodes import make_goal_retrieval as make_goal_retrieval
    from rpms.nodes import settings_of as settings_of
    from rpms.rules import ActiveRules as ActiveRules
    from rpms.rules import Manual as Manual
    from rpms.rules import check_action as check_action
    from rpms.vocabulary.belief import Belief as Belief
    from rpms.vocabulary.belief import copy_belief as copy_belief
    from rpms.vocabulary.calls import Call as Call
    from rpms.vocabulary.context import RunContext as RunContext
    from rpms.vocabulary.errors import EnvironmentFault as EnvironmentFault
    from rpms.vocabulary.errors import RpmsError as RpmsError
    from rpms.vocabulary.goal import GoalSpec as GoalSpec
    from rpms.vocabulary.goal import SubGoal as SubGoal
    from rpms.vocabulary.recall import Recall as Recall
    from rpms.vocabulary.recall import drop as drop
    from rpms.vocabulary.recall import memory as memory
    from rpms.vocabulary.recall import surviving as surviving
    from rpms.vocabulary.turn import Decision as Decision
    from rpms.vocabulary.turn import Turn as Turn

__version__ = "0.1.0"

_HOMES = {
    "rpms.envs": (
        "Demo",
        "Environment",
        "LiveGame",
        "Outcome",
        "Task",
        "ToolWorld",
        "environment_names",
        "get_environment",
    ),
    "rpms.evals.running.costs": ("Budget",),
    "rpms.evals.running.arms": ("Arm", "Variant"),
    "rpms.evals.running.evaluate": ("ExecutionOptions", "evaluate"),
    "rpms.evals.analysis.frames": ("load",),
    "rpms.graph": (
        "STAGES",
        "RpmsGraph",
        "arun_episode",
        "astream_episode",
        "build_graph",
        "make_builder",
        "run_episode",
        "stream_episode",
    ),
    "rpms.graph.state_memory": ("StateMemory",),
    "rpms.guard": ("Judgement", "LoopGuard", "RulesGuard", "judge"),
    "rpms.evals.running.learn": ("learn",),
    "rpms.evals.running.recorder": ("Recorder",),
    "rpms.models": ("SimPlanner", "open_model"),
    "rpms.nodes": (
        "EpisodeInput",
        "EpisodeOutput",
        "EpisodeState",
        "make_goal_retrieval",
        "settings_of",
    ),
    "rpms.vocabulary.context": ("RunContext",),
    "rpms.envs.manuals": ("load_manual",),
    "rpms.evals.analysis.report": ("report",),
    "rpms.rules": ("ActiveRules", "Manual", "check_action"),
    "rpms.vocabulary.belief": ("Belief", "copy_belief"),
    "rpms.vocabulary.calls": ("Call",),
    "rpms.vocabulary.errors": ("EnvironmentFault", "RpmsError"),
    "rpms.vocabulary.goal": ("GoalSpec", "SubGoal"),
    "rpms.vocabulary.recall": ("Recall", "drop", "memory", "surviving"),
    "rpms.vocabulary.turn": ("Decision", "Turn"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a public name from its home."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rpms' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    """Name what can be imported, for completion in shells and editors."""
    return sorted([*globals(), *__all__])
