"""CLIN: causal abstractions, rewritten after every trial, and meta-summaries for other tasks.

Majumder, Dalvi Mishra, Jansen, Tafjord, Tandon, Zhang, Callison-Burch and Clark, "CLIN: A
Continually Learning Language Agent for Rapid Task Adaptation and Generalization" (2023). See
docs/memories.md for the differences.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import NoteMethod, candidate
from rpms.memory_store.methods.trajectories import goal_type, transcript
from rpms.memory_store.methods.writing import list_items, tidy, writing_prompt
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "abstraction"
LAST = 3
"""The number of earlier memories of this task in the writing prompt."""
BEST = 8
"""The number of tasks in a meta-summary, those with the best scores."""
# "X may be necessary to Y", "X does not contribute to Y"; the original spells it "neccessary".
_FORM = re.compile(
    r"\b(?:(?:may|should)\s+(?P<not1>not\s+)?be|is(?P<not2>\s+not)?)\s+nec+es+ary\s+(?:to|for)\b|"
    r"\b(?:may|should|does)\s+(?P<not3>not\s+)?(?:be\s+)?contributes?\s+to\b", re.I,
)  # fmt: skip


class Clin(NoteMethod):
    """The abstractions of this task; in its first trial those of its type."""

    name = "clin"
    title = "CLIN's memory without its agent"
    heading = "Past Experience - What Was Found to Be Necessary"
    cumulative = True
    needs_file = False
    needs_model = True

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return the latest memory of this task, in the order it was written."""
        if request.context.memory_control == "empty":
            return []
        trials = request.cross_trial_memory.get("trials", [])
        if trials and trials[-1]["abstractions"]:
            notes = [_note(number, text) for number, text in enumerate(trials[-1]["abstractions"])]
            return [candidate(note, request, here=True) for note in notes]
        frozen = self.frozen(request.env, request.context)
        kind = request.moment.goal["type"]
        return [candidate(note, request) for note in frozen if note.goal_type == kind]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Write a memory of each task as in trials, then summarize the best of each type."""
        ask = self.writer(ask)
        memories: dict[str, dict[str, Any]] = {}
        types: dict[str, str] = {}
        for record in records:
            task = record["task"]
            memories[task] = await self.carry(memories.get(task, {}), record, ask)
            types[task] = goal_type(record)
        grouped: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for task, memory in memories.items():
            best = max(memory["trials"], key=lambda trial: trial["score"])
            grouped[types[task]].append(best)
        unread = sum(memory["unread"] for memory in memories.values())
        notes: list[Note] = []
        for kind, best_of in sorted(grouped.items()):
            chosen = sorted(best_of, key=lambda trial: -trial["score"])[:BEST]
            reply = await ask(writing_prompt("clin_meta.j2", memories=chosen))
            texts, formless = read_abstractions(reply)
            unread += formless
            notes += [_note(len(notes) + n, text, kind) for n, text in enumerate(texts)]
        return Learned(notes, unread)

    async def carry(
        self, cross_trial_memory: Mapping[str, Any], record: EpisodeRecord, ask: Ask
    ) -> dict[str, Any]:
        """Rewrite the memory after every trial, won or lost."""
        trials = list(cross_trial_memory.get("trials", []))
        score = record.get("score", float(record["success"]))
        prompt = writing_prompt(
            "clin.j2", episode=transcript(record), won=record["success"], score=score,
            trials=trials[-LAST:],
        )  # fmt: skip
        texts, formless = read_abstractions(await ask(prompt))
        trials.append({"task": record["goal"], "won": record["success"], "score": score,
                       "abstractions": texts})  # fmt: skip
        return {"trials": trials[-LAST:], "unread": cross_trial_memory.get("unread", 0) + formless}


def _note(number: int, text: str, kind: str = "") -> Note:
    """Make a note; one that says what is not needed advises no actions."""
    actions: list[str] | None = [] if is_negative(text) else None
    return Note(id=f"{KIND}_{number + 1}", kind=KIND, text=text, goal_type=kind, actions=actions)


def is_negative(text: str) -> bool:
    """Return True if an abstraction says that something is not needed."""
    form = _FORM.search(text)
    return form is not None and any(form.groupdict().values())


def read_abstractions(reply: str) -> tuple[list[str], int]:
    """Return the list items that have one of the four forms, and the number of the others."""
    items = list(dict.fromkeys(tidy(item) for item in list_items(reply)))
    texts = [item for item in items if _FORM.search(item)]
    return texts, len(items) - len(texts) if items else 1
