"""Replies constrained to the format by a JSON schema.

The schema is built from action syntaxes such as ``take {object} from {place}``. It fixes the form
of a reply but not its names: a model can still name things that do not exist.

OpenAI, vLLM, llama.cpp and Ollama accept ``response_format: json_schema``. Some servers reject it
and some ignore it silently, so every constrained reply is checked. If a server does not keep to the
schema, its replies are left unconstrained, with one warning.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.vocabulary.safe_text import redact

log = logging.getLogger("rpms")
LONGEST_THOUGHT = 240
LONGEST_WORD = 20
LONGEST_NUMBER = 3
"""The limit stops a small model that repeats one digit."""
MOST_WORDS = 8
"""``metal pot containing water in kitchen`` has six."""
# Printable ASCII without the colon: no thought can look like an "Action:" label. The quotation
# mark, the backslash and square brackets, which would need escaping, are left out too.
_THOUGHT = "[ !#-9;-Z^-~]"
_LETTERS = f"[a-zA-Z]{{1,{LONGEST_WORD}}}"
_NUMBER = f"[0-9]{{1,{LONGEST_NUMBER}}}"
_BLANK = re.compile(r"\{\w+\}")
# Status codes of servers that do not accept the field. Transient errors (429, 503, a timeout) say
# nothing about the schema and are raised.
REJECTED = (400, 404, 415, 422, 500, 501)
Call = Callable[[dict[str, Any]], Awaitable[ChatResult]]


def reply_schema(syntaxes: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of a reply: ``{"thought": ..., "action": ...}``."""
    thought = f"^{_THOUGHT}{{0,{LONGEST_THOUGHT}}}$"
    return {
        "type": "object",
        "properties": {
            "thought": {"type": "string", "pattern": thought},
            "action": {"type": "string", "pattern": f"^({_actions(tuple(syntaxes))})$"},
        },
        "required": ["thought", "action"],
        "additionalProperties": False,
    }


def request_fields(syntaxes: Sequence[str]) -> dict[str, Any]:
    """Return the extra fields of a request that ask for the schema."""
    schema = {"name": "reply", "strict": True, "schema": reply_schema(syntaxes)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def fits(text: str, syntaxes: Sequence[str]) -> bool:
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return False
    action = reply.get("action") if isinstance(reply, Mapping) else None
    return isinstance(action, str) and bool(re.fullmatch(_actions(tuple(syntaxes)), action))


@lru_cache(maxsize=8)
def _actions(syntaxes: tuple[str, ...]) -> str:
    """Return one regular expression for all actions, in the subset that JSON schemas allow."""
    word = f"({_LETTERS}(-{_LETTERS})?|{_NUMBER})"
    name = f"{word}( {word}){{0,{MOST_WORDS - 1}}}"
    return "|".join(
        name.join(re.escape(part).replace("\\ ", " ") for part in _BLANK.split(syntax))
        for syntax in syntaxes
    )


@dataclass
class _Server:
    """The schema support of a server; ``proved`` after a reply has confirmed it."""

    takes_schema: bool = True
    proved: bool = False


_servers: dict[str, _Server] = {}
_lock = threading.Lock()


def constrain(model: BaseChatModel, syntaxes: Sequence[str], server: str = "") -> BaseChatModel:
    """Wrap a model so that its replies are constrained to actions; ``server`` names it in logs."""
    if isinstance(model, ConstrainedModel) or model._llm_type.startswith("rpms-"):
        return model
    fields = ("model_name", "model", "openai_api_base", "base_url")
    parts = [str(getattr(model, field, "") or "") for field in fields]
    server = server or " ".join(dict.fromkeys(filter(None, parts))) or f"model {id(model)}"
    return ConstrainedModel(inner=model, syntaxes=list(syntaxes), server=server, cache=model.cache)


def innermost(model: Any) -> Any:
    """Return the model of a provider inside of our wrapper."""
    return model.inner if isinstance(model, ConstrainedModel) else model


class ConstrainedModel(BaseChatModel):
    """A chat model that asks its server to constrain replies to the syntaxes.

    A single call may pass its own ``choices`` instead of the syntaxes.
    """

    inner: BaseChatModel
    syntaxes: list[str]
    server: str

    @property
    def _llm_type(self) -> str:
        return f"constrained-{self.inner._llm_type}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """The part of LangChain's cache key that belongs to the model."""
        return {"inner": self.inner.dict(), "syntaxes": self.syntaxes, "server": self.server}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: object = None,
        choices: Sequence[str] = (),
        **kwargs: Any,
    ) -> ChatResult:
        async def call(extra: dict[str, Any]) -> ChatResult:
            return self.inner._generate(messages, stop, None, **extra, **kwargs)

        coroutine = self._ask(choices or self.syntaxes, call)
        try:
            coroutine.send(None)  # it awaits nothing that suspends, so it runs to its end
        except StopIteration as end:
            result: ChatResult = end.value
            return result
        raise RuntimeError("a synchronous model call waited for an event loop")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: object = None,
        choices: Sequence[str] = (),
        **kwargs: Any,
    ) -> ChatResult:
        async def call(extra: dict[str, Any]) -> ChatResult:
            return await self.inner._agenerate(messages, stop, None, **extra, **kwargs)

        return await self._ask(choices or self.syntaxes, call)

    async def _ask(self, syntaxes: Sequence[str], call: Call) -> ChatResult:
        """Return a constrained reply, or a free one if the server does not support the schema."""
        with _lock:
            # Only clients of OpenAI's protocol can send extra fields.
            possible = "extra_body" in type(self.inner).model_fields
            server = _servers.setdefault(self.server, _Server(possible))
        if server.takes_schema:
            body = dict(getattr(self.inner, "extra_body", None) or {})
            try:
                result = await call({"extra_body": {**body, **request_fields(syntaxes)}})
            except Exception as error:  # each client raises its own kinds
                if server.proved or getattr(error, "status_code", None) not in REJECTED:
                    raise
            else:
                if fits(result.generations[0].text, syntaxes):
                    server.proved = True
                    return result
                if _cut_short(result):
                    return result  # incomplete, so it shows nothing about the server
            server.takes_schema = server.proved = False
        try:
            result = await call({})
        except Exception:
            if not server.proved:  # the schema was not the cause: try it again next time
                _servers.pop(self.server, None)
            raise
        with _lock:
            warned, server.proved = server.proved, True
        if not warned:
            log.warning(
                "rpms: %s does not keep to a JSON schema; replies are not constrained",
                redact(self.server),
            )
        return result


def _cut_short(result: ChatResult) -> bool:
    reply = result.generations[0]
    marks = (reply.generation_info or {}, reply.message.response_metadata)
    return any(mark.get("finish_reason") == "length" for mark in marks)
