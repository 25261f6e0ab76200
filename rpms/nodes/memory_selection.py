"""Stage 5b: what of M_arb is printed, the same in every condition with memory.

The memory method selects: ours drops duplicates and keeps the best k of each type. Then memories
are dropped from the end of the list until the memory block takes at most ``memory_tokens``. The
paper prints all of M_arb; plan ``paper`` sets both limits so that nothing is left out. Dropped
memories stay in the list, with the reason.
"""

from __future__ import annotations

from rpms.memory_store.methods.registry import find_method
from rpms.nodes.state import EpisodeState, knowledge_of, settings_of
from rpms.prompts.blocks import memory_block, tokens
from rpms.vocabulary.recall import Recall, drop


def memory_selection(state: EpisodeState) -> EpisodeState:
    """Read the candidates; return them, those over a limit dropped."""
    context = settings_of(state)
    method = find_method(context.memory_method)
    return EpisodeState(recalls=within_budget(state, method.select(state["recalls"], context)))


def within_budget(state: EpisodeState, selected: list[Recall]) -> list[Recall]:
    """Drop memories from the end until their block takes at most ``memory_tokens``."""
    limit, recalls = settings_of(state).memory_tokens, list(selected)
    knowledge = knowledge_of(state)._replace(recalls=recalls)
    shown = [number for number, recall in enumerate(recalls) if not recall["dropped_by"]]
    while limit and shown and tokens([memory_block(knowledge)]) > limit:
        number = shown.pop()
        reason = f"memory may take {limit} tokens"
        recalls[number] = drop(recalls[number], "over token budget", reason)
    return recalls
