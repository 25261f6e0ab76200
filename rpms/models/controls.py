"""Chat models that are not language models: ``random``, ``first``, ``last``, and ``Replay``.

The first three are controls for the guard. They pick among the actions that the prompt offers and
know nothing else. A model's own contribution under the same guard is its success beyond theirs:
``random`` is the fair baseline, ``first`` is the procedure by itself, and ``last`` is close to the
worst choice. ``Replay`` executes a fixed list of actions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.models.replies import answer

NEW_TASK = "A new task begins."
"""The text between a prompt's example and its task."""
_BLOCK = re.compile(r"\[Actions That Serve the Current Sub-Goal\]\n((?:  \d+\. .+\n?)+)")
_LINE = re.compile(r"^  \d+\. (.+?) \(.*\)$", re.M)


class ShortlistChoice(BaseChatModel):
    """Picks an action of the shortlist; the same messages and seed give the same choice."""

    picks: Literal["random", "first", "last"] = "random"
    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return f"rpms-{self.picks}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.picks, "seed": self.seed}

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        block = _BLOCK.search(str(messages[-1].text) if messages else "")
        offered: list[str] = _LINE.findall(block[1]) if block else ["look around"]
        if self.picks == "random":
            # The whole conversation is hashed, so the same situation later is another draw.
            talk = sha256("\n".join(str(message.text) for message in messages).encode())
            chosen = random.Random(f"{self.seed}|{talk.hexdigest()}").choice(offered)
        else:
            chosen = offered[0 if self.picks == "first" else -1]
        return answer(f"Action: {chosen}", messages, self.picks)


class Replay(BaseChatModel):
    """Replies with ``actions`` in order, then always with ``after``.

    It only counts the replies in the conversation, so one object can run many episodes at once.
    """

    actions: Sequence[str]
    after: str = "look"

    @property
    def _llm_type(self) -> str:
        return "rpms-replay"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "replay", "actions": list(self.actions)}

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        start = max((i for i, m in enumerate(messages) if NEW_TASK in str(m.text)), default=0)
        done = sum(message.type == "ai" for message in messages[start:])
        action = self.actions[done] if done < len(self.actions) else self.after
        return answer(f"Action: {action}", messages, "replay")
