"""Stage 5b: which of the surviving memories the prompt shows.

The memory method selects first (ours: the best k of each type, one of several alike). Then the
token budget: the least useful memories go, from the end of the list, until the blocks fit. What is
left out stays in the list with its outcome.
"""

from __future__ import annotations

from rpms.memory_store.methods.method import PrintedRules
from rpms.memory_store.methods.registry import find_method
from rpms.nodes.state import EpisodeState, knowledge_of, settings_of
from rpms.prompts.blocks import knowledge_blocks, recap, tokens
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall, drop


def memory_selection(state: EpisodeState) -> EpisodeState:
    """Read the candidates and what else the prompt shows; return them, those left out dropped."""
    context = settings_of(state)
    rules = _printed_rules(state, context) if context.rules else None
    method = find_method(context.memory_method)
    return EpisodeState(
        recalls=within_token_budget(state, method.select(state["recalls"], context, rules))
    )


def within_token_budget(state: EpisodeState, selected: list[Recall]) -> list[Recall]:
    """Memory has a token budget of its own, or shares one with rules and state, which stay."""
    context, recalls = settings_of(state), list(selected)
    known = knowledge_of(state)._replace(recalls=recalls)
    shown = [number for number, recall in enumerate(recalls) if not recall["dropped_by"]]
    alone = context.memory_token_budget
    limit, whose = (alone, "memory") if alone else (context.token_budget, "the blocks")
    # The lines that stand for hidden turns are no knowledge: they take no memory's place.
    free = 0 if alone else tokens(["\n".join(recap(known))])
    blocks = knowledge_blocks(known)
    while shown and tokens([blocks.memory] if alone else blocks) - free > limit:
        number = shown.pop()
        recalls[number] = drop(
            recalls[number], "over token budget", f"{whose} may take {limit} tokens"
        )
        blocks = knowledge_blocks(known)
    return recalls


def _printed_rules(state: EpisodeState, context: RunContext) -> PrintedRules:
    ids = {line["id"] for lines in state["rules"].values() for line in lines}
    manual = load_manual(state["env"], context.rules_dir, context.without_rules)
    return PrintedRules(manual, frozenset(ids))
