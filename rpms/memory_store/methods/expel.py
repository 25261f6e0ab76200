"""ExpeL: insights by votes from wins and losses, and similar won trajectories.

Zhao, Huang, Xu, Lin, Liu and Huang, "ExpeL: LLM Agents Are Experiential Learners" (2023). See
docs/archive/memory-methods.md for the differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import (
    NoteMethod,
    candidate,
    likeness,
    similar,
    transcript,
    won_trajectories,
)
from rpms.memory_store.methods.writing import tidy, writing_prompt
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "insight"
FULL = 20
"""A list of this many insights is full: disagreeing then weighs more, as in the original."""
GROUP = 8
"""The number of wins in one call."""
NEW, FULL_STRENGTH = 2, 3
_OPERATION = re.compile(
    r"^[^\w\n]*(ADD|EDIT|AGREE|DISAGREE|REMOVE)\b(?:[ \t#]*(\d+))?[^\w\n]*[:.][ \t*]*(.*)$",
    re.I | re.M,
)
_ORDER = ("DISAGREE", "REMOVE", "AGREE", "EDIT", "ADD")


class Insight(NamedTuple):
    text: str
    votes: int


class ExpeL(NoteMethod):
    """All insights, most votes first, then the k most similar won trajectories."""

    name = "expel"
    title = "ExpeL's insights and trajectories"
    heading = "Past Experience - Insights and Solved Tasks"
    needs_model = True

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return the insights, then the trajectories, which the token budget drops first."""
        notes = self.frozen(request.env, request.context)
        insights = [candidate(note, request) for note in notes if note.kind == KIND]
        return [*insights, *similar(notes, request)]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Call the model for each pair of a loss and a win, then for each group of wins."""
        if ask is None:
            raise RpmsError(f"memory method '{self.name}' needs a language model to write it")
        insights: list[Insight] = []
        unread = 0
        for won, lost in comparisons(records):
            prompt = writing_prompt(
                "expel.j2",
                won=[transcript(record) for record in won],
                lost=transcript(lost) if lost else "",
                insights=[insight.text for insight in insights],
                full=len(insights) >= FULL,
            )
            insights, senseless = vote(insights, await ask(prompt))
            unread += senseless
        notes = [
            Note(id=f"{KIND}_{number}", kind=KIND, text=insight.text, votes=insight.votes)
            for number, insight in enumerate(insights, start=1)
        ]
        return Learned([*notes, *won_trajectories(records)], unread)


def comparisons(
    records: Sequence[EpisodeRecord],
) -> Iterator[tuple[list[EpisodeRecord], EpisodeRecord | None]]:
    """Yield each loss with a win of the same or the most similar task, then wins in groups."""
    by_task = sorted(records, key=lambda record: record["task"])
    won = [record for record in by_task if record["success"]]
    for lost in by_task:
        if won and not lost["success"]:
            best = max(
                won, key=lambda w: (w["task"] == lost["task"], likeness(w["goal"], lost["goal"]))
            )
            yield [best], lost
    for start in range(0, len(won), GROUP):
        yield won[start : start + GROUP], None


def vote(insights: Sequence[Insight], reply: str) -> tuple[list[Insight], int]:
    """Apply the operations of a reply; return the new list and the number of invalid operations.

    Votes come first, then edits, then additions, so that the numbers refer to the list shown.
    """
    numbered = dict(enumerate(insights, start=1))
    lines = _OPERATION.findall(reply)
    operations = [(name.upper(), int(n or 0), tidy(text)) for name, n, text in lines]
    penalty = FULL_STRENGTH if len(insights) >= FULL else 1
    unread = 0 if operations else 1
    added: list[Insight] = []
    for name, number, text in sorted(operations, key=lambda line: _ORDER.index(line[0])):
        texts = {insight.text for insight in [*numbered.values(), *added]}
        if name == "ADD" and text and text not in texts:
            added.append(Insight(text, NEW))
        elif name == "ADD" or number not in numbered or (name == "EDIT" and not text):
            unread += 1
        elif name == "EDIT":
            numbered[number] = Insight(text, numbered[number].votes + 1)
        else:
            change = 1 if name == "AGREE" else -penalty
            numbered[number] = numbered[number]._replace(votes=numbered[number].votes + change)
    upheld = [insight for insight in [*numbered.values(), *added] if insight.votes > 0]
    return sorted(upheld, key=lambda insight: -insight.votes)[:FULL], unread
