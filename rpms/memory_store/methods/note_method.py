"""What methods that keep texts have in common: their file, their block, and notes as candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from rapidfuzz import fuzz

from rpms.envs import get_environment
from rpms.memory_store import Note, controlled_notes, read_notes
from rpms.memory_store.controls import Control
from rpms.memory_store.grounding import GroundingContext, fill_roles
from rpms.memory_store.methods.method import Ask, Fill, MemoryMethod, RecallRequest
from rpms.memory_store.roles import DESTINATION, NAMED_OBJECT, NOBODY, OBJECT
from rpms.rules.actions_in_text import mentioned_actions
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import stamp_of
from rpms.vocabulary.recall import BLANK, NOTE, Recall, new_advice, new_recall

# A writer may have put an article before the role; the name brings its own or needs none.
_BLANK = re.compile(rf"(?:\b(?:the|an?) )?{BLANK.pattern}", re.I)


class NoteMethod(MemoryMethod):
    """A method whose memory is a file of notes.

    Attributes:
        heading: what stands over its block in the prompt.
    """

    heading: ClassVar[str] = "Past Experience"

    def check(self, env: str, context: RunContext) -> None:
        """Read the file now."""
        self.frozen(env, context)

    def frozen(self, env: str, context: RunContext) -> list[Note]:
        """The notes learned before; none where the method can do without and no file is named."""
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

    def writer(self, ask: Ask | None) -> Ask:
        """The model that writes the texts; learning without it is refused."""
        if ask is None:
            raise RpmsError(f"memory method '{self.name}' needs a language model to write it")
        return ask

    def render(self, recalls: Sequence[Recall], fill: Fill) -> str:
        """One line or paragraph per note."""
        return fill("notes.j2", recalls=recalls, heading=self.heading)


@lru_cache(maxsize=8)
def _open(
    file: Path, env: str, method: str, _stamp: tuple[int, int], control: Control, seed: int
) -> list[Note]:
    return controlled_notes(read_notes(file, env, method), control, seed)


def candidate(
    note: Note, request: RecallRequest, score: float = 1.0, *, here: bool = False
) -> Recall:
    """A note as state filter, arbiter and prompt see it.

    ``here`` says that it was written about this very home, so that its names are those of now.
    """
    text, actions = worded(note, request)
    entry: dict[str, Any] = {"id": note.id, "kind": note.kind, "text": text, "type": NOTE,
                             "here": here}  # fmt: skip
    if note.state_signature is not None:
        entry["state_signature"] = note.state_signature
    return new_recall(entry, round(score, 4), max(note.votes, 1), new_advice(actions))


def worded(note: Note, request: RecallRequest) -> tuple[str, list[str]]:
    """What a note prints in the form that the run asks for, and the actions it advises.

    The form matters to a text with roles alone, and what it advises is read from what is printed.
    A note that holds its steps as they were recorded advises them as they would be done here.
    """
    now, form = request.now, request.context.memory_form
    text, recorded = note.text, note.actions
    if BLANK.search(text):
        if form == "recorded" and recorded:
            text = "\n".join(recorded)
        else:
            text, recorded = with_names(text, now) if form == "grounded" else text, None
    if recorded is not None:
        return text, transferred(recorded, note.goal, request)
    goal = now.goal
    return text, list(mentioned_actions(now.manual, text, goal["object"], goal["destination"]))


def with_names(text: str, now: GroundingContext) -> str:
    """A text with this home's names for its roles.

    Where nobody plays one yet, or it is a variable of the writer's own, it is said in words:
    nothing is left out for want of a name.
    """
    return _BLANK.sub(lambda blank: _name(blank[1], now), text)


def _name(role: str, now: GroundingContext) -> str:
    thing, goal = role.removesuffix("'s place"), now.goal
    kinds = {OBJECT: goal["object"], NAMED_OBJECT: goal["object"], DESTINATION: goal["destination"]}
    any_of_a_kind = role.startswith("a ")
    if any_of_a_kind or thing in kinds:
        player = fill_roles(now, [role])[role]
        if player not in ("", NOBODY):
            return player
    kind = kinds.get(thing) or thing.removeprefix("the ")
    return role if any_of_a_kind else f"the {kind}{role.removeprefix(thing)}"


def transferred(actions: Sequence[str], goal: str, request: RecallRequest) -> list[str]:
    """The steps of another task as they would be done for this one: its objects for the others.

    That is what a trajectory advises, and what the rules can judge.
    """
    if not goal:
        return list(actions)
    theirs, ours = get_environment(request.env).parse_goal(goal), request.now.goal
    roles = {theirs[role]: ours[role] for role in ("destination", "object")}
    known = sorted((kind for kind in roles if kind and roles[kind]), key=len, reverse=True)
    if not known:
        return list(actions)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, known))})(?!\w)")
    return [pattern.sub(lambda name: roles[name[1]], action) for action in actions]


def likeness(goal: str, other: str) -> float:
    """How alike two task sentences are, 0 to 1, by their words; no embedding model is used."""
    return fuzz.token_sort_ratio(goal.lower(), other.lower()) / 100


def nearest(notes: Iterable[Note], goal: str) -> list[tuple[float, Note]]:
    """The notes by how alike their tasks are to this one, most alike first."""
    scored = [(likeness(goal, note.goal), note) for note in notes]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].id))
