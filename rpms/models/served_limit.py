"""What a server states about the context length of its model.

vLLM and SGLang list ``max_model_len`` with a model, llama.cpp lists ``meta.n_ctx``. Other servers
list neither.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel

ASK_S = 5.0
"""The time limit of the request for the list of models."""


def served_limit(chat: BaseChatModel) -> int:
    """Return the context length that the server of a model lists; 0 if it lists none.

    This is a request over the network: do not call it on an event loop.
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
