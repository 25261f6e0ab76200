"""Keep a prompt below a limit: whole turns are left out, oldest first, and a line counts them.

The limit is the setting ``context_tokens``, or what the model states, if that is less: by its
LangChain profile, or in its server's list of models. The instructions, the example, the task, the
knowledge blocks and the newest observation always stay. If these alone are too long, the episode
ends in a ``model_error`` that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately

from rpms.models.chat import open_chat, reply_tokens, served_limit
from rpms.models.constrained import innermost
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import ModelFault, RpmsError
from rpms.vocabulary.turn import Message

LAST_TURNS = 3
"""The latest actions and their results, which are left out only if all others are."""
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
    whole, dropped = list(messages), hidden
    start, last = len(whole) - 2 * turns, turns - LAST_TURNS
    sizes = [estimate(whole[i]) + estimate(whole[i + 1]) for i in range(start, len(whole), 2)]
    too_many = sum(map(estimate, whole)) - sum(sizes[:hidden]) - room
    if room != NO_LIMIT and too_many > 0:
        # The mark takes tokens as well; its longest form is counted.
        too_many += ceil((len(left_out(turns)) + 2) / 4)
        while dropped < turns and too_many > 0:
            end = min(dropped + GROUP_SIZE, last) if dropped < last else dropped + 1
            too_many -= sum(sizes[dropped:end])
            dropped = end
    if not dropped:
        return whole, 0
    newest = whole[-1:] if dropped == turns else []
    texts = [whole[start - 1]["content"], left_out(dropped), *(m["content"] for m in newest)]
    marked = Message(role=whole[start - 1]["role"], content="\n\n".join(texts))
    return [*whole[: start - 1], marked, *whole[start + 2 * dropped :]], dropped - hidden


def check_length(messages: Sequence[Message], room: int, scale: float) -> None:
    """Raise a ModelFault if what cannot be left out is too long by itself, the margin included."""
    least = int(sum(map(estimate, messages)) * scale)
    if room != NO_LIMIT and least > room / (1 - MARGIN):
        raise ModelFault(
            f"the prompt takes about {least} tokens without any earlier turn, and {room} are left "
            "for it; raise context_tokens, or take a model that reads more"
        )


def tokens_per_estimate(prompt: Sequence[AnyMessage], counted: int) -> float:
    """Return by how much the server's count of the last prompt was above the estimate.

    Tokenizers differ: a prompt full of numbers may take half as many tokens again.
    """
    return max(1.0, counted / max(1, count_tokens_approximately(prompt))) if prompt else 1.0


def estimate(message: Message) -> int:
    """Estimate the tokens of a message like LangChain's ``count_tokens_approximately``."""
    return ceil((len(message["content"]) + len(message["role"])) / 4) + 3


def prompt_room(env: str, context: RunContext, model: BaseChatModel | None = None) -> int:
    """Return the tokens that a prompt may have beside the reply; 0 if there is no limit."""
    reply = reply_tokens(env, context)
    stated = model_limit(model) if model else _limit_of_setting(env, context)
    limit = min(filter(None, (context.context_tokens, stated)), default=NO_LIMIT)
    if not limit:
        return NO_LIMIT
    room = int((limit - reply) * (1 - MARGIN))
    if room <= 0:
        raise RpmsError(
            f"a context of {limit} tokens has no space for a prompt beside a reply of {reply}; "
            "lower max_tokens or raise context_tokens"
        )
    return room


def model_limit(model: BaseChatModel) -> int:
    """Return the input limit that the model's profile or its server states; 0 if none does."""
    chat = innermost(model)
    profile = getattr(chat, "profile", None) or {}
    return int(profile.get("max_input_tokens") or served_limit(chat))


def _limit_of_setting(env: str, context: RunContext) -> int:
    """Return the limit of the model that the settings name, opened as for the call."""
    if context.model == "sim":
        return NO_LIMIT
    try:
        return model_limit(open_chat(env, context))
    except RpmsError:  # llm_call will raise it again
        return NO_LIMIT
