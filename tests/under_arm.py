"""The stages of an arm up to its prompt, at a state that another arm has reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langgraph.runtime import Runtime

import rpms.nodes as stages
from rpms.graph.build import next_stage
from rpms.nodes.state import EpisodeState, apply_update
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import Message


def under_arm(state: EpisodeState, context: RunContext) -> EpisodeState:
    """Run an arm's stages up to its prompt, at a state that another arm may have reached."""
    empty: dict[str, list[Any]] = {tier: [] for tier in state["rules"]}
    view = {**state, "settings": context.plain, "rules": empty, "recalls": [], "truncated": {}}
    stage, runtime = "belief_update", Runtime(context=context)
    while (stage := next_stage(stage, cast(Any, view))) != "llm_call":
        run = getattr(stages, stage)
        update = run(view, runtime) if stage == "goal_retrieval" else run(view)
        apply_update(view, update)
    return cast(EpisodeState, view)


def prompt_of(state: EpisodeState, context: RunContext) -> Sequence[Message]:
    """The prompt of an arm at a state that another arm may have reached."""
    return cast(Sequence[Message], under_arm(state, context)["prompt"])
