"""Holding replies to the format, on whatever kind of server is at the other end.

Servers take different forms of one constraint, and some accept a field they do not know without
a word. So the forms are tried in order, a reply counts only if it keeps to the format, and what
worked is remembered for the model and address. Where nothing works the replies stay free, and
one warning says so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.models.grammar import fits, reply_gbnf, reply_schema
from rpms.vocabulary.secrets import redact

log = logging.getLogger("rpms")
# How servers say that they do not take a field, or choke on it. A fault that passes (429, 503,
# a timeout) says nothing about the form and goes to the caller as it is.
REFUSALS = (400, 404, 415, 422, 500, 501)
FREE = "free"
Outcome = ChatResult | Exception


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
class _Known:
    """What is known about one server: the form in use, and whether it has proved itself."""

    left: list[str]
    proved: bool = False


_known: dict[str, _Known] = {}
_lock = threading.Lock()


def forget() -> None:
    """Try every form anew with every server."""
    with _lock:
        _known.clear()


def hold(model: BaseChatModel, syntaxes: Sequence[str], server: str = "") -> BaseChatModel:
    """The same model with its replies held to these actions; ``server`` is what to call it."""
    if isinstance(model, HeldModel) or model._llm_type.startswith("rpms-"):
        return model
    return HeldModel(inner=model, syntaxes=list(syntaxes), server=server or _name(model))


class HeldModel(BaseChatModel):
    """A chat model whose requests carry the constraint in the form its server takes.

    A single call may be held to ``choices`` of its own instead of the syntaxes.
    """

    inner: BaseChatModel
    syntaxes: list[str]
    server: str

    @property
    def _llm_type(self) -> str:
        return f"held-{self.inner._llm_type}"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        choices: Sequence[str] = (),
        **kwargs: Any,
    ) -> ChatResult:
        steps = self._steps(choices or self.syntaxes)
        extra = next(steps)
        while True:
            try:
                outcome: Outcome = self.inner._generate(messages, stop, None, **extra, **kwargs)
            except Exception as error:  # each client raises its own kinds
                outcome = error
            try:
                extra = steps.send(outcome)
            except StopIteration as end:
                return _result(end.value)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        choices: Sequence[str] = (),
        **kwargs: Any,
    ) -> ChatResult:
        steps = self._steps(choices or self.syntaxes)
        extra = next(steps)
        while True:
            try:
                outcome: Outcome = await self.inner._agenerate(
                    messages, stop, None, **extra, **kwargs
                )
            except Exception as error:
                outcome = error
            try:
                extra = steps.send(outcome)
            except StopIteration as end:
                return _result(end.value)

    def _steps(self, syntaxes: Sequence[str]) -> Generator[dict[str, Any], Outcome, Outcome]:
        """Yield the extra arguments of each attempt, get its outcome, return the last one.

        One description of the search serves the synchronous and the asynchronous call.
        """
        forms = request_forms(syntaxes)
        known = self._remembered(list(forms))
        while known.left[0] != FREE:
            form = known.left[0]
            outcome = yield {"extra_body": {**self._own_body(), **forms[form]}}
            if isinstance(outcome, Exception):
                if known.proved or getattr(outcome, "status_code", None) not in REFUSALS:
                    return outcome
            elif fits(outcome.generations[0].text, syntaxes):
                known.proved = True
                return outcome
            elif _cut_short(outcome):
                return outcome  # too little of it to judge by
            else:
                known.proved = False  # taken without a word, and ignored
            with _lock:  # another episode may have found out the same meanwhile
                if known.left[0] == form:
                    known.left.pop(0)
        outcome = yield {}
        self._give_up(known, outcome)
        return outcome

    def _remembered(self, forms: list[str]) -> _Known:
        with _lock:
            # Only clients of OpenAI's protocol can carry a field of the server's own.
            possible = forms if "extra_body" in type(self.inner).model_fields else []
            return _known.setdefault(self.server, _Known([*possible, FREE]))

    def _give_up(self, known: _Known, outcome: Outcome) -> None:
        """Say once that replies are free; a server that fails anyway is to be asked again."""
        with _lock:
            if known.proved:
                return
            if isinstance(outcome, Exception):
                _known.pop(self.server, None)
                return
            known.proved = True
        log.warning(
            "rpms: %s takes neither a grammar nor a JSON schema; replies are not constrained",
            redact(self.server),
        )

    def _own_body(self) -> dict[str, Any]:
        return dict(getattr(self.inner, "extra_body", None) or {})


def form_in_use(server: str) -> str:
    """The form that has proved itself, ``free`` where none did, empty while that is open."""
    known = _known.get(server)
    return known.left[0] if known and known.proved else ""


def _cut_short(result: ChatResult) -> bool:
    info = result.generations[0].generation_info or {}
    told = result.generations[0].message.response_metadata
    return "length" in (info.get("finish_reason"), told.get("finish_reason"))


def _result(outcome: Outcome) -> ChatResult:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _name(model: BaseChatModel) -> str:
    """What tells one model object's server from another's."""
    parts = [
        str(getattr(model, field, "") or "")
        for field in ("model_name", "model", "openai_api_base", "base_url")
    ]
    return " ".join(dict.fromkeys(part for part in parts if part)) or f"model {id(model)}"
