"""Fit long histories into a model's context: whole turns are dropped, oldest first, and marked.

The instructions, the example, the task, the knowledge blocks and the last turns are always kept,
unless the run shows fewer turns anyway. If these alone are too long, the prompt is sent as it is:
the server's error says more than a guess made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from langchain_core.language_models import BaseChatModel

from rpms.models.cached import innermost
from rpms.models.chat import open_chat, reply_tokens
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message

LAST_TURNS = 3
"""Turns that are always kept: the latest actions and their results."""
GROUP_SIZE = 4
"""Turns are dropped in groups, so that the prefix stays the same for a few steps and is reused."""
MARGIN = 0.1
"""The share of the context left free, because tokens are estimated (four letters each)."""
NO_LIMIT = 0


def left_out(turns: int) -> str:
    return f"[... {turns} earlier turn{'s' if turns > 1 else ''} left out ...]"


def fit(
    messages: Sequence[Message], turns: int, room: int, hidden: int = 0
) -> tuple[list[Message], int]:
    """Drop turns until the prompt fits ``room`` tokens; return it and the number of turns dropped.

    The last ``2 * turns`` messages are the turns, oldest first. Everything before them stays, and
    the newest observation. The first ``hidden`` turns are left out in any case.
    """
    whole, droppable, dropped = list(messages), turns - LAST_TURNS, hidden
    start = len(whole) - 2 * turns
    sizes = [estimate(whole[i]) + estimate(whole[i + 1]) for i in range(start, len(whole), 2)]
    too_many = sum(map(estimate, whole)) - sum(sizes[:hidden]) - room
    if room != NO_LIMIT and too_many > 0:
        # The mark takes tokens as well; its longest form is counted.
        too_many += ceil((len(left_out(turns)) + 2) / 4)
        while dropped < droppable and too_many > 0:
            group = sizes[dropped : min(dropped + GROUP_SIZE, droppable)]
            too_many -= sum(group)
            dropped += len(group)
    if not dropped:
        return whole, 0
    newest = whole[-1:] if dropped == turns else []
    texts = [whole[start - 1]["content"], left_out(dropped), *(m["content"] for m in newest)]
    marked = Message(role=whole[start - 1]["role"], content="\n\n".join(texts))
    return [*whole[: start - 1], marked, *whole[start + 2 * dropped :]], dropped - hidden


def estimate(message: Message) -> int:
    """Estimate the tokens of a message like LangChain's ``count_tokens_approximately``."""
    return ceil((len(message["content"]) + len(message["role"])) / 4) + 3


def prompt_room(env: str, context: RunContext, model: BaseChatModel | None = None) -> int:
    """Return the tokens that a prompt may have beside the reply; 0 if no limit is known."""
    reply = reply_tokens(env, context)
    limit = model_limit(model) if model else _limit_of_setting(env, context)
    if not limit:
        return NO_LIMIT
    room = int((limit - reply) * (1 - MARGIN))
    if room <= 0:
        raise RpmsError(
            f"a context of {limit} tokens has no space for a prompt beside a reply of {reply}; "
            "lower max_tokens"
        )
    return room


def model_limit(model: BaseChatModel) -> int:
    """Return the input limit from the model's profile; 0 if it has none."""
    profile = getattr(innermost(model), "profile", None) or {}
    return int(profile.get("max_input_tokens") or NO_LIMIT)


def _limit_of_setting(env: str, context: RunContext) -> int:
    """Return the limit of the model that the settings name, opened as for the call."""
    if context.model == "sim":
        return NO_LIMIT
    try:
        return model_limit(open_chat(env, context))
    except RpmsError:  # llm_call will raise it again
        return NO_LIMIT
