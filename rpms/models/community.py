"""Open chat models of langchain-community, an optional extra, by the names of their classes."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

PACKAGE = "langchain_community"
INSTALL = "pip install -e '.[community]' in a clone"


def open_community(spec: str, options: dict[str, Any]) -> BaseChatModel:
    """Open ``CLASS:NAME``, or a ``CLASS`` that needs no name.

    The classes share no settings: each gets those that it has fields for. A base URL is an error,
    because some classes accept it and still call their own server.
    """
    kind, _, name = spec.partition(":")
    if "base_url" in options:
        raise RpmsError(
            f"'community:{spec}' takes no base URL: its class has its own settings for that; for a "
            "server of OpenAI's protocol use openai:NAME"
        )
    try:
        from langchain_community import chat_models
    except ImportError as error:
        raise RpmsError(f"provider 'community' is not installed: {INSTALL}") from error
    if kind not in chat_models.__all__:
        names = sorted(chat_models.__all__)
        raise RpmsError(f"langchain-community has no chat model '{kind}'; {offer(kind, names)}")
    model = getattr(chat_models, kind)
    fields = {*model.model_fields, *(field.alias for field in model.model_fields.values())}
    settings = {key: value for key, value in options.items() if key in fields}
    if name:
        spelling = next((field for field in ("model", "model_name") if field in fields), None)
        if spelling is None:
            raise RpmsError(f"{kind} of langchain-community takes no name of a model")
        settings[spelling] = name
    opened: BaseChatModel = model(**settings)
    return opened
