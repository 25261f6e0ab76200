"""Which actions a reply may hold, for a run that constrains replies: the manual's Tier 3."""

from __future__ import annotations

from functools import cache

from nodes.context import RunContext
from rules import load_manual


def held_to(env: str, context: RunContext) -> tuple[str, ...]:
    """The syntaxes replies are held to; none when they are free.

    The form alone comes from the manual: a run without rules in its prompt can be held to it
    too, and learns nothing from it about what is possible now.
    """
    return _syntaxes(env) if context.constrain == "grammar" else ()


@cache
def _syntaxes(env: str) -> tuple[str, ...]:
    return tuple(rule.syntax for rule in load_manual(env).actions)
