"""Open the chat model that a run's settings name, with its limits and constraints."""

from __future__ import annotations

import logging
from functools import cache as once
from typing import Any

from langchain_core.language_models import BaseChatModel

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.models import default_timeout, open_model
from rpms.models.weights import adapters
from rpms.vocabulary.context import RunContext

log = logging.getLogger("rpms")
ASK_S = 5.0
"""The time limit of the request for the list of a server's models."""


def call_s(context: RunContext) -> float:
    """Return the time limit of a model call: the setting, or the default of the model."""
    return context.timeout_s or default_timeout(context.model)


def reply_tokens(env: str, context: RunContext) -> int:
    """Return the token limit of a reply: the setting, or the environment's default."""
    return context.max_tokens or get_environment(env).max_tokens


def open_chat(env: str, context: RunContext) -> BaseChatModel:
    """Open the model of a context, constrained to actions if the settings ask for it.

    Nothing is sent over the network yet.
    """
    warn_of_another_world(env, context.model)
    return open_model(
        context.model,
        temperature=context.temperature,
        max_tokens=reply_tokens(env, context),
        timeout_s=call_s(context),
        base_url=context.base_url,
        seed=context.seed,
        allowed_syntaxes=allowed_syntaxes(env, context),
    )


@once
def warn_of_another_world(env: str, model: str) -> None:
    """Warn once if a model that comes with the project was tuned for another environment."""
    adapter = adapters().get(model.removeprefix("local:").partition("?")[0])
    if adapter and adapter.env != env:
        log.warning("model '%s' was tuned for %s and cannot be expected to play %s", model,
                    adapter.env, env)  # fmt: skip


def allowed_syntaxes(env: str, context: RunContext) -> tuple[str, ...]:
    """Return the action syntaxes of Tier 3 that replies are constrained to; none if unconstrained.

    Only the form comes from the manual, so a run without rules can be constrained as well: it
    learns nothing about which actions are possible.
    """
    if context.constrain != "grammar" and context.guard != "procedure":
        return ()
    return tuple(
        rule.syntax for rule in load_manual(env, context.rules_dir, context.without_rules).actions
    )


def served_limit(chat: BaseChatModel) -> int:
    """Return the context length that the server of a model lists; 0 if it lists none.

    vLLM and SGLang list ``max_model_len`` with a model, llama.cpp lists ``meta.n_ctx``. This is a
    request over the network: do not call it on an event loop.
    """
    client = getattr(chat, "root_client", None)
    if client is None or not getattr(chat, "openai_api_base", None):
        return 0  # no server of the user's own
    import openai

    try:
        listed = client.with_options(timeout=ASK_S, max_retries=0).models.list().data
    except (openai.OpenAIError, ValueError):  # no answer, no list, or no JSON
        return 0
    entries: dict[str, dict[str, Any]] = {entry.id: entry.model_dump() for entry in listed or ()}
    # A server with a single model serves it under any name.
    single = next(iter(entries.values())) if len(entries) == 1 else {}
    entry = entries.get(str(getattr(chat, "model_name", "")), single)
    meta = entry.get("meta")
    stated = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else 0)
    return stated if isinstance(stated, int) and stated > 0 else 0
