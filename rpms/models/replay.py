"""A chat model that replays recorded actions, for whoever only needs an episode to happen.

It reads nothing: the first reply of an episode is the first action of the list, and so on. How
many replies the conversation holds already is all it asks of the prompt, so that one object can
play many episodes at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.models.answers import answer

NEW_TASK = "A new task begins."


class Replay(BaseChatModel):
    """``actions`` in their order, then ``after`` for ever."""

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
