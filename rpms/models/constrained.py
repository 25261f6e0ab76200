"""Replies constrained to the format, on whatever kind of server is at the other end.

The format is built from action syntaxes such as ``take {object} from {place}``, which are data:
this file knows no world. It fixes the form of a reply, never which thing is named in it; a model
can still name what is not there, and that is the agent's mistake to make.

Servers take different forms of one constraint, and some accept a field they do not know without
a word. So the forms are tried in order, a reply counts only if it keeps to the format, and what
worked is remembered for the model and address. Where nothing works the replies stay free, and
one warning says so.
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
"""A small model that falls into repeating one digit must come to an end."""
MOST_WORDS = 8
"""``metal pot containing water in kitchen`` has six."""
# Printable ASCII without the colon: no thought can look like an "Action:" label. Without the
# quotation mark, the backslash and square brackets no form of it needs escaping.
_THOUGHT = "[ !#-9;-Z^-~]"
_LETTERS = f"[a-zA-Z]{{1,{LONGEST_WORD}}}"
_NUMBER = f"[0-9]{{1,{LONGEST_NUMBER}}}"
_BLANK = re.compile(r"\{\w+\}")
# How servers say that they do not take a field, or choke on it. A fault that passes (429, 503,
# a timeout) says nothing about the form and goes to the caller as it is.
REFUSALS = (400, 404, 415, 422, 500, 501)
FREE = "free"
Call = Callable[[dict[str, Any]], Awaitable[ChatResult]]


def reply_gbnf(syntaxes: Sequence[str]) -> str:
    """A GBNF grammar (llama.cpp, vLLM): an optional thought, then one action."""
    actions = " |\n  ".join(map(_gbnf_action, syntaxes))
    return "\n".join(
        (
            'root ::= ("Thought: " thought "\\n")? "Action: " action',
            f"thought ::= {_THOUGHT}{{1,{LONGEST_THOUGHT}}}",
            f"action ::= {actions}",
            f'name ::= word (" " word){{0,{MOST_WORDS - 1}}}',
            f'word ::= {_LETTERS} ("-" {_LETTERS})? | {_NUMBER}',
            "",
        )
    )


def _gbnf_action(syntax: str) -> str:
    first, *rest = (json.dumps(part) if part else "" for part in _BLANK.split(syntax))
    parts = [first, *(part for fixed in rest for part in ("name", fixed))]
    return " ".join(filter(None, parts))


def reply_schema(syntaxes: Sequence[str]) -> dict[str, Any]:
    """The same for servers that take a JSON schema: ``{"thought": ..., "action": ...}``."""
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


def fits(text: str, syntaxes: Sequence[str]) -> bool:
    """Whether a reply keeps to the format, in words or as JSON."""
    actions = _actions(tuple(syntaxes))
    thought = f"(?:Thought: {_THOUGHT}{{1,{LONGEST_THOUGHT}}}\n)?"
    if re.fullmatch(f"{thought}Action: (?:{actions})", text.strip()):
        return True
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return False
    action = reply.get("action") if isinstance(reply, Mapping) else None
    return isinstance(action, str) and bool(re.fullmatch(actions, action))


@lru_cache(maxsize=8)
def _actions(syntaxes: tuple[str, ...]) -> str:
    """All actions as one regular expression, in the subset that JSON schemas may use."""
    word = f"({_LETTERS}(-{_LETTERS})?|{_NUMBER})"
    name = f"{word}( {word}){{0,{MOST_WORDS - 1}}}"
    return "|".join(
        name.join(re.escape(part).replace("\\ ", " ") for part in _BLANK.split(syntax))
        for syntax in syntaxes
    )


def request_forms(syntaxes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The extra fields of a request in each form, most exact first."""
    gbnf, schema = reply_gbnf(syntaxes), reply_schema(syntaxes)
    named = {"name": "reply", "strict": True, "schema": schema}
    return {
        # llama.cpp and llama-cpp-python; vLLM since 0.12; vLLM before.
        "grammar": {
            "grammar": gbnf,
            "structured_outputs": {"grammar": gbnf},
            "guided_grammar": gbnf,
        },
        # OpenAI, vLLM, llama.cpp, Ollama.
        "json_schema": {"response_format": {"type": "json_schema", "json_schema": named}},
        # llama-cpp-python, Together, Fireworks.
        "json_object": {"response_format": {"type": "json_object", "schema": schema}},
    }


@dataclass
class _Server:
    """What is known about one server: the forms left to try, and whether the first has proved."""

    forms: list[str]
    proved: bool = False


_servers: dict[str, _Server] = {}
_lock = threading.Lock()


def constrain(model: BaseChatModel, syntaxes: Sequence[str], server: str = "") -> BaseChatModel:
    """The same model with its replies constrained to actions; ``server`` is what to call it."""
    if isinstance(model, ConstrainedModel) or model._llm_type.startswith("rpms-"):
        return model
    fields = ("model_name", "model", "openai_api_base", "base_url")
    parts = [str(getattr(model, field, "") or "") for field in fields]
    server = server or " ".join(dict.fromkeys(filter(None, parts))) or f"model {id(model)}"
    return ConstrainedModel(inner=model, syntaxes=list(syntaxes), server=server)


class ConstrainedModel(BaseChatModel):
    """A chat model whose requests carry the constraint in the form its server takes.

    A single call may be constrained to ``choices`` of its own instead of the syntaxes.
    """

    inner: BaseChatModel
    syntaxes: list[str]
    server: str

    @property
    def _llm_type(self) -> str:
        return f"constrained-{self.inner._llm_type}"

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

        search = self._search(choices or self.syntaxes, call)
        try:
            search.send(None)  # nothing in it waits, so it runs to its end
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

        return await self._search(choices or self.syntaxes, call)

    async def _search(self, syntaxes: Sequence[str], call: Call) -> ChatResult:
        """The reply in the first form that the server takes."""
        forms = request_forms(syntaxes)
        body = dict(getattr(self.inner, "extra_body", None) or {})
        with _lock:
            # Only clients of OpenAI's protocol can carry a field of the server's own.
            possible = forms if "extra_body" in type(self.inner).model_fields else ()
            server = _servers.setdefault(self.server, _Server([*possible, FREE]))
        while (form := server.forms[0]) != FREE:
            try:
                result = await call({"extra_body": {**body, **forms[form]}})
            except Exception as error:  # each client raises its own kinds
                if server.proved or getattr(error, "status_code", None) not in REFUSALS:
                    raise
            else:
                if fits(result.generations[0].text, syntaxes):
                    server.proved = True
                    return result
                if _cut_short(result):
                    return result  # too little of it to judge by
                server.proved = False  # taken without a word, and ignored
            with _lock:  # another episode may have found out the same meanwhile
                if server.forms[0] == form:
                    server.forms.pop(0)
        try:
            result = await call({})
        except Exception:
            if not server.proved:  # it fails anyway, and is to be asked anew
                _servers.pop(self.server, None)
            raise
        with _lock:
            warned, server.proved = server.proved, True
        if not warned:
            log.warning(
                "rpms: %s takes neither a grammar nor a JSON schema; replies are not constrained",
                redact(self.server),
            )
        return result


def _cut_short(result: ChatResult) -> bool:
    reply = result.generations[0]
    marks = (reply.generation_info or {}, reply.message.response_metadata)
    return any(mark.get("finish_reason") == "length" for mark in marks)
