"""ReasoningBank: up to three strategy items from every task, won or lost.

Ouyang et al., "ReasoningBank: Scaling Agent Self-Evolving with Reasoning Memory" (2025). What
differs here: docs/memories.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rpms.memory_store import Note
from rpms.nodes.memories.method import Ask, Learned, Request
from rpms.nodes.memories.noted import NoteMethod, candidate, nearest
from rpms.nodes.memories.trajectories import goal_type, told
from rpms.nodes.memories.writing import tidy, writing_prompt
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "strategy"
MOST = 3
"""Items from one episode."""
_ITEM = re.compile(r"^[#* \t]*memory item\b.*$", re.I | re.M)
_FIELD = re.compile(r"^[#* \t]*(title|description|content)\b[*:\s]*", re.I | re.M)


class ReasoningBank(NoteMethod):
    """The items of the k most similar tasks."""

    name = "reasoningbank"
    heading = "Past Experience - Strategies"
    needs_model = True

    def recall(self, request: Request) -> list[Recall]:
        """Whole tasks are chosen, then all their items are shown."""
        notes = self.frozen(request.env, request.context)
        scored = nearest(notes, request.now.goal["sentence"])
        goals = list(dict.fromkeys(note.goal for _, note in scored))[: request.context.k]
        return [candidate(note, request, score) for score, note in scored if note.goal in goals]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """One call per episode, asking why it was won or why it was lost."""
        if ask is None:
            raise RpmsError("memory method 'reasoningbank' needs a language model to write items")
        notes: list[Note] = []
        unread = 0
        for record in records:
            prompt = writing_prompt(
                "reasoning_bank.j2", episode=told(record), won=record["success"], most=MOST
            )
            found, left_out = read_items(await ask(prompt))
            unread += left_out
            notes += [
                Note(
                    id=f"{KIND}_{len(notes) + number}", kind=KIND, text=text,
                    goal=record["goal"], goal_type=goal_type(record),
                )
                for number, text in enumerate(found, start=1)
            ]  # fmt: skip
        return Learned(notes, unread)


def read_items(reply: str) -> tuple[list[str], int]:
    """Items with title, description and content, a line each; incomplete ones are counted."""
    _, *parts = _ITEM.split(reply)
    found: list[str] = []
    unread = 0 if parts else 1
    for part in parts:
        _, *pieces = _FIELD.split(part)
        said = {
            name.lower(): tidy(text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)
        }
        if all(said.get(name) for name in ("title", "description", "content")):
            text = f"{said['title']}: {said['description']} {said['content']}"
            found.append(" ".join(text.replace("`", "").split()))
        else:
            unread += 1
    return list(dict.fromkeys(found))[:MOST], unread
