"""Exports episodes as chat messages for fine-tuning with TRL, Unsloth, Axolotl or OpenAI.

The episodes are those of a run, with the recorded replies or the expert's corrections, or episodes
that the expert runs for this purpose. A line is ``{"messages": [...]}``. Every reply has a
``weight``: 1 if it is to be learned, 0 if it is only context (the example, earlier turns,
mistakes). OpenAI reads it, Axolotl with ``message_field_training: weight``, and chat templates
ignore it. The same line of a second file has the metadata.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal, NamedTuple

from rpms.envs import Task, get_environment
from rpms.evals.records.conditions import find_label
from rpms.evals.records.run_folder import Run, read_log, read_run
from rpms.evals.records.schema import Episode
from rpms.evals.running.arms import make_arm, parse_arm
from rpms.evals.running.evaluate import ExecutionOptions, play_plan
from rpms.evals.running.expert import corrections
from rpms.evals.running.expert import graph as expert_graph
from rpms.evals.running.learning_splits import refuse_judging
from rpms.evals.running.plan import (
    Job,
    RunPlan,
    choose_tasks,
    evenly,
    one_of_each_stretch,
    remaining,
)
from rpms.vocabulary.context import ABLATION, ALL_TURNS, RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import whole_file
from rpms.vocabulary.imports import path_of
from rpms.vocabulary.turn import Message

EXPERT = "expert"
AT_ONCE = 2
"""Episodes in flight per worker: the expert waits for no model, only for the next job."""
TRIES = 4
"""The maximal number of episodes for one place in a type's share."""
Per = Literal["decision", "episode"]
PER: tuple[Per, ...] = ("decision", "episode")
Document = dict[str, Any]


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


def lines_of(lesson: Lesson, per: Per, limit: int = 0) -> Iterator[tuple[Document, Document]]:
    """The lines of a won episode, each with its metadata; none without a target.

    ``limit`` is the maximal number of decisions, spread evenly over the episode, so that a few long
    episodes do not dominate.
    """
    decisions = lesson.decisions
    if not lesson.won or not any(decision.target for decision in decisions):
        return
    if per == "episode":  # later prompts do not show vetoes, so no answer to one is learned
        decisions = [d._replace(target=d.target and not d.vetoes) for d in decisions]
        wrong = [decision.step for decision in decisions if not decision.target]
        metadata = {**lesson.metadata, "steps": decisions[-1].step, "not_learned": wrong}
        yield {"messages": _conversation(decisions)}, metadata
        return
    learned = [decision for decision in decisions if decision.target]
    for decision in evenly(learned, limit or len(learned)):
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


def write_chat(
    lessons: Iterable[Lesson], out: Path, per: Per = "decision", limit: int = 0
) -> ExportCounts:
    """Write lessons one at a time; both files are written completely or not at all."""
    counts = ExportCounts()
    with whole_file(out) as chat, whole_file(metadata_file(out)) as meta:
        for lesson in lessons:
            lines = [*lines_of(lesson, per, limit)]
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


def _check_turns(per: Per, histories: Iterable[Any]) -> None:
    """Raise an error for --per episode with a limited history.

    Such prompts left out turns, so the whole conversation never was a prompt.
    """
    if per == "episode" and any(history != ALL_TURNS for history in histories):
        raise RpmsError("--per episode needs a history of all turns; give --per decision")


def known_conditions(run: Run, typed: Collection[str]) -> Collection[str]:
    """The typed labels, by default all; an error if the run does not have one."""
    conditions = [find_label(label, run.conditions) for label in typed]
    if unknown := set(conditions) - set(run.conditions):
        raise RpmsError(
            f"no condition '{min(unknown)}' in {run.folder}; it has {', '.join(run.conditions)}"
        )
    return conditions or run.conditions


def export_chat(
    run: Run, out: Path, conditions: Collection[str] = (), per: Per = "decision", most: int = 0,
    corrected: bool = False,
) -> ExportCounts:  # fmt: skip
    """Export the won episodes of a run, or with ``corrected`` all with the expert's replies."""
    manifest, labels = run.manifest, known_conditions(run, conditions)
    env, split = manifest.env, manifest.split
    refuse_judging(env, split)
    _check_turns(per, (manifest.conditions[name].get("history", ALL_TURNS) for name in labels))
    if corrected and per == "episode":
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
    return write_chat(lessons, out, per, most)


def export_expert(
    env: str,
    out: Path,
    *,
    split: str = "",
    limit: int = 0,
    spread: bool = False,
    won: int = 0,
    conditions: Sequence[str] = (),
    arms: Sequence[str] = (),
    settings: RunContext | None = None,
    mistakes: float = 0.0,
    per: Per = "decision",
    most: int = 0,
    workers: int | None = None,
    show: bool = False,
) -> ExportCounts:
    """Run the expert and export its decisions; called again after an interrupt, it resumes.

    Args:
        env: the environment.
        out: the file to write; a run folder beside it keeps the episodes until it is written.
        split: the split; by default the environment's learning split.
        limit: the number of tasks; 0 for all.
        spread: a sample of the whole split, stratified over its task types.
        won: stop after this many won episodes, balanced over task types; 0 runs each task once.
        conditions: the conditions, in turn; one that is given twice gets twice as many tasks.
        arms: additional arms, as ``LABEL:SETTING=VALUE,...``.
        settings: the settings of all arms; their seed is also that of the mistakes.
        mistakes: the rate of mistakes, 0 to 1.
        per: one line for each decision or for each episode.
        most: the maximal number of decisions of an episode; 0 for all.
        workers: worker processes; 0 runs in this process, None takes one per processor.
        show: print progress on standard error.
    """
    split, base = split or get_environment(env).learning_split, settings or RunContext()
    refuse_judging(env, split)
    parsed = map(parse_arm, [*conditions, *arms] or ABLATION)
    mix = [(label, make_arm(fields, base, f"--arm '{label}'")) for label, fields in parsed]
    if with_graph := [label for label, variant in mix if variant.graph]:
        raise RpmsError(f"--arm '{with_graph[0]}': the expert acts in our graph, not in another")
    _check_turns(per, (variant.settings().turns_shown for _, variant in mix))
    tasks = choose_tasks(env, split, limit, spread)
    if not limit and len(tasks) < won:  # a generated split has any number of tasks
        tasks = choose_tasks(env, split, won)
    plan = LessonPlan(
        env,
        split,
        tasks,
        {label: arm.settings().with_(temperature=mistakes) for label, arm in mix},
        truth=False,
        graphs={label: path_of(expert_graph, "") for label, _ in mix},
        labels=tuple(label for label, _ in mix),
        won=won,
    )
    processes = min(workers if workers is not None else os.cpu_count() or 1, len(plan.jobs()))
    execution = ExecutionOptions(processes, concurrency=AT_ONCE * max(processes, 1))
    folder = out.with_name(f"{out.name}.run")
    play_plan(plan, str(folder), execution, show=show, summary=False)
    run = read_run(folder)
    settled = remaining(plan, run.episodes, keep_failed=True)[1]
    logs = ((episode, read_log(run.log_file(episode))) for episode in settled)
    lessons = (lesson_of(episode, log, env, split, EXPERT) for episode, log in logs if log)
    counts = write_chat(lessons, out, per, most)
    rmtree(folder)
    return counts._replace(short=plan.lost(settled))


@dataclass(frozen=True)
class LessonPlan(RunPlan):
    """One arm for each task, in turn within each task type; or ``won`` successful episodes.

    With ``won`` every type has an equal share; a type with few tasks repeats them with other seeds.
    The n-th place of a share belongs to the type's n-th episode or, if that is lost, to the one a
    whole share further on. So the episodes do not depend on order or interruptions.

    Attributes:
        labels: the arms, in turn. Splits repeat their types in a fixed order, so that arms by the
            task's number would give each type only some of the arms.
        won: the number of successful episodes; 0 for every task once, won or lost.
    """

    labels: tuple[str, ...] = ()
    won: int = 0

    @cached_property
    def by_type(self) -> dict[str, list[Task]]:
        """The tasks of each type; first a sample that is spread over all of them."""
        kinds: defaultdict[str, list[Task]] = defaultdict(list)
        for task in self.tasks:
            kinds[get_environment(self.env).task_name(task)].append(task)
        share = ceil(self.won / len(kinds))
        first = {
            task["id"]
            for tasks in kinds.values()
            for task in one_of_each_stretch(tasks, min(share, len(tasks)))
        }
        for tasks in kinds.values():
            tasks.sort(key=lambda task: task["id"] not in first)
        return kinds

    @property
    def share(self) -> int:
        """The number of episodes of each type that must be won."""
        return ceil(self.won / len(self.by_type))

    def jobs(self) -> list[Job]:
        """The types alternate, so that an interrupted export is balanced, too."""
        ranks = [
            (number, rank, kind)
            for rank, (kind, tasks) in enumerate(self.by_type.items())
            for number in range(self.share or len(tasks))
        ]
        chosen = sorted(ranks)[: self.won or None]
        return [self._episode(kind, number) for number, _, kind in chosen]

    def following(self, job: Job, episode: Episode) -> Job | None:
        """The next episode for the place of a lost one, up to TRIES in all."""
        if not self.won or episode.success or episode.is_error:
            return None
        kind = get_environment(self.env).task_name(job.task)
        tasks = self.by_type[kind]
        number = tasks.index(job.task) + (job.repeat - 1) * len(tasks) + self.share
        return self._episode(kind, number) if number < TRIES * self.share else None

    def lost(self, settled: Iterable[Episode]) -> Counter[str]:
        """The number of missing episodes of each type's share."""
        kinds = {task["id"]: kind for kind, tasks in self.by_type.items() for task in tasks}
        return Counter(kinds[episode.task] for episode in settled if not episode.success)

    def _episode(self, kind: str, number: int) -> Job:
        """The episode of this number: the tasks in turn, each time under another arm."""
        tasks = self.by_type[kind]
        repeats, position = divmod(number, len(tasks))
        turn = number + repeats + [*self.by_type].index(kind)
        return Job(self.labels[turn % len(self.labels)], tasks[position], repeats + 1)
