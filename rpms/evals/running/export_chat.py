"""Episodes to learn from as chat messages: what TRL, Unsloth, Axolotl and OpenAI read.

Those of a run, as they were played or as the expert corrects them, or of the expert, who plays for
the purpose. A line is ``{"messages": [...]}``. Every reply carries ``weight``: 1 where it is to be
learned, 0 where it only stands in the conversation (the solved example, earlier turns, mistakes).
OpenAI reads it so, Axolotl by ``message_field_training: weight``, and chat templates pass it over.
What else is known of a line stands in the same line of a second file.
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
from rpms.evals.running.expert import corrections, llm_call
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
"""Episodes that a worker has in flight: nobody waits for a model, only for the next job."""
TRIES = 4
"""Episodes that may be lost in a row, less one, before a place of a type's share stays empty."""
Per = Literal["decision", "episode"]
PER: tuple[Per, ...] = ("decision", "episode")
Document = dict[str, Any]


class Written(NamedTuple):
    """What was written; ``short`` counts by task type what is missing of its share."""

    episodes: int = 0
    lost: int = 0
    lines: int = 0
    targets: int = 0
    short: Mapping[str, int] = {}


class DecidedStep(NamedTuple):
    """One prompt and its reply; a reply that is no ``target`` is there to be recovered from."""

    step: int
    prompt: Sequence[Message]
    reply: str
    target: bool = True


class Lesson(NamedTuple):
    """One episode to learn from, with what it was."""

    about: Mapping[str, Any]
    decisions: Sequence[DecidedStep]
    won: bool


def prompt_of(log: Mapping[str, Any], step: Mapping[str, Any]) -> list[Message]:
    """A step's prompt; empty where the episode broke off before it."""
    texts = log["messages"]
    return [Message(role=role, content=texts[place]) for role, place in step.get("prompt", [])]


def lesson_of(
    episode: Episode, log: Mapping[str, Any], env: str, split: str, player: str
) -> Lesson:
    """A finished episode; what was refused, asked again or replaced is no target.

    What the expert does is right by the manual, even where the world refuses it.
    """
    decisions = []
    for step in log["steps"]:
        prompt = prompt_of(log, step)
        verdicts = {decision["verdict"] for decision in step.get("decisions", [])}
        sound = bool(step["action"]) and (player == EXPERT or not step["failed"])
        if prompt and step["reply"]:
            target = sound and verdicts <= {"accepted"}
            decisions.append(DecidedStep(step["step"], prompt, step["reply"], target))
    return Lesson(_about(episode, env, split, player), decisions, episode.success)


def correction_of(episode: Episode, log: Mapping[str, Any], env: str, split: str) -> Lesson:
    """Somebody's episode, won or lost: its prompts, each with what the expert would have said."""
    goal = get_environment(env).parse_goal(episode.goal)
    replies = corrections(env, goal, log["steps"])
    prompts = ((step["step"], prompt_of(log, step), reply) for step, reply in replies)
    decisions = [DecidedStep(*decision) for decision in prompts if decision[1]]
    return Lesson(_about(episode, env, split, EXPERT), decisions, won=True)


def _about(episode: Episode, env: str, split: str, player: str) -> Document:
    return {
        "env": env, "split": split, "task": episode.task, "condition": episode.condition,
        "player": player,
    }  # fmt: skip


def lines_of(lesson: Lesson, per: Per, most: int = 0) -> Iterator[tuple[Document, Document]]:
    """The lines of a won episode, each with what is known of it; none with nothing to learn.

    ``most`` bounds its decisions, evenly from all of it, lest a few long episodes outweigh others.
    """
    decisions = lesson.decisions
    if not lesson.won or not any(decision.target for decision in decisions):
        return
    if per == "episode":
        wrong = [decision.step for decision in decisions if not decision.target]
        about = {**lesson.about, "steps": decisions[-1].step, "not_learned": wrong}
        yield {"messages": _conversation(decisions)}, about
        return
    learned = [decision for decision in decisions if decision.target]
    for decision in evenly(learned, most or len(learned)):
        messages = [*_unlearned(decision.prompt), _reply(decision)]
        yield {"messages": messages}, {**lesson.about, "step": decision.step}


def _conversation(decisions: Sequence[DecidedStep]) -> list[Document]:
    """The first prompt, then each reply and what came next as the newest message of a prompt."""
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
    """Plain ASCII: some readers take a line separator inside a text for a line's end."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def about_file(out: Path) -> Path:
    """Where the second file lies: beside the first."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.meta.jsonl")


def write_chat(
    lessons: Iterable[Lesson], out: Path, per: Per = "decision", most: int = 0
) -> Written:
    """Write lessons as they come, holding one at a time; both files are whole or not there."""
    done = Written()
    with whole_file(out) as chat, whole_file(about_file(out)) as meta:
        for lesson in lessons:
            lines = [*lines_of(lesson, per, most)]
            messages = [message for line, _ in lines for message in line["messages"]]
            chat.writelines(packed(line) for line, _ in lines)
            meta.writelines(packed(about) for _, about in lines)
            done = Written(
                done.episodes + 1,
                done.lost + (not lesson.won),
                done.lines + len(lines),
                done.targets + sum(message.get("weight", 0) for message in messages),
            )
    return done


def _check_turns(per: Per, histories: Iterable[Any]) -> None:
    """A whole episode as one conversation is nothing that was played where turns were left out."""
    if per == "episode" and any(history != ALL_TURNS for history in histories):
        raise RpmsError("an arm has a history of its own, not all turns: give --per decision")


def known_conditions(run: Run, typed: Collection[str]) -> Collection[str]:
    """The labels that were meant, all by default; refused where the run has none of that name."""
    conditions = [find_label(label, run.conditions) for label in typed]
    if unknown := set(conditions) - set(run.conditions):
        raise RpmsError(
            f"no condition '{min(unknown)}' in {run.folder}; it has {', '.join(run.conditions)}"
        )
    return conditions or run.conditions


def export_chat(
    run: Run, out: Path, conditions: Collection[str] = (), per: Per = "decision", most: int = 0,
    corrected: bool = False,
) -> Written:  # fmt: skip
    """Write the won episodes of a run as training data; or all of them as the expert corrects."""
    manifest, labels = run.manifest, known_conditions(run, conditions)
    env, split = manifest.env, manifest.split
    refuse_judging(env, split)
    _check_turns(per, (manifest.conditions[name].get("history", ALL_TURNS) for name in labels))
    if corrected and per == "episode":
        raise RpmsError("what the expert corrects was not played on: give --per decision")
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
) -> Written:
    """Let the expert play and write its decisions; called again, go on where it was interrupted.

    Args:
        env: the world.
        out: the file to write; until it is there, what was played lies in a run folder beside it.
        split: the tasks; those the world itself learns on by default.
        limit: how many of them; 0 for all.
        spread: a sample of the whole split, stratified over its task types.
        won: play until so many episodes are won, as many of each task type; 0 plays each task once.
        conditions: who plays, in turn; one that is named twice gets twice as much.
        arms: more of them, as ``LABEL:SETTING=VALUE,...``.
        settings: what every arm begins with; its seed is that of the mistakes, too.
        mistakes: how often it errs, 0 to 1.
        per: a line for each decision or episode.
        most: of an episode so many decisions; 0 for all.
        workers: processes; 0 plays in this one, None takes one per processor.
        show: say on standard error how it goes.
    """
    split, base = split or get_environment(env).learning_split, settings or RunContext()
    refuse_judging(env, split)
    parsed = map(parse_arm, [*conditions, *arms] or ABLATION)
    mix = [(label, make_arm(fields, base, f"--arm '{label}'")) for label, fields in parsed]
    _check_turns(per, (variant.context.turns_shown for _, variant in mix))
    tasks = choose_tasks(env, split, limit, spread)
    if not limit and len(tasks) < won:  # a list without end gives more where more are wanted
        tasks = choose_tasks(env, split, won)
    plan = LessonPlan(
        env,
        split,
        tasks,
        {label: arm.settings().with_(temperature=mistakes) for label, arm in mix},
        truth=False,
        nodes={label: {**arm.paths(), "llm_call": path_of(llm_call, "")} for label, arm in mix},
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
    done = write_chat(lessons, out, per, most)
    rmtree(folder)
    return done._replace(short=plan.lost(settled))


@dataclass(frozen=True)
class LessonPlan(RunPlan):
    """One arm for each task, in turn within each task type; or so many episodes ``won``.

    Of those every type has an equal share, a type of few tasks by playing them again with another
    seed. The n-th place of a share is filled by the type's n-th episode or, where that is lost,
    the one a whole share further on: what is played depends on no luck, order or interruption.

    Attributes:
        labels: who plays, in turn. Splits repeat their types in a fixed order; arms by the task's
            number alone would give each type only some of the arms.
        won: how many in all; 0 for every task once, won or lost.
    """

    labels: tuple[str, ...] = ()
    won: int = 0

    @cached_property
    def by_type(self) -> dict[str, list[Task]]:
        """Each type's tasks, those that are spread over all of it first."""
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
        """How many episodes of each type are to be won."""
        return ceil(self.won / len(self.by_type))

    def jobs(self) -> list[Job]:
        """All types by turns, so that what is there early is balanced, too."""
        places = [
            (number, rank, kind)
            for rank, (kind, tasks) in enumerate(self.by_type.items())
            for number in range(self.share or len(tasks))
        ]
        chosen = sorted(places)[: self.won or None]
        return [self._episode(kind, number) for number, _, kind in chosen]

    def following(self, job: Job, episode: Episode) -> Job | None:
        """Another episode of the type in the place of a lost one, but not for ever."""
        if not self.won or episode.success or episode.is_error:
            return None
        kind = get_environment(self.env).task_name(job.task)
        tasks = self.by_type[kind]
        number = tasks.index(job.task) + (job.repeat - 1) * len(tasks) + self.share
        return self._episode(kind, number) if number < TRIES * self.share else None

    def lost(self, settled: Iterable[Episode]) -> Counter[str]:
        """By type, how many places of its share stayed empty."""
        kinds = {task["id"]: kind for kind, tasks in self.by_type.items() for task in tasks}
        return Counter(kinds[episode.task] for episode in settled if not episode.success)

    def _episode(self, kind: str, number: int) -> Job:
        """A type's episode of that number: its tasks in turn, and again under another arm."""
        tasks = self.by_type[kind]
        again, place = divmod(number, len(tasks))
        turn = number + again + [*self.by_type].index(kind)
        return Job(self.labels[turn % len(self.labels)], tasks[place], again + 1)
