"""The stages of one RPMS decision, one file each; nine have the paper's names."""

from nodes.action_arbitration import action_arbitration
from nodes.arbitration import arbitration
from nodes.belief_update import belief_update
from nodes.context import RunContext
from nodes.env_step import env_step
from nodes.goal_retrieval import goal_retrieval
from nodes.llm_call import make_llm_call
from nodes.prompt_build import prompt_build
from nodes.reset_env import reset_env
from nodes.rule_assembly import rule_assembly
from nodes.scf import scf
from nodes.state import EpisodeInput, EpisodeOutput, EpisodeState

__all__ = [
    "EpisodeInput",
    "EpisodeOutput",
    "EpisodeState",
    "RunContext",
    "action_arbitration",
    "arbitration",
    "belief_update",
    "env_step",
    "goal_retrieval",
    "make_llm_call",
    "prompt_build",
    "reset_env",
    "rule_assembly",
    "scf",
]
