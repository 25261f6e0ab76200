"""LangMem: the memories that its manager extracts, found by its search tool.

LangMem keeps memories in a LangGraph store with an embedding. The embedding here needs neither a
network nor a model. See docs/archive/memory-methods.md for the differences.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from langchain_core.callbacks import get_usage_metadata_callback
from pydantic import BaseModel, Field

from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import (
    NoteMethod,
    candidate,
    goal_type,
    won_trajectories,
)
from rpms.memory_store.methods.writing import Writer, tidy
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "episode"
PACKAGE = "langmem"
DIMENSIONS = 512
NAMESPACE = ("episodes",)
INSTRUCTIONS = (
    "The conversation is one episode of an agent that acts in a text environment: its user is the "
    "environment. It {outcome}. Extract memories that help with similar tasks: which actions led "
    "to the goal or away from it, and why."
)


class EpisodicMemory(BaseModel):
    """An experience of the agent, in the fields of LangMem's guide to episodic memory."""

    observation: str = Field(description="The task and the situation: what happened.")
    thoughts: str = Field(description="The reasoning that led to the actions.")
    action: str = Field(description="The actions, in the words of the environment.")
    result: str = Field(description="The outcome, and what to do better or again.")


class LangMem(NoteMethod):
    """The k memories whose tasks are nearest by embedding."""

    name = "langmem"
    title = "LangMem's memories"
    heading = "Past Experience - Memories"

    def check(self, env: str, context: RunContext) -> None:
        """Raise an error if the package or the memory file is missing."""
        _require_package()
        super().check(env, context)

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Search the memories for the task sentence with LangMem's search tool."""
        notes = {note.id: note for note in self.frozen(request.env, request.context)}
        tool = _search_tool(tuple((note.id, note.goal, note.text) for note in notes.values()))
        query = {"query": request.moment.goal["sentence"], "limit": request.context.k}
        reply = tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": query})
        return [candidate(notes[item.key], request, item.score or 0.0) for item in reply.artifact]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Let LangMem's manager extract memories; without a model, keep won episodes whole."""
        _require_package()
        if not isinstance(ask, Writer):
            return Learned(won_trajectories(records))
        notes: list[Note] = []
        unread = 0
        for record in records:
            texts = await _extracted(record, ask)
            unread += not texts
            notes += [
                Note(
                    id=f"{KIND}_{len(notes) + number}", kind=KIND, text=text,
                    goal=record["goal"], goal_type=goal_type(record),
                )
                for number, text in enumerate(texts, start=1)
            ]  # fmt: skip
        return Learned(notes, unread)


def _require_package() -> None:
    if not find_spec(PACKAGE):
        raise RpmsError(
            "memory method 'langmem' needs the package langmem: run 'make bridges', or "
            "\"pip install -e '.[langmem]'\""
        )


async def _extracted(record: EpisodeRecord, writer: Writer) -> list[str]:
    """Return the texts of the memories that LangMem's manager extracts from an episode."""
    from langmem import create_memory_manager  # an optional package

    messages = [{"role": "user", "content": record["first_observation"]}]
    for turn in record["history"]:
        messages += [
            {"role": "assistant", "content": turn["action"] or "(no action)"},
            {"role": "user", "content": turn["observation"]},
        ]
    outcome = "reached its goal" if record["success"] else "did not reach its goal"
    manager = create_memory_manager(
        writer.chat, schemas=[EpisodicMemory], instructions=INSTRUCTIONS.format(outcome=outcome)
    )
    with get_usage_metadata_callback() as spent:
        memories = await writer.run(lambda: manager.ainvoke({"messages": messages}))
    for usage in spent.usage_metadata.values():
        writer.count(usage)
    found = [memory.content for memory in memories if isinstance(memory.content, EpisodicMemory)]
    return [tidy("\n".join(memory.model_dump().values())) for memory in found]


@lru_cache(maxsize=8)
def _search_tool(memories: tuple[tuple[str, str, str], ...]) -> Any:
    """Put memories into a store under the tasks they come from; return LangMem's search tool."""
    from langgraph.store.memory import InMemoryStore
    from langmem import create_search_memory_tool  # an optional package

    store = InMemoryStore(index={"dims": DIMENSIONS, "embed": embed, "fields": ["goal"]})
    for key, goal, text in memories:
        store.put(NAMESPACE, key, {"goal": goal, "content": text})
    return create_search_memory_tool(NAMESPACE, store=store, response_format="content_and_artifact")


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return unit vectors of hashed words and letter trigrams; similar words are near."""
    return [_embedding(text) for text in texts]


def _embedding(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        framed = f"<{word}>"
        for part in (framed, *(framed[at : at + 3] for at in range(len(framed) - 2))):
            code = zlib.crc32(part.encode())
            vector[code % DIMENSIONS] += 1 if code >> 31 else -1
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]
