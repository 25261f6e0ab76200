"""``community:CLASS:NAME``: a chat model of langchain-community, by the name of its class.

The only place that knows the package. Upstream winds it down, so it is an optional extra and
nothing imports it before a model of this kind is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from langchain_core.language_models import BaseChatModel

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.secrets import redact

MODULE = "langchain_community.chat_models"
# Classes name the same thing differently; the first name that a class has is used.
SPELLINGS = {
    "model": ("model", "model_name", "model_id", "model_path", "endpoint"),
    "max_tokens": ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens"),
    "timeout": ("timeout", "request_timeout"),
    "base_url": ("base_url", "api_base", "openai_api_base"),
}
MUST_FIT = ("model", "base_url")
"""Without these another model would answer than the one that was asked for."""


def open_community(name: str, options: dict[str, Any]) -> BaseChatModel:
    """The chat model ``CLASS:NAME``, with as many of the options as its class takes."""
    kind, _, model = name.partition(":")
    if not kind or not model:
        raise RpmsError(
            f"unknown model 'community:{name}'; use community:CLASS:NAME, such as "
            "community:ChatDeepInfra:meta-llama/Meta-Llama-3.1-8B-Instruct"
        )
    try:
        module = importlib.import_module(MODULE)
        cls = getattr(module, kind, None)
    except ImportError as error:
        raise RpmsError(
            "provider 'community' is not installed: pip install 'rpms[community]'"
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, BaseChatModel)):
        raise RpmsError(f"langchain-community has no chat model called '{kind}'")
    try:
        created: BaseChatModel = cls(**_fitting(cls, {"model": model, **options}))
    except RpmsError:
        raise
    except Exception as error:  # a missing key, or a client package of its own
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise RpmsError(redact(f"cannot open model 'community:{name}': {first}")) from error
    return created


def _fitting(cls: type[BaseChatModel], options: dict[str, Any]) -> dict[str, Any]:
    taken: dict[str, Any] = {}
    known = {field.alias or name for name, field in cls.model_fields.items()}
    known |= set(cls.model_fields)
    for option, value in options.items():
        spelling = next((s for s in SPELLINGS.get(option, (option,)) if s in known), None)
        if spelling:
            taken[spelling] = value
        elif option in MUST_FIT:
            raise RpmsError(f"chat model '{cls.__name__}' takes no {option.replace('_', ' ')}")
    return taken
