"""A custom chat model: any LangChain chat model, returned by an importable function.

This one goes to random places. Run it from anywhere:
``python examples/variants/own_model.py``.
"""

import re
from random import Random
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import rpms


class Wanderer(BaseChatModel):
    """Goes to a random place from the conversation."""

    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "wanderer"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        text = "\n".join(str(message.content) for message in messages)
        places = sorted(set(re.findall(r"\b[a-z]+ \d+\b", text)))
        place = Random(f"{self.seed} {len(messages)}").choice(places)
        reply = AIMessage(f"Thought: I have not been everywhere.\nAction: go to {place}")
        return ChatResult(generations=[ChatGeneration(message=reply)])


def make_model(seed: int = 0) -> BaseChatModel:
    """Create the model; parameters such as seed or temperature receive the run's settings."""
    return Wanderer(seed=seed)


if __name__ == "__main__":
    arms: dict[str, rpms.Arm] = {
        "B": rpms.RunContext.for_condition("B"),
        "B wanderer": rpms.Variant(
            rpms.RunContext.for_condition("B", max_steps=20), model="own_model:make_model"
        ),
    }
    report = rpms.evaluate(arms, out="runs/own-model", limit=10, spread=True)
    print(report.as_markdown())
