"""How much of each prompt does a server read again? Both layouts, on a real llama.cpp.

One episode is played by the built-in planner; its prompts, in either layout, are then put to
the local model one after the other, as an agent would. The model says itself how many tokens it
took from the prefix it had kept and how many it had to evaluate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, convert_to_messages
from langgraph.runtime import Runtime

from rpms.graph import build_graph, run_episode
from rpms.models import open_model
from rpms.models.local import LOCAL_TIMEOUT_S
from rpms.nodes.context import Layout, RunContext
from rpms.nodes.prompt_build import prompt_build
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.turn import Message

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class Read(NamedTuple):
    """One prompt as the server saw it."""

    prompt_tokens: int
    evaluated: int
    seconds: float


class PrefixResult(NamedTuple):
    """One list of prompts per layout, step by step."""

    steps: dict[str, list[Read]]

    def plain(self) -> dict[str, list[dict[str, float]]]:
        """As JSON has it."""
        return {name: [read._asdict() for read in reads] for name, reads in self.steps.items()}

    def evaluated(self, layout: str) -> float:
        """Tokens evaluated per step, the first one left out: nothing could be kept before it."""
        later = self.steps[layout][1:]
        return sum(read.evaluated for read in later) / len(later)

    def repeated(self, layout: str) -> float:
        """Share of the prompt tokens that repeated the previous step's prefix."""
        later = self.steps[layout][1:]
        whole = sum(read.prompt_tokens for read in later)
        return 1 - sum(read.evaluated for read in later) / whole

    @property
    def ratio(self) -> float:
        """How many times fewer tokens ``cache_friendly`` has evaluated than ``paper``."""
        return self.evaluated("paper") / self.evaluated("cache_friendly")


def bench_prefix(
    model: str = "local:smollm2",
    task: int = 9,
    condition: str = "D",
    steps: int = 12,
    watch: Callable[[str, int], None] = lambda layout, step: None,
) -> PrefixResult:
    """Put the same episode's prompts to the model in both layouts."""
    # A reply of one token: this measures reading.
    chat = open_model(model, max_tokens=1, timeout_s=LOCAL_TIMEOUT_S)
    prompts = episode_prompts(task, RunContext.for_condition(condition, max_steps=steps))
    found: dict[str, list[Read]] = {layout: [] for layout in LAYOUTS}
    for layout in LAYOUTS:
        for number, prompt in enumerate(prompts[layout], start=1):
            watch(layout, number)
            found[layout].append(_ask(chat, prompt))
    return PrefixResult(found)


def episode_prompts(task: int, context: RunContext) -> dict[str, list[list[Message]]]:
    """The prompts of one episode in every layout: the same states, told in another order."""
    prompts: dict[str, list[list[Message]]] = {layout: [] for layout in LAYOUTS}

    def keeping(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        for layout in LAYOUTS:
            told = runtime.override(context=context.with_(layout=layout))
            prompts[layout].append(prompt_build(state, told)["prompt"])
        return prompt_build(state, runtime)

    run_episode(task, context=context, graph=build_graph(nodes={"prompt_build": keeping}))
    return prompts


def _ask(chat: BaseChatModel, prompt: Sequence[Message]) -> Read:
    began = perf_counter()
    reply = chat.invoke(convert_to_messages([dict(message) for message in prompt]))
    told: Any = reply.usage_metadata if isinstance(reply, AIMessage) else None
    spent = int((told or {}).get("input_tokens", 0))
    kept = int(((told or {}).get("input_token_details") or {}).get("cache_read") or 0)
    return Read(spent, spent - kept, perf_counter() - began)
