"""Which actions a reply may hold, for a run that constrains replies: the manual's Tier 3."""

from __future__ import annotations

from typing import Any

from rpms.nodes.context import RunContext
from rpms.nodes.manual import manual_for
from rpms.nodes.state import EpisodeState


def allowed_syntaxes(env: str, context: RunContext) -> tuple[str, ...]:
    """The syntaxes replies are held to; none when they are free.

    The form alone comes from the manual: a run without rules in its prompt can be held to it
    too, and learns nothing from it about what is possible now.
    """
    wanted = context.constrain == "grammar" or context.guard == "policy"
    return tuple(rule.syntax for rule in manual_for(env, context).actions) if wanted else ()


def choices_of(state: EpisodeState, context: RunContext) -> dict[str, Any]:
    """The choices this one call is held to: the shortlist, where the procedure plays."""
    if context.guard != "policy" or not state["shortlist"]:
        return {}
    return {"choices": [choice["action"] for choice in state["shortlist"]]}
