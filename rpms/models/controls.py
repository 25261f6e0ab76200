"""``random``, ``first`` and ``last``: the controls that keep the guard honest.

They pick among the actions that the prompt offers and know nothing else. What a model adds under
the same guard is what it wins beyond them: ``random`` is the fair comparison, ``first`` the
procedure by itself, and ``last`` about the worst reader there can be.
"""

from __future__ import annotations

import random
import re
from hashlib import sha256
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.models.answers import answer

Policy = Literal["random", "first", "last"]
LABELS: dict[str, str] = {
    "random": "random (uniform choice from the shortlist, not a language model)",
    "first": "first (always the first of the shortlist, not a language model)",
    "last": "last (always the last of the shortlist, not a language model)",
}

_BLOCK = re.compile(r"\[Actions That Serve the Current Sub-Goal\]\n((?:  \d+\. .+\n?)+)")
_LINE = re.compile(r"^  \d+\. (.+?) \(.*\)$", re.M)


class ShortlistChoice(BaseChatModel):
    """Deterministic: the same messages and the same seed always get the same choice."""

    policy: Policy = "random"
    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return f"rpms-{self.policy}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.policy, "seed": self.seed}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        offered = offers(str(messages[-1].text) if messages else "")
        chosen = self._choose(offered, messages) if offered else "look around"
        return answer(f"Action: {chosen}", messages, self.policy)

    def _choose(self, offered: list[str], messages: list[BaseMessage]) -> str:
        if self.policy == "random":
            return random.Random(f"{self.seed}|{_trace(messages)}").choice(offered)
        return offered[0 if self.policy == "first" else -1]


def offers(text: str) -> list[str]:
    """The actions that a prompt offers, in its order."""
    block = _BLOCK.search(text)
    return _LINE.findall(block[1]) if block else []


def _trace(messages: list[BaseMessage]) -> str:
    """The whole conversation, so that the same situation later on is another draw."""
    return sha256("\n".join(str(message.text) for message in messages).encode()).hexdigest()
