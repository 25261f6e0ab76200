"""Let the run's model write the texts of a memory; load the prompts for that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment as Jinja
from jinja2 import FileSystemLoader, StrictUndefined
from langchain_core.messages.ai import UsageMetadata

from rpms.models.chat import call_s, open_chat
from rpms.models.opening import LABELS
from rpms.models.replies import REPLAYED, fault_line, normalize_reply
from rpms.models.retrying import retried
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import ModelFault, RpmsError
from rpms.vocabulary.turn import Message

T = TypeVar("T")
PROMPTS = Path(__file__).parent / "prompts"
WRITTEN_TOKENS = 1024
"""Tokens for a text; the environment's reply length is made for one action."""
LONGEST = 2000
"""Characters kept of one text, because the prompt shares its token budget."""


def can_write(model: str) -> bool:
    """Return False for the built-in planner and controls, which are not language models."""
    return model not in LABELS


def require_writer(model: str, method: str) -> None:
    if not can_write(model):
        raise RpmsError(
            f"memory method '{method}' has its texts written by a model, and '{model}' writes "
            "none; give --model PROVIDER:NAME"
        )


class Writer:
    """The model that writes a method's texts; counts its calls and tokens."""

    def __init__(self, env: str, context: RunContext, method: str) -> None:
        """Open the model; nothing is sent yet."""
        require_writer(context.model, method)
        self._tokens = max(context.max_tokens, WRITTEN_TOKENS)
        free = context.with_(max_tokens=self._tokens, constrain="off", guard="off")
        self.chat = open_chat(env, free)
        self._call_s = call_s(context)
        self.replies = 0
        self.spent = {"model_calls": 0, "prompt_tokens": 0, "output_tokens": 0}

    async def __call__(self, messages: list[Message]) -> str:
        """Return one reply; errors are retried like those of the agent's calls."""
        prompt: Any = messages  # LangChain takes them as plain data
        message = await self.run(lambda: self.chat.ainvoke(prompt))
        reply = normalize_reply(message, self._tokens)
        if not reply.response_metadata.get(REPLAYED):
            self.count(reply.usage_metadata)
        return reply.text

    def count(self, usage: UsageMetadata | None) -> None:
        self.spent["model_calls"] += 1
        if usage:
            self.spent["prompt_tokens"] += usage["input_tokens"]
            self.spent["output_tokens"] += usage["output_tokens"]

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a call of ``chat``, such as a library's chain on it; errors are retried."""
        try:
            result = await retried(call, self._call_s)
        except Exception as error:  # every client raises its own kinds
            raise ModelFault(fault_line(error)) from error
        self.replies += 1
        return result


def writing_prompt(template: str, **values: object) -> list[Message]:
    text = _templates().get_template(template).render(values).strip()
    return [Message(role="user", content=text)]


@cache
def _templates() -> Jinja:
    return Jinja(
        loader=FileSystemLoader(PROMPTS), trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined, autoescape=False, auto_reload=False,
    )  # fmt: skip


def tidy(text: str) -> str:
    """Shorten a text to ``LONGEST`` and remove empty lines, which would end a block."""
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(line for line in lines if line.strip())[:LONGEST].rstrip()
