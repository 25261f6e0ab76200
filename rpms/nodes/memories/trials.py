"""Between two trials of one task: what the method makes of the trial that has just ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rpms.nodes.context import RunContext
from rpms.nodes.memories.registry import find_method
from rpms.nodes.memories.writing import Writer, refuse_mute
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import EpisodeRecord, Message


async def _nobody(messages: list[Message]) -> str:
    raise RpmsError("a memory method asked for a text without 'needs_model = True' in its class")


def check_trials(context: RunContext) -> None:
    """Refuse trials between which nobody could write what the method carries."""
    method = find_method(context.memory_method)
    if context.memory and method.cumulative and method.needs_model:
        refuse_mute(context.model, method.name)


async def after_trial(
    env: str,
    context: RunContext,
    carried: Mapping[str, Any],
    record: EpisodeRecord,
    cache: str = "",
) -> dict[str, Any]:
    """The ``carried`` of the next trial, as JSON data; empty for a method that carries nothing.

    The run's model is opened here, and what goes wrong with it is raised. What its texts cost, over
    all trials of the task so far, stands under ``spent``.
    """
    method = find_method(context.memory_method)
    if not context.memory or not method.cumulative:
        return {}
    if not method.needs_model:
        return {**await method.carry(carried, record, _nobody), "method": method.name}
    writer = Writer(env, context, method.name, cache)
    found = await method.carry(carried, record, writer)
    before = carried.get("spent", {})
    spent = {name: before.get(name, 0) + count for name, count in writer.spent.items()}
    return {**found, "method": method.name, "spent": spent}
