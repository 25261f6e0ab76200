"""Stage 5b: select the surviving memories that the prompt shows.

The memory method selects first; ours takes the best k of each type and drops duplicates. Then
memories are dropped from the end of the list until the blocks fit the token budget. Dropped
memories stay in the list, with the reason.
"""

from __future__ import annotations

from rpms.memory_store.methods.method import PrintedRules
from rpms.memory_store.methods.registry import find_method
from rpms.nodes.state import EpisodeState, knowledge_of, manual_of, settings_of
from rpms.prompts.blocks import knowledge_blocks, memory_block, recap, tokens
from rpms.vocabulary.recall import Recall, drop


def memory_selection(state: EpisodeState) -> EpisodeState:
    """Read the candidates and the active rules; return the candidates, the surplus dropped."""
    context = settings_of(state)
    rules = _printed_rules(state) if context.rules else None
    method = find_method(context.memory_method)
    return EpisodeState(
        recalls=within_token_budget(state, method.select(state["recalls"], context, rules))
    )


def within_token_budget(state: EpisodeState, selected: list[Recall]) -> list[Recall]:
    """Drop memories over ``memory_token_budget``, or over the budget of all knowledge blocks."""
    context, recalls = settings_of(state), list(selected)
    knowledge = knowledge_of(state)._replace(recalls=recalls)
    shown = [number for number, recall in enumerate(recalls) if not recall["dropped_by"]]
    memory_only = context.memory_token_budget
    limit, owner = (memory_only, "memory") if memory_only else (context.token_budget, "the blocks")
    # The recap of hidden turns replaces history, so it does not count against the budget.
    free = 0 if memory_only else tokens(["\n".join(recap(knowledge))])
    others = () if memory_only else knowledge_blocks(knowledge)._replace(memory="")
    fixed = tokens(others) - free
    while shown and fixed + tokens([memory_block(knowledge)]) > limit:
        number = shown.pop()
        recalls[number] = drop(
            recalls[number], "over token budget", f"{owner} may take {limit} tokens"
        )
    return recalls


def _printed_rules(state: EpisodeState) -> PrintedRules:
    ids = {line["id"] for lines in state["rules"].values() for line in lines}
    return PrintedRules(manual_of(state), frozenset(ids))
