"""Reflexion: after a lost trial the model writes a plan for the next trial of the same task.

Shinn, Cassano, Berman, Gopinath, Narasimhan and Yao, "Reflexion: Language Agents with Verbal
Reinforcement Learning" (2023). See docs/archive/memory-methods.md for the differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import (
    NoteMethod,
    candidate,
    transcript,
)
from rpms.memory_store.methods.writing import tidy, writing_prompt
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

LAST = 3
"""The number of latest reflections in the agent's prompt and in the writing prompt."""


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
        """Raise an error if the settings name a memory file: the method reads none."""
        if context.memory_file:
            raise RpmsError(_NOT_FROZEN + "; leave the memory file out")

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return the reflections, newest first, so that the token budget drops the oldest."""
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
        """Raise an error: the method cannot learn in advance."""
        raise RpmsError(_NOT_FROZEN)

    async def carry(
        self, cross_trial_memory: Mapping[str, Any], record: EpisodeRecord, ask: Ask
    ) -> dict[str, Any]:
        """Add a reflection after a lost trial."""
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
    """Return the text after the last "Plan:", or the whole reply."""
    _, _, plan = reply.rpartition("Plan:")
    return tidy(plan)


_NOT_FROZEN = "memory method 'reflexion' remembers only earlier trials of the same task"
