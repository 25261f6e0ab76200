"""Which weights answer under a model's name, as far as the server's model list tells.

A name and an address are not enough: a model that was tuned again is served under the name and
the address of the one before. The entry of ``GET {base_url}/models`` says more, but each kind of
server fills it in its own way:

- OpenAI and Ollama give the time when the model was made as ``created``. It is kept.
- vLLM, SGLang and llama.cpp give the time of the request as ``created``, and vLLM also a new
  ``permission`` id each time. Both say nothing about the weights and are left out.
- ``root`` and ``parent`` (vLLM, SGLang) and ``meta`` (llama.cpp) stay the same when the server is
  started anew, and are kept. But a folder can be written over, and another tuning of the same
  model has the same size. Where ``root`` or ``id`` is a path on this machine, the dates and sizes
  of its files are kept too; elsewhere a doubt remains, which is said.
- Everything else is kept. A field that changes at every start costs new calls, which is the
  cheaper mistake: another model's replies would be a wrong result.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rpms.vocabulary.files import NOT_THERE, is_file, is_folder, stamp_of

if TYPE_CHECKING:
    from openai import OpenAI

ASK_S = 5.0
"""How long a server may take for its model list."""
# Servers whose ``created`` is the time of the request.
DATES_REQUESTS = ("vllm", "sglang", "llamacpp")
# What changes from request to request, or while a model is being loaded.
PASSING = ("permission", "status", "state")
# What differs between any two models, even between two tunings of one.
TELLING = ("created", "digest", "sha256", "sha", "revision")
SAME_TIME_S = 5
LATER = (408, 409, 425, 429)
HERE = ("127.0.0.1", "localhost", "::1", "0.0.0.0")
WEIGHT_FILES = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".json")

Stamp = tuple[str, int, int]


class WeightsId(NamedTuple):
    """What is known about the weights behind a name.

    Attributes:
        fields: goes into the key of cached replies; empty where nothing is known.
        doubt: why other weights could have the same fields; empty where they cannot.
    """

    fields: dict[str, Any]
    doubt: str = ""


NO_LIST = WeightsId({}, "has no list of models")
"""Of a server, or of a provider whose list is not read here."""


def ask_server(client: OpenAI, model: str) -> WeightsId | None:
    """Read the entry of a model in the server's list; None while the server does not answer."""
    import openai

    try:
        hasty = client.with_options(timeout=ASK_S, max_retries=0)
        reply = hasty.models.with_raw_response.list().http_response
        entries = _entries(reply.json())
    except openai.APIConnectionError:  # a timeout too
        return None
    except openai.APIStatusError as error:
        busy = error.status_code >= 500 or error.status_code in LATER
        return None if busy and error.status_code != 501 else NO_LIST
    except (openai.OpenAIError, ValueError):  # an answer, but no JSON
        return NO_LIST
    return identify(entries, model, _time_of(reply.headers), client.base_url.host in HERE)


def identify(
    entries: Sequence[Mapping[str, Any]], model: str, now: float, on_this_machine: bool
) -> WeightsId:
    """What a list of models says about one of them; ``now`` is the server's time."""
    known = {str(entry.get("id")): entry for entry in entries}
    # A server of one model answers for it whatever name it is asked by.
    entry = known.get(model) or (entries[0] if len(entries) == 1 else None)
    if entry is None:
        return NO_LIST if not entries else WeightsId({}, f"does not list '{model}'")
    base = known.get(str(entry.get("parent")), {})
    told = _lasting(entry, now)
    fields: dict[str, Any] = {"entry": told, "parent": _lasting(base, now)}
    path = str(entry.get("root") or entry.get("path") or entry.get("id") or "")
    if on_this_machine and (files := stamps(path)):
        fields["files"] = [*files, *stamps(str(base.get("root") or ""))]
    elif not any(told.get(name) for name in TELLING):
        return WeightsId(fields, f"names its weights only as '{path}'")
    return WeightsId(fields)


def stamps(path: str) -> list[Stamp]:
    """Date and size of a file, or of the weights in a folder; none where they are not here."""
    if not path:
        return []
    if is_folder(path):
        found = sorted(file for file in Path(path).iterdir() if file.suffix in WEIGHT_FILES)
        # Settings alone are no weights: the folder is something else.
        files = found if any(file.suffix != ".json" for file in found) else []
    else:
        files = [Path(path)] if is_file(path) else []
    dated = [(file.name, *stamp_of(file)) for file in files]
    return [stamp for stamp in dated if stamp[1:] != NOT_THERE]


def _entries(body: Any) -> list[Mapping[str, Any]]:
    data = body.get("data") if isinstance(body, Mapping) else body
    return [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []


def _lasting(entry: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The fields that are the same whenever the same weights are asked for."""
    kept = {name: value for name, value in entry.items() if name not in PASSING}
    created = kept.get("created")
    dated = isinstance(created, int | float) and abs(created - now) <= SAME_TIME_S
    if dated or kept.get("owned_by") in DATES_REQUESTS:
        kept.pop("created", None)
    return kept


def _time_of(headers: Mapping[str, str]) -> float:
    """When the server answered, by its own clock where it says so."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return time.time()
