"""``sim``: a planner that stands in for a language model where none can be had.

It is a LangChain chat model like any other and sees nothing but the prompt's messages. It
plays a forgetful beginner: common-sense habits, a short attention span, and whatever knowledge
blocks the prompt brings. It exists so that the demo and the tests exercise the whole pipeline
without a key or a download; its results are planner results and are always labelled so.
"""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult

from rpms.models.sim.household import decide
from rpms.models.sim.reading import read_prompt
from rpms.models.sim.science import decide_science
from rpms.models.sim.science_reading import is_science, read_science

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

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        read = [(message.type, str(message.text)) for message in messages]
        if is_science(read):
            thought, action = decide_science(read_science(read, self.whim))
        else:
            thought, action = decide(read_prompt(read), self.whim)
        return answer(f"Thought: {thought}\nAction: {action}", messages, "sim")


def answer(text: str, messages: list[BaseMessage], model: str) -> ChatResult:
    """A reply as a provider would give it, with token counts that are estimated."""
    spent, written = count_tokens_approximately(messages), len(text) // 4
    usage = UsageMetadata(input_tokens=spent, output_tokens=written, total_tokens=spent + written)
    reply = AIMessage(text, usage_metadata=usage, response_metadata={"model_name": model})
    return ChatResult(generations=[ChatGeneration(message=reply)])
