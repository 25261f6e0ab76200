"""``sim``, ``local:...``, ``provider:name`` or ``module:function`` -> a chat model."""

from __future__ import annotations

import os
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from rpms.models import controls, sim
from rpms.models.community import open_community
from rpms.models.constrained import hold
from rpms.models.local import LOCAL_TIMEOUT_S, is_local, open_local
from rpms.models.response_cache import ResponseCache
from rpms.models.sim import SimPlanner
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object
from rpms.vocabulary.secrets import hide_secrets_of, redact

# What tables call the models that are none.
LABELS: dict[str, str] = {"sim": sim.LABEL, **controls.LABELS}
CONTROLS = tuple(controls.LABELS)

# Where each provider's client looks for its key, and the package that brings the client.
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_EXTRAS = {"anthropic": "anthropic"}


SERVER_TIMEOUT_S = 60.0


def default_timeout(name: str) -> float:
    """How long a call of this model may take where nobody says otherwise."""
    return LOCAL_TIMEOUT_S if is_local(name) else SERVER_TIMEOUT_S


@lru_cache(maxsize=8)
def open_model(
    name: str,
    temperature: float = 0.0,
    max_tokens: int = 256,
    timeout_s: float = SERVER_TIMEOUT_S,
    base_url: str = "",
    seed: int = 0,
    cache: str = "",
    held_to: tuple[str, ...] = (),
) -> BaseChatModel:
    """The chat model called ``name``; nothing is sent over the network yet.

    ``cache`` names a file of earlier replies; what is in there is not asked again. ``held_to``
    are the actions replies are held to, by their syntax; none for free replies.
    """
    if name == "sim":
        return SimPlanner(whim=seed)
    if name in controls.LABELS:
        return controls.ShortlistChoice.model_validate({"policy": name, "seed": seed})
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise RpmsError(
            f"unknown model '{name}'; use 'sim', or PROVIDER:NAME such as openai:gpt-4o-mini, "
            "or local:smollm2"
        )
    if is_own(name):
        given = {"temperature": temperature, "max_tokens": max_tokens, "timeout_s": timeout_s,
                 "base_url": base_url, "seed": seed}  # fmt: skip
        return _open_own(name, given)
    # Retries are the graph's business (one policy, counted once), so the client makes none.
    options: dict[str, Any] = {
        "temperature": temperature,
        "max_tokens": max_tokens,
        "timeout": timeout_s,
        "max_retries": 0,
    }
    if seed and provider in ("openai", "local"):
        options["seed"] = seed
    hide_secrets_of(base_url)
    if base_url:
        options["base_url"] = base_url
        if provider == "openai" and not _has_key(provider):
            options["api_key"] = "none"  # local servers ask for none, the client insists on one
    created = _create(provider, model, options)
    if held_to:
        created = hold(created, held_to, f"{name} {base_url}".strip())
    if cache:
        identity = {"model": name, "base_url": base_url, "temperature": temperature,
                    "max_tokens": max_tokens, "seed": seed}  # fmt: skip
        created.cache = ResponseCache(
            Path(cache), identity | ({"held_to": held_to} if held_to else {}), max_tokens
        )
    return created


def is_own(name: str) -> bool:
    """Whether a model's name is an import path: a module's name that no provider has."""
    module = name.partition(":")[0]
    if not is_path(name) or module in (*_KEYS, "local", "community"):
        return False
    return "." in module or module not in known_providers()


def known_providers() -> dict[str, str]:
    """The providers that LangChain knows, each with the module that brings its client.

    Imported only for a name that may be one of them.
    """
    from langchain.chat_models import base

    return {name: str(entry[0]) for name, entry in base._BUILTIN_PROVIDERS.items()}


def _open_own(path: str, given: dict[str, Any]) -> BaseChatModel:
    """A chat model of the user's own: the object itself, or a function that makes it.

    A function is given the settings that it has parameters for.
    """
    found = load_object(path, "the model")
    if callable(found) and not isinstance(found, BaseChatModel):
        wanted = signature(found).parameters
        found = found(**{name: value for name, value in given.items() if name in wanted})
    if not isinstance(found, BaseChatModel):
        raise RpmsError(f"'{path}' makes a {type(found).__name__}, not a LangChain chat model")
    return found


def _create(provider: str, model: str, options: dict[str, Any]) -> BaseChatModel:
    if provider == "local":
        return open_local(model, options)
    if provider == "community":
        return open_community(model, options)
    key = _KEYS.get(provider)
    if key and "api_key" not in options and not _has_key(provider):
        raise RpmsError(
            f"model '{provider}:{model}' needs a key: set {key} in the environment, or give "
            "--base-url for a server that needs none"
        )
    try:
        if provider == "openai":
            from rpms.models.openai_chat import PlainChatOpenAI

            return PlainChatOpenAI(model=model, **options)
        from langchain.chat_models import init_chat_model

        created: BaseChatModel = init_chat_model(model, model_provider=provider, **options)
        return created
    except ImportError as error:
        hint = f"pip install 'rpms[{_EXTRAS[provider]}]'" if provider in _EXTRAS else str(error)
        raise RpmsError(f"provider '{provider}' is not installed: {hint}") from error
    except Exception as error:  # each provider's client raises its own kinds
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RpmsError(redact(f"cannot open model '{provider}:{model}': {first}")) from error


def _has_key(provider: str) -> bool:
    return bool(os.environ.get(_KEYS.get(provider, ""), ""))
