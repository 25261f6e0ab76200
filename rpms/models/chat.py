"""The chat model that a run's settings name, and what its replies are held to.

One way to open it, for every stage that needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from langchain_core.language_models import BaseChatModel

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.models import default_timeout, open_model
from rpms.models.response_cache import ResponseCache
from rpms.vocabulary.context import RunContext

log = logging.getLogger("rpms")


def call_s(context: RunContext) -> float:
    """How long one model call may take, as asked for or by the kind of model."""
    return context.timeout_s or default_timeout(context.model)


def reply_cache(context: RunContext, file: str) -> str:
    """The file of earlier replies, where they may stand for new ones; else none.

    Sampling asks for a new reply every time, and the planner is cheaper than the cache.
    """
    return file if context.model != "sim" and not context.temperature else ""


def reply_tokens(env: str, context: RunContext) -> int:
    """How long a reply may be: as asked for, or by the world."""
    return context.max_tokens or get_environment(env).max_tokens


def open_chat(env: str, context: RunContext, cache: str = "") -> BaseChatModel:
    """The model of a context, with the world's reply length and held to its actions if asked for.

    ``cache`` names a file of replies that need no new call. Nothing is sent over the network yet.
    """
    return open_model(
        context.model,
        temperature=context.temperature,
        max_tokens=reply_tokens(env, context),
        timeout_s=call_s(context),
        base_url=context.base_url,
        seed=context.seed,
        cache=cache,
        allowed_syntaxes=allowed_syntaxes(env, context),
    )


def warn_of_doubts(chats: Iterable[BaseChatModel]) -> None:
    """Say of each server, once, if nobody can know whose replies are in the cache.

    The servers are asked for their models; not to be called on an event loop.
    """
    caches = (chat.cache for chat in chats)
    doubts = [cache.doubt() for cache in caches if isinstance(cache, ResponseCache)]
    for doubt in dict.fromkeys(filter(None, doubts)):
        log.warning("%s", doubt)


def allowed_syntaxes(env: str, context: RunContext) -> tuple[str, ...]:
    """The syntaxes replies are held to, from the manual's Tier 3; none when they are free.

    The form alone comes from the manual: a run without rules in its prompt can be held to it
    too, and learns nothing from it about what is possible now.
    """
    if context.constrain != "grammar" and context.guard != "policy":
        return ()
    return tuple(
        rule.syntax for rule in load_manual(env, context.rules_dir, context.without_rules).actions
    )
