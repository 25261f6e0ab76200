"""``sim``: a small planner that stands in for a language model where none can be had.

A LangChain chat model like any other, it sees nothing but the prompt's messages, as text, and
knows no world and no rule. It exists so that the demo and the tests exercise the whole pipeline
without a key or a download; its results are planner results, labelled so.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.models.answers import answer
from rpms.models.sim.planner import Planner
from rpms.models.sim.reader import Prompt

LABEL = "sim (built-in planner, not a language model)"


class SimPlanner(BaseChatModel):
    """Deterministic: the same messages (and the same ``whim``) always get the same reply."""

    whim: int = 0

    @property
    def _llm_type(self) -> str:
        return "rpms-sim"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "sim", "whim": self.whim}

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        prompt = Prompt([(message.type, str(message.text)) for message in messages])
        thought, action = Planner(prompt, self.whim).decide()
        return answer(f"Thought: {thought}\nAction: {action}", messages, "sim")
