"""The chat model that a run's settings name: one way to open it, for every stage that needs it."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from rpms.envs import get_environment
from rpms.models import open_model
from rpms.nodes.context import RunContext, call_s
from rpms.nodes.reply_grammar import allowed_syntaxes


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
