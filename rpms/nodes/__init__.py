"""The stages of one RPMS decision, one file each."""

from rpms.nodes.arbitration import arbitration
from rpms.nodes.belief_update import belief_update
from rpms.nodes.env_step import env_step
from rpms.nodes.goal_retrieval import goal_retrieval, make_goal_retrieval
from rpms.nodes.guard_check import guard_check
from rpms.nodes.llm_call import llm_call, make_llm_call, model_failed
from rpms.nodes.memory_selection import memory_selection
from rpms.nodes.prompt_build import make_prompt_build, prompt_build
from rpms.nodes.reset_env import make_reset_env, reset_env
from rpms.nodes.rule_assembly import rule_assembly
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState, settings_of

__all__ = [
    "EpisodeInput",
    "EpisodeOutput",
    "EpisodeState",
    "arbitration",
    "belief_update",
    "env_step",
    "goal_retrieval",
    "guard_check",
    "llm_call",
    "make_goal_retrieval",
    "make_llm_call",
    "make_prompt_build",
    "make_reset_env",
    "memory_selection",
    "model_failed",
    "prompt_build",
    "reset_env",
    "rule_assembly",
    "scf",
    "settings_of",
]

if __name__ != "rpms.nodes":
    raise ImportError("'nodes' at the top of the clone is only a link: import rpms.nodes")
