"""Exports episodes as chat messages for fine-tuning with TRL, Unsloth, Axolotl or OpenAI.

The episodes are those of a run, with the recorded replies or the expert's corrections, or episodes
that the expert runs for this purpose (``expert_export.py``). A line is ``{"messages": [...]}``.
Every reply has a ``weight``: 1 if it is to be learned, 0 if it is only context (the example,
earlier turns, mistakes). OpenAI reads it, Axolotl with ``message_field_training: weight``, and chat
templates ignore it. The same line of a second file has the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rpms.envs import get_environment
from rpms.evals.records.run_folder import Run, read_log
from rpms.evals.records.schema import Episode
from rpms.evals.running.expert import corrections
from rpms.evals.running.learning_data import chosen_conditions, refuse_judging
from rpms.evals.running.plan import evenly
from rpms.vocabulary.context import ALL_TURNS
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import whole_file
from rpms.vocabulary.turn import Message

EXPERT = "expert"
Per = Literal["decision", "episode"]
PER: tuple[Per, ...] = ("decision", "episode")
Document = dict[str, Any]


@dataclass(frozen=True)
class ChatFormat:
    """The form of an export.

    Attributes:
        per: one line for each decision or for each episode.
        most: the maximal number of decisions of an episode, spread evenly over it, so that a few
            long episodes do not dominate; 0 for all.
    """

    per: Per = "decision"
    most: int = 0

    def check_turns(self, histories: Iterable[Any]) -> None:
        """Raise an error for whole episodes with a limited history.

        Such prompts left out turns, so the whole conversation never was a prompt.
        """
        if self.per == "episode" and any(history != ALL_TURNS for history in histories):
            raise RpmsError("--per episode needs a history of all turns; give --per decision")


DECISIONS = ChatFormat()


class ExportCounts(NamedTuple):
    """Counts of an export; ``short`` has the missing episodes of each task type's share."""

    episodes: int = 0
    lost: int = 0
    lines: int = 0
    targets: int = 0
    short: Mapping[str, int] = {}


class DecidedStep(NamedTuple):
    """One prompt and its reply; a reply that is not a ``target`` is context only.

    ``vetoes`` continue the prompt: replies that the guard vetoed, each with its answer.
    """

    step: int
    prompt: Sequence[Message]
    reply: str
    target: bool = True
    vetoes: Sequence[Message] = ()


class Lesson(NamedTuple):
    """One episode to learn from, with its metadata."""

    metadata: Mapping[str, Any]
    decisions: Sequence[DecidedStep]
    won: bool


def prompt_of(
    log: Mapping[str, Any], step: Mapping[str, Any], key: Literal["prompt", "vetoes"] = "prompt"
) -> list[Message]:
    """A step's prompt or its vetoes; empty if there are none."""
    texts = log["messages"]
    return [Message(role=role, content=texts[number]) for role, number in step.get(key, [])]


def lesson_of(episode: Episode, log: Mapping[str, Any], env: str, split: str, agent: str) -> Lesson:
    """A finished episode; replies that were rejected, retried or replaced are no targets.

    The reply after a veto is one, so that a model learns to answer vetoes. The expert's actions are
    targets even if the environment rejects them, because they follow the manual.
    """
    decisions = []
    for step in log["steps"]:
        prompt, vetoes = prompt_of(log, step), prompt_of(log, step, "vetoes")
        sound = bool(step["action"]) and (agent == EXPERT or not step["failed"])
        if prompt and step["reply"]:
            target = sound and _accepted(step.get("decisions", []))
            decisions.append(DecidedStep(step["step"], prompt, step["reply"], target, vetoes))
    return Lesson(_metadata(episode, env, split, agent), decisions, episode.success)


def _accepted(decisions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the last reply of a step was executed as it was, and is no mistake."""
    verdicts = [decision["verdict"] for decision in decisions]
    vetoed = max((number for number, v in enumerate(verdicts, 1) if v == "retried"), default=0)
    return {*verdicts[vetoed:]} <= {"accepted"}


def correction_of(episode: Episode, log: Mapping[str, Any], env: str, split: str) -> Lesson:
    """An episode, won or lost: its prompts, each with the expert's reply, also after vetoes.

    From vetoes of its own choice a model may learn to read them. After a mistake made on purpose
    the best action is the one that it would choose anyway.
    """
    goal = get_environment(env).parse_goal(episode.goal)
    decisions = []
    for step, reply in corrections(env, goal, log["steps"]):
        prompt, vetoes = prompt_of(log, step), prompt_of(log, step, "vetoes")
        if prompt:
            decisions.append(DecidedStep(step["step"], prompt, reply))
        if prompt and vetoes:
            decisions.append(DecidedStep(step["step"], prompt, reply, vetoes=vetoes))
    return Lesson(_metadata(episode, env, split, EXPERT), decisions, won=True)


def _metadata(episode: Episode, env: str, split: str, agent: str) -> Document:
    return {
        "env": env, "split": split, "task": episode.task, "condition": episode.condition,
        "player": agent,
    }  # fmt: skip


def lines_of(lesson: Lesson, form: ChatFormat) -> Iterator[tuple[Document, Document]]:
    """The lines of a won episode, each with its metadata; none without a target."""
    decisions = lesson.decisions
    if not lesson.won or not any(decision.target for decision in decisions):
        return
    if form.per == "episode":  # later prompts do not show vetoes, so no answer to one is learned
        decisions = [d._replace(target=d.target and not d.vetoes) for d in decisions]
        wrong = [decision.step for decision in decisions if not decision.target]
        metadata = {**lesson.metadata, "steps": decisions[-1].step, "not_learned": wrong}
        yield {"messages": _conversation(decisions)}, metadata
        return
    learned = [decision for decision in decisions if decision.target]
    for decision in evenly(learned, form.most):
        messages = [*_unlearned([*decision.prompt, *decision.vetoes]), _reply(decision)]
        yield {"messages": messages}, {**lesson.metadata, "step": decision.step}


def _conversation(decisions: Sequence[DecidedStep]) -> list[Document]:
    """The first prompt, then each reply followed by the last message of the next prompt."""
    messages = _unlearned(decisions[0].prompt)
    for number, decision in enumerate(decisions):
        if number:
            messages.append({**decision.prompt[-1]})
        messages.append(_reply(decision))
    return messages


def _unlearned(prompt: Sequence[Message]) -> list[Document]:
    return [
        {**message, "weight": 0} if message["role"] == "assistant" else {**message}
        for message in prompt
    ]


def _reply(decision: DecidedStep) -> Document:
    return {"role": "assistant", "content": decision.reply, "weight": int(decision.target)}


def packed(document: Document) -> bytes:
    """A line of plain ASCII: some readers split lines at Unicode line separators."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def metadata_file(out: Path) -> Path:
    """The file of the metadata, beside the export."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.meta.jsonl")


def write_chat(lessons: Iterable[Lesson], out: Path, form: ChatFormat = DECISIONS) -> ExportCounts:
    """Write lessons one at a time; both files are written completely or not at all."""
    counts = ExportCounts()
    with whole_file(out) as chat, whole_file(metadata_file(out)) as meta:
        for lesson in lessons:
            lines = [*lines_of(lesson, form)]
            messages = [message for line, _ in lines for message in line["messages"]]
            chat.writelines(packed(line) for line, _ in lines)
            meta.writelines(packed(metadata) for _, metadata in lines)
            counts = ExportCounts(
                counts.episodes + 1,
                counts.lost + (not lesson.won),
                counts.lines + len(lines),
                counts.targets + sum(message.get("weight", 0) for message in messages),
            )
    return counts


def export_chat(
    run: Run,
    out: Path,
    conditions: Collection[str] = (),
    form: ChatFormat = DECISIONS,
    corrected: bool = False,
) -> ExportCounts:
    """Export the won episodes of a run, or with ``corrected`` all with the expert's replies."""
    manifest, labels = run.manifest, chosen_conditions(run, conditions)
    env, split = manifest.env, manifest.split
    refuse_judging(env, split)
    form.check_turns(manifest.conditions[name].get("history", ALL_TURNS) for name in labels)
    if corrected and form.per == "episode":
        raise RpmsError("corrections are single decisions; give --per decision")
    episodes = (episode for episode in run.episodes.values() if episode.condition in labels)
    logs = ((episode, read_log(run.log_file(episode))) for episode in episodes)
    lessons = (
        correction_of(episode, log, env, split)
        if corrected
        else lesson_of(episode, log, env, split, run.model(episode.condition))
        for episode, log in logs
        if log and log["steps"]
    )
    return write_chat(lessons, out, form)
