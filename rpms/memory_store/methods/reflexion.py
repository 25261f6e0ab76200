"""Reflexion: after a lost trial the model writes a plan for the next trial of this very task.

Shinn, Cassano, Berman, Gopinath, Narasimhan and Yao, "Reflexion: Language Agents with Verbal
Reinforcement Learning" (2023). What differs here: docs/memories.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import NoteMethod, candidate
from rpms.memory_store.methods.trajectories import transcript
from rpms.memory_store.methods.writing import tidy, writing_prompt
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

LAST = 3
"""How many of the latest reflections are shown, to the agent and to the writer."""


class Reflexion(NoteMethod):
    """The last reflections on this task, in the next trial of it."""

    name = "reflexion"
    title = "Reflexion's plans"
    heading = "Past Experience - Plans after Earlier Attempts at This Task"
    cumulative = True
    learns = False
    needs_file = False
    needs_model = True

    def check(self, env: str, context: RunContext) -> None:
        """There is nothing to read: it knows of this task alone."""
        if context.memory_file:
            raise RpmsError(_NOT_FROZEN + "; leave the memory file out")

    def recall(self, request: RecallRequest) -> list[Recall]:
        """The newest first, so that an old one goes first for want of room."""
        if request.context.memory_control == "empty":
            return []
        plans = request.cross_trial_memory.get("reflections", [])[-LAST:]
        return [
            candidate(
                Note(id=f"reflection_{number}", kind="reflection", text=text), request, here=True
            )
            for number, text in reversed([*enumerate(plans, start=1)])
        ]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Nothing can be learned beforehand."""
        raise RpmsError(_NOT_FROZEN)

    async def carry(
        self, cross_trial_memory: Mapping[str, Any], record: EpisodeRecord, ask: Ask
    ) -> dict[str, Any]:
        """One more reflection after a loss; a won task needs none."""
        plans, unread = (
            list(cross_trial_memory.get("reflections", [])),
            cross_trial_memory.get("unread", 0),
        )
        if not record["success"]:
            prompt = writing_prompt("reflexion.j2", episode=transcript(record), plans=plans[-LAST:])
            text = read_plan(await ask(prompt))
            plans, unread = ([*plans, text], unread) if text else (plans, unread + 1)
        return {"reflections": plans, "unread": unread}


def read_plan(reply: str) -> str:
    """What follows the last "Plan:", or the whole reply."""
    _, _, plan = reply.rpartition("Plan:")
    return tidy(plan)


_NOT_FROZEN = (
    "memory method 'reflexion' remembers earlier trials of the same task, and nothing of others"
)
