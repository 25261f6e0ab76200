"""Plain retrieval: whole won trajectories of the most similar tasks.

This is the baseline that every condensed memory has to beat. No model writes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rpms.envs import get_environment
from rpms.memory_store import Note
from rpms.memory_store.methods.method import Ask, Learned, RecallRequest
from rpms.memory_store.methods.note_method import NoteMethod, candidate, likeness
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord

KIND = "trajectory"
LINE = 80
"""Characters kept of one observation, because the knowledge blocks have a token budget."""


class Trajectories(NoteMethod):
    """The k most similar won tasks, step by step."""

    name = "trajectories"
    title = "whole trajectories"
    heading = "Past Experience - Solved Tasks"

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return the trajectories with the most similar task sentences."""
        return similar(self.frozen(request.env, request.context), request)

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Keep the shortest won episode of each task."""
        return Learned(won_trajectories(records))


def similar(notes: Iterable[Note], request: RecallRequest) -> list[Recall]:
    """Return the k trajectories with the most similar tasks."""
    goal = request.moment.goal["sentence"]
    scored = [(likeness(goal, note.goal), note) for note in notes if note.kind == KIND]
    scored.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [candidate(note, request, score) for score, note in scored[: request.context.k]]


def won_trajectories(records: Iterable[EpisodeRecord]) -> list[Note]:
    """Return one note per won task, with its shortest win."""
    best: dict[str, EpisodeRecord] = {}
    for record in records:
        if record["success"]:
            shortest = best.setdefault(record["task"], record)
            if len(record["history"]) < len(shortest["history"]):
                best[record["task"]] = record
    return [
        Note(
            id=f"{KIND}_{number}",
            kind=KIND,
            text=f"Task: {record['goal']}\n{steps(record, refused=False)}",
            goal=record["goal"],
            goal_type=goal_type(record),
            actions=[t["action"] for t in record["history"] if t["action"] and not t["failed"]],
        )
        for number, (_, record) in enumerate(sorted(best.items()), start=1)
    ]


def goal_type(record: EpisodeRecord) -> str:
    return get_environment(record["env"]).parse_goal(record["goal"])["type"]


def steps(record: EpisodeRecord, longest: int = LINE, refused: bool = True) -> str:
    """Print the actions and observations, a line each; ``refused`` includes rejected actions."""
    lines = []
    for turn in record["history"]:
        if turn["failed"] and not refused:
            continue
        seen = " ".join(turn["observation"].split())
        if len(seen) > longest:
            seen = f"{seen[:longest].rstrip()} ..."
        lines += [f"> {turn['action'] or '(no action)'}", seen]
    return "\n".join(line for line in lines if line)


def transcript(record: EpisodeRecord) -> str:
    """Print a whole episode for a writing prompt."""
    return f"{record['first_observation'].strip()}\n\n{steps(record, longest=400)}"
