"""Identify the weights behind a model's name by the server's model list.

Name and address are not enough: a model that is tuned again keeps both. The entry of
``GET {base_url}/models`` says more, but each kind of server fills it differently:

- ``created`` is the time when the model was made (OpenAI, Ollama). It is part of the identity.
- In vLLM, SGLang and llama.cpp ``created`` is the time of the request, and vLLM sends a new
  ``permission`` id each time. Both are left out.
- ``root`` and ``parent`` (vLLM, SGLang) and ``meta`` (llama.cpp) survive a restart of the server
  and are part of the identity. But a folder can be overwritten, and another tuning of the same
  model has the same size. If ``root`` or ``id`` is a path on this machine, the dates and sizes of
  its files are added; otherwise a doubt remains, which is reported.
- All other fields are part of the identity. A field that changes at every start costs new calls,
  which is better than replies of another model.
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
"""The time limit of the request for the model list."""
# Servers whose ``created`` is the time of the request.
DATES_REQUESTS = ("vllm", "sglang", "llamacpp")
# Fields that change from request to request, or while a model is loaded.
TRANSIENT = ("permission", "status", "state")
# Fields that differ between any two models, even between two tunings of one.
DISTINGUISHING = ("created", "digest", "sha256", "sha", "revision")
SAME_TIME_S = 5
RETRY_STATUS = (408, 409, 425, 429)
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1", "0.0.0.0")
WEIGHT_FILES = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".json")

Stamp = tuple[str, int, int]


class WeightsId(NamedTuple):
    """The identity of the weights behind a name.

    Attributes:
        fields: part of the key of cached replies; empty if nothing is known.
        doubt: why other weights could have the same fields; empty if they cannot.
    """

    fields: dict[str, Any]
    doubt: str = ""


NO_LIST = WeightsId({}, "has no list of models")
"""For servers without a list, and for providers whose list is not read."""


def ask_server(client: OpenAI, model: str) -> WeightsId | None:
    """Read the entry of a model in the server's list; None while the server does not answer."""
    import openai

    try:
        quick_client = client.with_options(timeout=ASK_S, max_retries=0)
        reply = quick_client.models.with_raw_response.list().http_response
        entries = _entries(reply.json())
    except openai.APIConnectionError:  # a timeout too
        return None
    except openai.APIStatusError as error:
        busy = error.status_code >= 500 or error.status_code in RETRY_STATUS
        return None if busy and error.status_code != 501 else NO_LIST
    except (openai.OpenAIError, ValueError):  # an answer, but no JSON
        return NO_LIST
    return identify(entries, model, _time_of(reply.headers), client.base_url.host in LOCAL_HOSTS)


def identify(
    entries: Sequence[Mapping[str, Any]], model: str, server_time: float, on_this_machine: bool
) -> WeightsId:
    """Identify a model by its entry in a server's list."""
    entries_by_id = {str(entry.get("id")): entry for entry in entries}
    # A server with a single model serves it under any name.
    entry = entries_by_id.get(model) or (entries[0] if len(entries) == 1 else None)
    if entry is None:
        return NO_LIST if not entries else WeightsId({}, f"does not list '{model}'")
    base = entries_by_id.get(str(entry.get("parent")), {})
    lasting = _lasting(entry, server_time)
    fields: dict[str, Any] = {"entry": lasting, "parent": _lasting(base, server_time)}
    path = str(entry.get("root") or entry.get("path") or entry.get("id") or "")
    if on_this_machine and (files := stamps(path)):
        fields["files"] = [*files, *stamps(str(base.get("root") or ""))]
    elif not any(lasting.get(name) for name in DISTINGUISHING):
        return WeightsId(fields, f"names its weights only as '{path}'")
    return WeightsId(fields)


def stamps(path: str) -> list[Stamp]:
    """Return date and size of a file, or of the weights in a folder, on this machine."""
    if not path:
        return []
    if is_folder(path):
        found = sorted(file for file in Path(path).iterdir() if file.suffix in WEIGHT_FILES)
        # A folder with nothing but JSON files holds no weights.
        files = found if any(file.suffix != ".json" for file in found) else []
    else:
        files = [Path(path)] if is_file(path) else []
    stamped = [(file.name, *stamp_of(file)) for file in files]
    return [stamp for stamp in stamped if stamp[1:] != NOT_THERE]


def _entries(body: Any) -> list[Mapping[str, Any]]:
    data = body.get("data") if isinstance(body, Mapping) else body
    return [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []


def _lasting(entry: Mapping[str, Any], server_time: float) -> dict[str, Any]:
    """Return the fields that stay the same as long as the weights do."""
    kept = {name: value for name, value in entry.items() if name not in TRANSIENT}
    created = kept.get("created")
    stamped = isinstance(created, int | float) and abs(created - server_time) <= SAME_TIME_S
    if stamped or kept.get("owned_by") in DATES_REQUESTS:
        kept.pop("created", None)
    return kept


def _time_of(headers: Mapping[str, str]) -> float:
    """Return the server's time, or ours if it does not send it."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return time.time()
