"""Which state keys each stage reads and writes: recorded, and compared with the document."""

from __future__ import annotations

import re
from collections import defaultdict
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import Runtime

import rpms.nodes
from rpms.graph import STAGES, build_graph
from rpms.nodes import make_llm_call, make_prompt_build
from rpms.nodes.state import STATE_KEYS, EpisodeInput, EpisodeState
from rpms.vocabulary.context import RunContext

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
Keys = dict[str, set[str]]
# Between them every way through the stages: each guard, knowledge on and off, a vetoed action, a
# refused one, and a reply without an action.
CONTEXTS = [
    RunContext(guard="verify", max_steps=5),
    RunContext(guard="procedure", max_steps=5),
    RunContext.for_condition("A", max_steps=5),
]
REPLIES = ["Action: look", "Action: take moon 1 from sky 1", "Action: look", "Hm.", "Action: look"]


class Watched(dict[str, Any]):
    """A state that notes which keys are asked for."""

    def __init__(self, values: Any, keys_read: set[str]) -> None:
        super().__init__(values)
        self.keys_read = keys_read

    def __getitem__(self, key: str) -> Any:
        self.keys_read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_read.add(key)
        return super().get(key, default)


def table() -> tuple[Keys, Keys]:
    """The table of the document: stage, keys read, keys written."""
    _, _, section = REFERENCE.read_text().partition("| stage | reads | writes |")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", section.partition("\n\n")[0], re.M)
    stages = [row for row in rows if row[0] in STAGES]
    assert [name for name, _, _ in stages] == list(STAGES)
    return (
        {name: keys(reads) for name, reads, _ in stages},
        {name: keys(writes) for name, _, writes in stages},
    )


def keys(cell: str) -> set[str]:
    """The keys a cell names, or all others."""
    named = set(re.findall(r"`(\w+)`", cell))
    return set(STATE_KEYS) - named if cell.startswith("all but ") else named


def recorded() -> tuple[Keys, Keys]:
    reads: Keys = defaultdict(set)
    writes: Keys = defaultdict(set)

    def watch(name: str, stage: Any) -> Any:
        def run(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
            seen = Watched(state, reads[name])
            if isinstance(stage, Runnable):
                update = stage.invoke(seen)
            else:
                update = stage(seen, *[runtime][: len(signature(stage).parameters) - 1])
            writes[name] |= update.keys()
            return update

        return run

    for context in CONTEXTS:
        model = GenericFakeChatModel(messages=iter([AIMessage(text) for text in REPLIES * 4]))
        ours = {name: getattr(rpms.nodes, name) for name in STAGES}
        ours |= {"llm_call": make_llm_call(model), "prompt_build": make_prompt_build(model)}
        own = {name: watch(name, stage) for name, stage in ours.items()}
        task = EpisodeInput(split="generated_unseen", task=0)
        result = build_graph(nodes=own).invoke(task, context=context)
        assert result["steps"] == 5 and not result["error"]
    return reads, writes


@pytest.mark.engine
def test_the_table_says_what_the_stages_do() -> None:
    """Whoever swaps a stage reads there what it is given and what is expected of it."""
    documented, done = table(), recorded()
    for name in STAGES:
        assert documented[0][name] == done[0][name], f"{name} reads"
        assert documented[1][name] == done[1][name], f"{name} writes"


def test_the_edges_read_what_the_document_says() -> None:
    graph = build_graph()
    sentence = re.search(r"edges read (.*?)\.", REFERENCE.read_text(), re.S)
    assert sentence
    branches = [b for routes in graph.builder.branches.values() for b in routes.values()]
    read = {key for branch in branches for key in graph.builder.schemas[branch.input_schema]}  # type: ignore[index]
    assert read == keys(sentence[1])
