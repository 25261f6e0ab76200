"""Long histories within a model's context: the oldest turns go, whole, and their place is marked.

Never touched are the instructions, the example, the task, the knowledge blocks and, unless a run
shows fewer anyway, the last turns. If those alone are too long the prompt is sent as it is: the
server's refusal says more than anything that could be guessed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from langchain_core.language_models import BaseChatModel

from rpms.models.chat import open_chat, reply_tokens
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message

LAST_TURNS = 3
"""Kept whatever it costs: what was just tried, and what came of it."""
AT_A_TIME = 4
"""Turns go in groups, so that the beginning stays the same for a few steps and can be reused."""
MARGIN = 0.1
"""Tokens are estimated (four letters each); a tenth is left for where that is too few."""
NO_LIMIT = 0


def left_out(turns: int) -> str:
    """What stands in place of dropped turns."""
    return f"[... {turns} earlier turn{'s' if turns > 1 else ''} left out ...]"


def fit(
    messages: Sequence[Message], turns: int, room: int, hidden: int = 0
) -> tuple[list[Message], int]:
    """The prompt within ``room`` tokens as far as possible, and how many turns it cost.

    The last ``2 * turns`` messages are the turns, oldest first; everything before stays, and the
    newest observation. The first ``hidden`` turns are left out whether there is room or not.
    """
    whole, most, dropped = list(messages), turns - LAST_TURNS, hidden
    start = len(whole) - 2 * turns
    sizes = [estimate(whole[i]) + estimate(whole[i + 1]) for i in range(start, len(whole), 2)]
    too_many = sum(map(estimate, whole)) - sum(sizes[:hidden]) - room
    if room != NO_LIMIT and too_many > 0:
        # The mark itself takes room; its longest form is counted.
        too_many += ceil((len(left_out(turns)) + 2) / 4)
        while dropped < most and too_many > 0:
            group = sizes[dropped : min(dropped + AT_A_TIME, most)]
            too_many -= sum(group)
            dropped += len(group)
    if not dropped:
        return whole, 0
    newest = whole[-1:] if dropped == turns else []
    texts = [whole[start - 1]["content"], left_out(dropped), *(m["content"] for m in newest)]
    marked = Message(role=whole[start - 1]["role"], content="\n\n".join(texts))
    return [*whole[: start - 1], marked, *whole[start + 2 * dropped :]], dropped - hidden


def estimate(message: Message) -> int:
    """Tokens of one message, as LangChain's ``count_tokens_approximately`` has them."""
    return ceil((len(message["content"]) + len(message["role"])) / 4) + 3


def prompt_room(env: str, context: RunContext, model: BaseChatModel | None = None) -> int:
    """How many tokens a prompt may have, room for the reply left; 0 where no limit is known."""
    reply = reply_tokens(env, context)
    limit = model_limit(model) if model else _named(env, context)
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
    """What the model's own profile says about its input; 0 where it says nothing."""
    # A model whose replies are held to a format is the same model underneath.
    profile = getattr(getattr(model, "inner", model), "profile", None) or {}
    return int(profile.get("max_input_tokens") or NO_LIMIT)


def _named(env: str, context: RunContext) -> int:
    """The limit of the model that the context names, opened as it will be for the call."""
    if context.model == "sim":
        return NO_LIMIT
    try:
        return model_limit(open_chat(env, context))
    except RpmsError:  # the call itself will say what is wrong with the model
        return NO_LIMIT
