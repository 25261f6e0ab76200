"""Lessons as chat messages, one JSON line each: what TRL, Unsloth, Axolotl and OpenAI read.

A line is ``{"messages": [...]}``. Every reply carries ``weight``: 1 where it is to be learned, 0
where it only stands in the conversation (the solved example, earlier turns, mistakes). OpenAI
reads it so, Axolotl by ``message_field_training: weight``, and chat templates pass it over. What
else is known of a line stands in the same line of a second file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from rpms.evals.expert import Decided, Lesson, refuse_judged
from rpms.evals.export import Counted, Played, known_conditions
from rpms.evals.plan import evenly
from rpms.evals.run_folder import Run
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import make_folder, reason_of, refuse_special
from rpms.vocabulary.turn import Message

Per = Literal["decision", "episode"]
PER: tuple[Per, ...] = ("decision", "episode")


class Line(NamedTuple):
    """One line, and what is known of it."""

    messages: list[dict[str, Any]]
    about: dict[str, Any]


class Written(NamedTuple):
    """How far the writing is."""

    episodes: int = 0
    lost: int = 0
    lines: int = 0
    targets: int = 0


def lesson_of(played: Played) -> Lesson:
    """A finished episode of a run; what was refused, asked again or replaced is no target."""
    one, manifest = played.episode, played.run.manifest
    about = {
        "env": manifest.env, "split": manifest.split, "task": one.task,
        "condition": one.condition, "player": played.model,
    }  # fmt: skip
    decisions = []
    for step in played.steps:
        prompt = [Message(role=role, content=text) for role, text in played.messages(step)]  # type: ignore[typeddict-item]
        judged = [one["verdict"] for one in step.get("decisions", [])]
        good = bool(step["action"]) and not step["failed"] and {*judged} <= {"accepted"}
        if prompt and step["reply"]:
            decisions.append(Decided(step["step"], prompt, step["reply"], good))
    return Lesson(about, decisions, one.success)


def lines_of(lesson: Lesson, per: Per, most: int = 0) -> Iterator[Line]:
    """The lines of a won episode; none where there is nothing to learn.

    ``most`` bounds its decisions, evenly from all of it, lest a few long episodes outweigh others.
    """
    decisions = lesson.decisions
    if not lesson.won or not any(decision.target for decision in decisions):
        return
    if per == "episode":
        wrong = [decision.step for decision in decisions if not decision.target]
        about = {**lesson.about, "steps": decisions[-1].step, "not_learned": wrong}
        yield Line(_conversation(decisions), about)
        return
    learned = [decision for decision in decisions if decision.target]
    for decision in evenly(learned, most or len(learned)):
        yield Line(
            [*_said(decision.prompt), _reply(decision)], {**lesson.about, "step": decision.step}
        )


def _conversation(decisions: Sequence[Decided]) -> list[dict[str, Any]]:
    """The first prompt, then each reply and what came next as the newest message of a prompt."""
    messages = _said(decisions[0].prompt)
    for number, decision in enumerate(decisions):
        if number:
            messages.append({**decision.prompt[-1]})
        messages.append(_reply(decision))
    return messages


def _said(prompt: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        {**message, "weight": 0} if message["role"] == "assistant" else {**message}
        for message in prompt
    ]


def _reply(decision: Decided) -> dict[str, Any]:
    return {"role": "assistant", "content": decision.reply, "weight": int(decision.target)}


def about_file(out: Path) -> Path:
    """Where the second file lies: beside the first."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.meta.jsonl")


def write_chat(
    lessons: Iterable[Lesson],
    out: Path,
    per: Per = "decision",
    tell: Callable[[Written], None] = lambda _: None,
    most: int = 0,
) -> Written:
    """Write lessons as they come, holding one at a time.

    Whatever ends it, both files are left with the lines of whole episodes and nothing after them.
    """
    done = Written()
    for path in (out, about_file(out)):
        refuse_special(path)
    make_folder(out.parent)
    try:
        with ExitStack() as open_files:
            files = [open_files.enter_context(_Whole(path)) for path in (out, about_file(out))]
            for lesson in lessons:
                lines = [*lines_of(lesson, per, most)]
                files[0].add({"messages": line.messages} for line in lines)
                files[1].add(line.about for line in lines)
                for file in files:
                    file.keep()
                done = Written(
                    done.episodes + 1,
                    done.lost + (not lesson.won),
                    done.lines + len(lines),
                    done.targets + sum(m.get("weight", 0) for o in lines for m in o.messages),
                )
                tell(done)
    except OSError as error:
        raise RpmsError(f"cannot write {out}: {reason_of(error)}") from error
    return done


def export_chat(
    run: Run,
    out: Path,
    conditions: Collection[str] = (),
    per: Per = "decision",
    tell: Callable[[Written], None] = lambda _: None,
    most: int = 0,
) -> Written:
    """Write the won episodes of a run as training data."""
    conditions = known_conditions(run, conditions)
    refuse_judged(run.manifest.env, run.manifest.split)
    episodes = Counted(run, conditions or run.conditions, prompts=True)
    return write_chat(map(lesson_of, episodes), out, per, tell, most)


class _Whole:
    """A file of JSON lines that loses what was not kept when it is closed."""

    def __init__(self, file: Path) -> None:
        """Written anew."""
        self._file = file
        self._stream: BinaryIO = file.open("wb")
        self._kept = 0

    def __enter__(self) -> _Whole:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk has no room for the rest, which goes anyway
            self._stream.close()
        os.truncate(self._file, self._kept)

    def add(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Plain ASCII: some readers take a line separator inside a text for a line's end."""
        for document in documents:
            self._stream.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")

    def keep(self) -> None:
        """What was added so far stays."""
        self._stream.flush()
        self._kept = self._stream.tell()
