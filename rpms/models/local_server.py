"""The llama.cpp server inside this process: started once per model, shared with workers.

Worker processes of one run inherit the address of a model that their parent has loaded, so a
run with many workers holds the weights once and queues its requests in one place.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import secrets
import sys
import threading
from typing import Any, NamedTuple

from rpms.vocabulary.errors import RpmsError

SHARED = "RPMS_LOCAL_SERVERS"
"""Addresses of loaded models, for child processes only; nobody is meant to set it."""
PREFIX_CACHE_MB = 1024
"""Prompts of episodes that take turns are kept here, so that each finds its own prefix again."""
PROBE_S = 5.0


class LocalModel(NamedTuple):
    """What is loaded: the same weights with another context or adapter are another model."""

    file: str
    context: int
    threads: int
    lora: str = ""


class Address(NamedTuple):
    """Where a loaded model answers; the key keeps other users of the machine out."""

    url: str
    key: str


_lock = threading.Lock()
_running: dict[LocalModel, tuple[Any, Address]] = {}


def cores() -> int:
    """Processor cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve_model(model: LocalModel) -> Address:
    """The address of a model: running here, running in a parent process, or started now."""
    with _lock:  # two episodes that begin together must not load it twice
        if model in _running:
            return _running[model][1]
        inherited = _inherited(model)
        if inherited:
            return inherited
        server, address = _start(model)
        _running[model] = server, address
        _share(model, address)
        return address


def stop_all() -> None:
    """Free every model of this process; the next call loads it again."""
    with _lock:
        _running.clear()
        os.environ.pop(SHARED, None)


def _start(model: LocalModel) -> tuple[Any, Address]:
    # Threads that spin while they wait lose most of their time on a busy machine (measured: a
    # reply took 3 to 8 times as long). OpenMP reads this once, when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    runtime = importlib.import_module("xllamacpp")
    key = secrets.token_hex(16)
    params = runtime.CommonParams()
    params.model.path = model.file
    params.n_ctx = model.context
    params.n_parallel = 1  # requests queue; batches of one keep replies reproducible
    params.cpuparams.n_threads = model.threads
    params.cpuparams_batch.n_threads = model.threads
    if model.lora:
        params.lora_adapters = [runtime.CommonAdapterLoraInfo(model.lora, 1.0)]
    params.sampling.temp = 0.0
    params.cache_prompt = True
    params.cache_ram_mib = PREFIX_CACHE_MB
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [key]
    params.ui = False
    params.endpoint_slots = False
    params.warmup = False
    params.verbosity = 0
    try:
        server = runtime.Server(params)
    except Exception as error:  # the native loader gives no reason worth passing on
        raise RpmsError(
            f"llama.cpp cannot load {model.file}: the file is incomplete, or too large for the "
            "memory here, or of a kind that this version does not know"
        ) from error
    return server, Address(str(server.listening_address), key)


def _share(model: LocalModel, address: Address) -> None:
    known = _shared()
    known[_name(model)] = list(address)
    os.environ[SHARED] = json.dumps(known)


def _inherited(model: LocalModel) -> Address | None:
    """A parent's server, if it still answers."""
    found = _shared().get(_name(model))
    if not found:
        return None
    import httpx

    address = Address(*found)
    try:
        with httpx.Client(trust_env=False, timeout=PROBE_S) as client:
            answer = client.get(f"{address.url}/health")
    except httpx.HTTPError:
        return None
    return address if answer.status_code == 200 else None


def _shared() -> dict[str, list[str]]:
    try:
        return dict(json.loads(os.environ.get(SHARED, "{}")))
    except ValueError:
        return {}


def _name(model: LocalModel) -> str:
    return "|".join(map(str, model))


# Native threads must end before the interpreter takes their memory away.
atexit.register(stop_all)
