"""``random``: the control that keeps the guard honest.

It picks uniformly among the actions that the prompt offers and knows nothing else. What a model
adds under the same guard is what it wins beyond this.
"""

from __future__ import annotations

import random
import re
from hashlib import sha256
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from models.sim import answer

LABEL = "random (uniform choice from the shortlist, not a language model)"

_BLOCK = re.compile(r"\[Actions That Serve the Current Sub-Goal\]\n((?:  \d+\. .+\n?)+)")
_LINE = re.compile(r"^  \d+\. (.+?) \(.*\)$", re.M)


class RandomChoice(BaseChatModel):
    """Deterministic: the same messages and the same seed always get the same choice."""

    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "rpms-random"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "random", "seed": self.seed}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        last = str(messages[-1].text) if messages else ""
        text = f"Action: {choose(last, f'{self.seed}|{_trace(messages)}')}"
        return answer(text, messages, "random")


def choose(text: str, seed: str) -> str:
    """One of the offered actions; without an offer, a look around."""
    block = _BLOCK.search(text)
    offered = _LINE.findall(block[1]) if block else []
    return random.Random(seed).choice(offered) if offered else "look around"


def _trace(messages: list[BaseMessage]) -> str:
    """The whole conversation, so that the same situation later on is another draw."""
    return sha256("\n".join(str(message.text) for message in messages).encode()).hexdigest()
