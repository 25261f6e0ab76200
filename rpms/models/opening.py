"""Open models by name: ``sim``, ``local:...``, ``provider:name`` or ``module:function``.

``open_model`` opens the chat model. ``choices`` lists every form of name, and what is missing for
it on this machine.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from rpms.models import controls, local, sim
from rpms.models.constrained import constrain
from rpms.models.merging import MERGER
from rpms.models.weights import adapters, catalogue, pulled
from rpms.vocabulary.context import BUILT_IN
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import allow_current_folder, is_path, load_object, paths_allowed
from rpms.vocabulary.safe_text import hide_secrets_of, redact
from rpms.vocabulary.spelling import offer

LABELS = BUILT_IN
CONTROLS = tuple(name for name in LABELS if name != "sim")
SERVER_TIMEOUT_S = 60.0
COMMUNITY_INSTALL = "pip install -e '.[community]' in a clone"
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The environment variables with the API keys."""


def default_timeout(name: str) -> float:
    return local.LOCAL_TIMEOUT_S if local.is_local(name) else SERVER_TIMEOUT_S


@lru_cache(maxsize=8)
def open_model(
    name: str, temperature: float = 0.0, max_tokens: int = 256, timeout_s: float = SERVER_TIMEOUT_S,
    base_url: str = "", seed: int = 0, allowed_syntaxes: tuple[str, ...] = (),
) -> BaseChatModel:  # fmt: skip
    """Open the chat model called ``name``; nothing is sent over the network yet.

    Replies are constrained to actions of the ``allowed_syntaxes``, if there are any.
    """
    if name == "sim":
        return sim.SimPlanner(whim=seed)
    if name in CONTROLS:
        return controls.ShortlistChoice.model_validate({"picks": name, "seed": seed})
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise RpmsError(
            f"unknown model '{name}'; use 'sim', or PROVIDER:NAME such as openai:gpt-4o-mini, "
            "or local:smollm2"
        )
    decoding = {"base_url": base_url, "temperature": temperature, "max_tokens": max_tokens,
                "seed": seed}  # fmt: skip
    if is_import_path(name):
        return _open_custom(name, {**decoding, "timeout_s": timeout_s})
    # The graph retries failed calls, under one policy, so the client does not.
    options: dict[str, Any] = {
        "temperature": temperature,
        "max_tokens": max_tokens,
        "timeout": timeout_s,
        "max_retries": 0,
    }
    if seed and provider in ("openai", "local", "community"):
        options["seed"] = seed
    hide_secrets_of(base_url)
    if base_url:
        options["base_url"] = base_url
        if provider == "openai" and not os.environ.get(KEYS[provider]):
            options["api_key"] = "none"  # local servers need no key, but the client does
    created = _create(provider, model, options)
    if temperature:
        created.cache = False  # sampling needs a new reply every time
    if allowed_syntaxes:
        return constrain(created, allowed_syntaxes, f"{name} {base_url}".strip())
    return created


def forget_models() -> None:
    """Forget all open models, so that the next call opens them again."""
    open_model.cache_clear()


def is_import_path(name: str) -> bool:
    """Return True if a model's name is the import path of a module, not of a provider."""
    module = name.partition(":")[0]
    if not is_path(name) or module in (*KEYS, "local", "community"):
        return False
    if paths_allowed():
        allow_current_folder()
    # Clients of other providers are called langchain_groq, langchain_ollama and so on.
    provider = find_spec(f"langchain_{module}") if "." not in module else None
    return "." in module or (provider is None and find_spec(module) is not None)


def _open_custom(path: str, settings: dict[str, Any]) -> BaseChatModel:
    """Open a custom chat model: the object itself, or a function that returns it.

    A function receives the settings that it has parameters for.
    """
    model = load_object(path, "the model")
    if callable(model) and not isinstance(model, BaseChatModel):
        parameters = signature(model).parameters
        model = model(**{name: value for name, value in settings.items() if name in parameters})
    if not isinstance(model, BaseChatModel):
        raise RpmsError(f"'{path}' makes a {type(model).__name__}, not a LangChain chat model")
    return model


def _create(provider: str, model: str, options: dict[str, Any]) -> BaseChatModel:
    if provider == "local":
        return local.open_local(model, options)
    key = KEYS.get(provider)
    if key and "api_key" not in options and not os.environ.get(key):
        raise RpmsError(
            f"model '{provider}:{model}' needs a key: set {key} in the environment, or give "
            "--base-url for a server that needs none"
        )
    try:
        if provider == "openai":
            from rpms.models.openai_chat import PlainChatOpenAI

            return PlainChatOpenAI(model=model, **options)
        if provider == "community":
            return _open_community(model, options)
        from langchain.chat_models import init_chat_model

        created: BaseChatModel = init_chat_model(model, model_provider=provider, **options)
        return created
    except RpmsError:
        raise
    except ImportError as error:
        hint = "pip install -e '.[anthropic]' in a clone" if provider == "anthropic" else str(error)
        raise RpmsError(f"provider '{provider}' is not installed: {hint}") from error
    except Exception as error:  # each provider's client raises its own kinds
        # The first line of pydantic's message names only the class.
        text = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        first = (text.strip() or type(error).__name__).splitlines()[0]
        raise RpmsError(redact(f"cannot open model '{provider}:{model}': {first}")) from error


def _open_community(spec: str, options: dict[str, Any]) -> BaseChatModel:
    """Open ``CLASS:NAME`` of langchain-community, or a ``CLASS`` that needs no name.

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
        raise RpmsError(f"provider 'community' is not installed: {COMMUNITY_INSTALL}") from error
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


class ModelChoice(NamedTuple):
    """A model, or a form of model names.

    Attributes:
        name: the value of ``--model``.
        description: a description of the model.
        missing: what to do before it can be used; empty if nothing.
    """

    name: str
    description: str
    missing: str = ""


def choices() -> list[ModelChoice]:
    """List every kind of model, and what is missing for each.

    No model is opened and nothing is sent; packages are looked up but not imported.
    """
    built_in = [
        ModelChoice(name, label.partition(" (")[2].rstrip(")")) for name, label in LABELS.items()
    ]
    key = "" if os.environ.get(KEYS["openai"]) else f"set {KEYS['openai']}, or give --base-url"
    needs = [
        "" if find_spec("langchain_anthropic") else "pip install -e '.[anthropic]' in a clone",
        "" if os.environ.get(KEYS["anthropic"]) else f"set {KEYS['anthropic']}",
    ]
    return [
        *built_in,
        *_local_choices(),
        ModelChoice("openai:NAME", "OpenAI, or with --base-url any server of its protocol", key),
        ModelChoice("anthropic:NAME", "Anthropic", " and ".join(filter(None, needs))),
        ModelChoice(
            "community:CLASS:NAME",
            "a chat model of langchain-community, by its class",
            "" if find_spec("langchain_community") else COMMUNITY_INSTALL,
        ),
        ModelChoice(
            "PROVIDER:NAME",
            "any other provider that LangChain's init_chat_model knows",
            "install its package and set its key",
        ),
        ModelChoice("MODULE:NAME", "a chat model of your own, by its import path"),
    ]


def _local_choices() -> list[ModelChoice]:
    runtime = "" if find_spec(local.RUNTIME) else local.install(local.RUNTIME)
    small = "a very small model on this machine's processor"
    listed = [
        ModelChoice(f"local:{name}", small, runtime or _needed(module))
        for name, module in local.SHIPPED.items()
    ]
    for name, adapter in adapters().items():
        needs = runtime or _needed(local.SHIPPED[adapter.base]) or _needed(MERGER)
        listed.append(ModelChoice(f"local:{name}", adapter.about, needs))
    for name, weights in catalogue().items():
        needs = " and ".join(
            filter(None, (runtime, "" if pulled(name) else f"run 'rpms models pull {name}'"))
        )
        listed.append(ModelChoice(f"local:{name}", weights.about, needs))
    return [*listed, ModelChoice("local:FILE.gguf", "any GGUF file, on this machine", runtime)]


def _needed(module: str) -> str:
    return "" if find_spec(module) else local.install(module)
