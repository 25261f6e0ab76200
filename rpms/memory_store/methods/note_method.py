"""Methods that keep texts: their file, block and candidates, and the plainest of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from rapidfuzz import fuzz

from rpms.envs import get_environment
from rpms.memory_store import Note, controlled_notes, read_notes
from rpms.memory_store.actions_in_text import mentioned_actions
from rpms.memory_store.controls import Control
from rpms.memory_store.grounding import GroundingContext, fill_roles
from rpms.memory_store.methods.method import Ask, Fill, Learned, MemoryMethod, RecallRequest
from rpms.memory_store.roles import DESTINATION, NAMED_OBJECT, NO_NAME, OBJECT
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import stamp_of
from rpms.vocabulary.naming import replace_names
from rpms.vocabulary.recall import BLANK, NOTE, Recall, new_advice, new_recall
from rpms.vocabulary.turn import EpisodeRecord

TRAJECTORY = "trajectory"
LONGEST_LINE = 80
"""Characters kept of one observation, because the knowledge blocks have a token budget."""
# A model may have written an article before the role; the name brings its own or needs none.
_BLANK = re.compile(rf"(?:\b(?:the|an?) )?{BLANK.pattern}", re.I)


class NoteMethod(MemoryMethod):
    """A method whose memory is a file of notes.

    Attributes:
        heading: the heading of its block in the prompt.
    """

    heading: ClassVar[str] = "Past Experience"

    def check(self, env: str, context: RunContext) -> None:
        """Read the memory file, which raises an error if it is missing or does not fit."""
        self.frozen(env, context)

    def frozen(self, env: str, context: RunContext) -> list[Note]:
        """Return the notes of the memory file; none if there is no file and none is needed."""
        if not context.memory_file:
            if self.needs_file:
                raise RpmsError(
                    f"memory method '{self.name}' needs a memory of its own: learn one with "
                    f"'rpms learn --method {context.memory_method} --out FILE' and name it as the "
                    "memory file"
                )
            return []
        file = Path(context.memory_file)
        return _open(file, env, self.name, stamp_of(file), context.memory_control, context.seed)

    def render(self, recalls: Sequence[Recall], fill: Fill) -> str:
        """Print the notes, a line or paragraph each."""
        return fill("notes.j2", recalls=recalls, heading=self.heading)


@lru_cache(maxsize=8)
def _open(
    file: Path, env: str, method: str, _stamp: tuple[int, int], control: Control, seed: int
) -> list[Note]:
    return controlled_notes(read_notes(file, env, method), control, seed)


def candidate(
    note: Note, request: RecallRequest, score: float = 1.0, *, here: bool = False
) -> Recall:
    """Turn a note into a candidate for the state filter, the arbiter and the prompt.

    ``here`` is true if it was written about the current scene, so that its names are valid.
    """
    text, actions = worded(note, request)
    entry: dict[str, Any] = {"id": note.id, "kind": note.kind, "text": text, "type": NOTE,
                             "here": here}  # fmt: skip
    if note.state_signature is not None:
        entry["state_signature"] = note.state_signature
    return new_recall(entry, round(score, 4), max(note.votes, 1), new_advice(actions))


def worded(note: Note, request: RecallRequest) -> tuple[str, list[str]]:
    """Return a note's text in the run's ``memory_form``, and the actions it advises.

    The form only changes texts with roles; their actions are read from the printed text. A note
    with recorded actions advises those actions, transferred to the current goal.
    """
    moment, form = request.moment, request.context.memory_form
    text, recorded = note.text, note.actions
    if BLANK.search(text):
        if form == "recorded" and recorded:
            text = "\n".join(recorded)
        else:
            text, recorded = with_names(text, moment) if form == "grounded" else text, None
    if recorded is not None:
        return text, transferred(recorded, note.goal, request)
    goal = moment.goal
    actions = mentioned_actions(moment.commands, text, goal["object"], goal["destination"])
    return text, list(actions)


def with_names(text: str, moment: GroundingContext) -> str:
    """Replace the roles in a text by names of the current scene.

    A role without a name, or a variable that the model invented, is written in words.
    """
    return _BLANK.sub(lambda blank: _name(blank[1], moment), text)


def _name(role: str, moment: GroundingContext) -> str:
    thing, goal = role.removesuffix("'s place"), moment.goal
    kinds = {OBJECT: goal["object"], NAMED_OBJECT: goal["object"], DESTINATION: goal["destination"]}
    any_of_a_kind = role.startswith("a ")
    if any_of_a_kind or thing in kinds:
        name = fill_roles(moment, [role])[role]
        if name not in ("", NO_NAME):
            return name
    kind = kinds.get(thing) or thing.removeprefix("the ")
    return role if any_of_a_kind else f"the {kind}{role.removeprefix(thing)}"


def transferred(actions: Sequence[str], goal: str, request: RecallRequest) -> list[str]:
    """Replace the objects of another task by those of this one, so that the rules can judge it."""
    if not goal:
        return list(actions)
    source, target = get_environment(request.env).parse_goal(goal), request.moment.goal
    roles = {source[role]: target[role] for role in ("destination", "object")}
    names = {name: other for name, other in roles.items() if name and other}
    return [replace_names(action, names) for action in actions]


def likeness(goal: str, other: str) -> float:
    """Return the similarity of two task sentences by their words, 0 to 1."""
    return fuzz.token_sort_ratio(goal.lower(), other.lower()) / 100


class Trajectories(NoteMethod):
    """The k most similar won tasks, step by step.

    This is the baseline that every condensed memory has to beat. No model writes anything.
    """

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
    scored = [(likeness(goal, note.goal), note) for note in notes if note.kind == TRAJECTORY]
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
            id=f"{TRAJECTORY}_{number}",
            kind=TRAJECTORY,
            text=f"Task: {record['goal']}\n{steps(record, rejected=False)}",
            goal=record["goal"],
            goal_type=goal_type(record),
            actions=[t["action"] for t in record["history"] if t["action"] and not t["failed"]],
        )
        for number, (_, record) in enumerate(sorted(best.items()), start=1)
    ]


def goal_type(record: EpisodeRecord) -> str:
    return get_environment(record["env"]).parse_goal(record["goal"])["type"]


def steps(record: EpisodeRecord, longest: int = LONGEST_LINE, rejected: bool = True) -> str:
    """Print the actions and observations, a line each; ``rejected`` includes rejected ones."""
    lines = []
    for turn in record["history"]:
        if turn["failed"] and not rejected:
            continue
        seen = " ".join(turn["observation"].split())
        if len(seen) > longest:
            seen = f"{seen[:longest].rstrip()} ..."
        lines += [f"> {turn['action'] or '(no action)'}", seen]
    return "\n".join(line for line in lines if line)


def transcript(record: EpisodeRecord) -> str:
    return f"{record['first_observation'].strip()}\n\n{steps(record, longest=400)}"
