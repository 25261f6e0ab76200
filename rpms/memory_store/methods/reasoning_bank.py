"""ReasoningBank: up to three strategy items from every task, won or lost.

Ouyang et al., "ReasoningBank: Scaling Agent Self-Evolving with Reasoning Memory" (2025). See
docs/memories.md for the differences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import NoteMethod, candidate, nearest
from rpms.memory_store.methods.trajectories import goal_type, transcript
from rpms.memory_store.methods.writing import tidy, writing_prompt
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "strategy"
MOST = 3
"""The maximum number of items from one episode."""
_ITEM = re.compile(r"^[#* \t]*memory item\b.*$", re.I | re.M)
_FIELD = re.compile(r"^[#* \t]*(title|description|content)\b[*:\s]*", re.I | re.M)


class ReasoningBank(NoteMethod):
    """The items of the k most similar tasks."""

    name = "reasoningbank"
    title = "ReasoningBank's items"
    heading = "Past Experience - Strategies"
    needs_model = True

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return all items of the k most similar tasks."""
        notes = self.frozen(request.env, request.context)
        scored = nearest(notes, request.moment.goal["sentence"])
        goals = list(dict.fromkeys(note.goal for _, note in scored))[: request.context.k]
        return [candidate(note, request, score) for score, note in scored if note.goal in goals]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Ask the model of each episode why it was won or lost."""
        ask = self.writer(ask)
        notes: list[Note] = []
        unread = 0
        for record in records:
            prompt = writing_prompt(
                "reasoning_bank.j2", episode=transcript(record), won=record["success"], most=MOST
            )
            items, incomplete = read_items(await ask(prompt))
            unread += incomplete
            notes += [
                Note(
                    id=f"{KIND}_{len(notes) + number}", kind=KIND, text=text,
                    goal=record["goal"], goal_type=goal_type(record),
                )
                for number, text in enumerate(items, start=1)
            ]  # fmt: skip
        return Learned(notes, unread)


def read_items(reply: str) -> tuple[list[str], int]:
    """Items with title, description and content, a line each; incomplete ones are counted."""
    _, *parts = _ITEM.split(reply)
    items: list[str] = []
    unread = 0 if parts else 1
    for part in parts:
        _, *pieces = _FIELD.split(part)
        fields = {
            name.lower(): tidy(text) for name, text in zip(pieces[::2], pieces[1::2], strict=True)
        }
        if all(fields.get(name) for name in ("title", "description", "content")):
            text = f"{fields['title']}: {fields['description']} {fields['content']}"
            items.append(" ".join(text.replace("`", "").split()))
        else:
            unread += 1
    return list(dict.fromkeys(items))[:MOST], unread
