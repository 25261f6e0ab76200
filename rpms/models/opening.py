"""Models by name: ``sim``, ``local:...``, ``provider:name`` or ``module:function``.

``open_model`` makes the chat model; ``choices`` lists every kind of name, and what each still
needs on this machine.
"""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel

from rpms.models import controls, local, sim
from rpms.models.constrained import constrain
from rpms.models.response_cache import ResponseCache
from rpms.models.weights import catalogue, pulled
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object
from rpms.vocabulary.safe_text import hide_secrets_of, redact

CONTROLS = tuple(controls.LABELS)
LABELS: dict[str, str] = {"sim": sim.LABEL, **controls.LABELS}
"""What tables call the models that are none."""
SERVER_TIMEOUT_S = 60.0
KEYS = {
    **{
        provider: f"{provider.upper()}_API_KEY"
        for provider in ("anthropic", "azure_openai", "cohere", "deepseek", "fireworks", "groq",
                         "langsmith", "nvidia", "openai", "openrouter", "together", "xai")
    },
    "google_genai": "GOOGLE_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "perplexity": "PPLX_API_KEY",
}  # fmt: skip
"""Where clients look for a key; a provider that is not here has one of its own kind, or none."""
OURS = {
    "openai": "OpenAI, or with --base-url any server of its protocol",
    "anthropic": "Anthropic",
    "community": "a chat model of langchain-community",
}
"""Providers that this file knows more about than LangChain says; extras are called like them."""
# Classes of langchain-community differ in these names; the first that a class has is used.
SPELLINGS = {
    "model": ("model", "model_name", "model_id", "model_path", "endpoint"),
    "max_tokens": ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens"),
    "timeout": ("timeout", "request_timeout"),
    "base_url": ("base_url", "api_base", "openai_api_base"),
}
MUST_FIT = ("model", "base_url")
"""Without these another model would answer than the one that was asked for."""


def default_timeout(name: str) -> float:
    """How long a call of this model may take where nobody says otherwise."""
    return local.LOCAL_TIMEOUT_S if local.is_local(name) else SERVER_TIMEOUT_S


@lru_cache(maxsize=8)
def open_model(
    name: str,
    temperature: float = 0.0,
    max_tokens: int = 256,
    timeout_s: float = SERVER_TIMEOUT_S,
    base_url: str = "",
    seed: int = 0,
    cache: str = "",
    allowed_syntaxes: tuple[str, ...] = (),
) -> BaseChatModel:
    """The chat model called ``name``; nothing is sent over the network yet.

    ``cache`` names a file of earlier replies; what is in there is not asked again. Replies are
    constrained to actions of the ``allowed_syntaxes``; none for free replies.
    """
    if name == "sim":
        return sim.SimPlanner(whim=seed)
    if name in CONTROLS:
        return controls.ShortlistChoice.model_validate({"policy": name, "seed": seed})
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise RpmsError(
            f"unknown model '{name}'; use 'sim', or PROVIDER:NAME such as openai:gpt-4o-mini, "
            "or local:smollm2"
        )
    decoding = {"base_url": base_url, "temperature": temperature, "max_tokens": max_tokens,
                "seed": seed}  # fmt: skip
    if is_own(name):
        return _open_own(name, {**decoding, "timeout_s": timeout_s})
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
        if provider == "openai" and not os.environ.get(KEYS[provider]):
            options["api_key"] = "none"  # local servers ask for none, the client insists on one
    created = _create(provider, model, options)
    if allowed_syntaxes:
        created = constrain(created, allowed_syntaxes, f"{name} {base_url}".strip())
    if cache:
        identity: dict[str, Any] = {"model": name, **decoding}
        if allowed_syntaxes:  # the key of earlier versions, so that their replies are found
            identity["held_to"] = allowed_syntaxes
        created.cache = ResponseCache(Path(cache), identity, max_tokens)
    return created


def is_own(name: str) -> bool:
    """Whether a model's name is an import path: a module's name that no provider has."""
    module = name.partition(":")[0]
    if not is_path(name) or module in (*OURS, "local"):
        return False
    return "." in module or module not in _known_providers()


def _known_providers() -> dict[str, str]:
    """The providers that LangChain knows, each with the module that brings its client.

    Imported only for a name that may be one of them.
    """
    from langchain.chat_models import base

    return {name: str(entry[0]) for name, entry in base._BUILTIN_PROVIDERS.items()}


def _open_own(path: str, settings: dict[str, Any]) -> BaseChatModel:
    """A chat model of the user's own: the object itself, or a function that makes it.

    A function is given the settings that it has parameters for.
    """
    model = load_object(path, "the model")
    if callable(model) and not isinstance(model, BaseChatModel):
        wanted = signature(model).parameters
        model = model(**{name: value for name, value in settings.items() if name in wanted})
    if not isinstance(model, BaseChatModel):
        raise RpmsError(f"'{path}' makes a {type(model).__name__}, not a LangChain chat model")
    return model


def _create(provider: str, model: str, options: dict[str, Any]) -> BaseChatModel:
    if provider == "local":
        return local.open_local(model, options)
    key = KEYS.get(provider) if provider in OURS else None
    if key and "api_key" not in options and not os.environ.get(key):
        raise RpmsError(
            f"model '{provider}:{model}' needs a key: set {key} in the environment, or give "
            "--base-url for a server that needs none"
        )
    try:
        if provider == "community":
            return _open_community(model, options)
        if provider == "openai":
            from rpms.models.openai_chat import PlainChatOpenAI

            return PlainChatOpenAI(model=model, **options)
        from langchain.chat_models import init_chat_model

        created: BaseChatModel = init_chat_model(model, model_provider=provider, **options)
        return created
    except ImportError as error:
        ours = provider == "anthropic" or (error.name or "").startswith("langchain_community")
        hint = f"pip install 'rpms[{provider}]'" if ours else str(error)
        raise RpmsError(f"provider '{provider}' is not installed: {hint}") from error
    except RpmsError:
        raise
    except Exception as error:  # each provider's client raises its own kinds
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise RpmsError(redact(f"cannot open model '{provider}:{model}': {first}")) from error


def _open_community(name: str, options: dict[str, Any]) -> BaseChatModel:
    """The chat model ``CLASS:NAME``, with as many of the options as its class takes.

    The only place that knows langchain-community. Upstream winds it down, so it is an optional
    extra and nothing imports it before a model of this kind is asked for.
    """
    kind, _, model = name.partition(":")
    if not kind or not model:
        raise RpmsError(
            f"unknown model 'community:{name}'; use community:CLASS:NAME, such as "
            "community:ChatDeepInfra:meta-llama/Meta-Llama-3.1-8B-Instruct"
        )
    cls = getattr(importlib.import_module("langchain_community.chat_models"), kind, None)
    if not (isinstance(cls, type) and issubclass(cls, BaseChatModel)):
        raise RpmsError(f"langchain-community has no chat model called '{kind}'")
    fields = {field.alias or name for name, field in cls.model_fields.items()}
    fields |= set(cls.model_fields)
    fitting: dict[str, Any] = {}
    for option, value in {"model": model, **options}.items():
        spelling = next((s for s in SPELLINGS.get(option, (option,)) if s in fields), None)
        if spelling:
            fitting[spelling] = value
        elif option in MUST_FIT:
            raise RpmsError(f"chat model '{kind}' takes no {option.replace('_', ' ')}")
    return cls(**fitting)


class Choice(NamedTuple):
    """A model, or a form that names of models have.

    Attributes:
        name: what to give as ``--model``.
        about: what answers.
        missing: what has to be done before it does; empty if nothing.
    """

    name: str
    about: str
    missing: str = ""


def choices() -> list[Choice]:
    """Every kind of model that a name can stand for, and what each still needs.

    Nothing is opened and nothing is sent: packages are looked for, not imported, and keys are
    only seen to be there.
    """
    ours = [Choice(name, label.partition(" (")[2].rstrip(")")) for name, label in LABELS.items()]
    own = Choice("MODULE:NAME", "a chat model of your own, by its import path")
    return [*ours, *_local_choices(), *_provider_choices(), own]


def _local_choices() -> list[Choice]:
    install = "run 'make local'"
    runtime = "" if find_spec(local.RUNTIME) else install
    small = "a very small model on this machine's processor"
    listed = [
        Choice(f"local:{name}", small, runtime or ("" if find_spec(module) else install))
        for name, module in local.SHIPPED.items()
    ]
    for name, weights in catalogue().items():
        needs = [runtime, "" if pulled(name) else f"run 'rpms models pull {name}'"]
        listed.append(Choice(f"local:{name}", weights.about, " and ".join(filter(None, needs))))
    return [*listed, Choice("local:FILE.gguf", "any GGUF file, on this machine", runtime)]


def _provider_choices() -> list[Choice]:
    modules = {**_known_providers(), "community": "langchain_community"}
    listed = []
    for provider in (*OURS, *sorted({*modules} - {*OURS})):
        package, needs = modules[provider].partition(".")[0], []
        if find_spec(package) is None:
            extra = provider in ("anthropic", "community")
            named = f"'rpms[{provider}]'" if extra else package.replace("_", "-")
            needs.append(f"pip install {named}")
        if (key := KEYS.get(provider)) and not os.environ.get(key):
            needs.append(f"set {key}{', or give --base-url' if provider == 'openai' else ''}")
        form = "CLASS:NAME" if provider == "community" else "NAME"
        about = OURS.get(provider, "")
        listed.append(Choice(f"{provider}:{form}", about, " and ".join(needs)))
    return listed
