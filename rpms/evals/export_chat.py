"""Episodes to learn from as chat messages: what TRL, Unsloth, Axolotl and OpenAI read.

Those of a run, or of the expert, who plays for the purpose. A line is ``{"messages": [...]}``.
Every reply carries ``weight``: 1 where it is to be learned, 0 where it only stands in the
conversation (the solved example, earlier turns, mistakes). OpenAI reads it so, Axolotl by
``message_field_training: weight``, and chat templates pass it over. What else is known of a line
stands in the same line of a second file.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rpms.envs import get_environment
from rpms.evals.arms import parse_arm
from rpms.evals.episode import EpisodeResult
from rpms.evals.expert import llm_call, refuse_judged
from rpms.evals.export import known_conditions, logged_episodes, packed, prompt_of
from rpms.evals.plan import Job, RunPlan, choose_tasks, evenly
from rpms.evals.records import Episode, JobKey
from rpms.evals.run_folder import Run
from rpms.evals.runner import Dispatcher, local_pool
from rpms.nodes.manual import manual_for
from rpms.nodes.memories import check_memory
from rpms.vocabulary.context import ABLATION, ALL_TURNS, RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import whole_file
from rpms.vocabulary.imports import path_of
from rpms.vocabulary.output import say_place
from rpms.vocabulary.turn import Message

EXPERT = "expert"
AT_ONCE = 2
"""Episodes that a worker has in flight: nobody waits for a model, only for the next job."""
Per = Literal["decision", "episode"]
PER: tuple[Per, ...] = ("decision", "episode")
Document = dict[str, Any]


class Written(NamedTuple):
    """How far the writing is; ``total`` episodes are to come, where that is known."""

    episodes: int = 0
    lost: int = 0
    lines: int = 0
    targets: int = 0
    total: int = 0


Tell = Callable[[Written], None]


class Decided(NamedTuple):
    """One prompt and its reply; a reply that is no ``target`` is there to be recovered from."""

    step: int
    prompt: Sequence[Message]
    reply: str
    target: bool = True


class Lesson(NamedTuple):
    """One episode to learn from, with what it was."""

    about: Mapping[str, Any]
    decisions: Sequence[Decided]
    won: bool


def lesson_of(
    episode: Episode, log: Mapping[str, Any], env: str, split: str, player: str
) -> Lesson:
    """A finished episode; what was refused, asked again or replaced is no target.

    What the expert does is right by the manual, even where the world refuses it.
    """
    about = {
        "env": env, "split": split, "task": episode.task, "condition": episode.condition,
        "player": player,
    }  # fmt: skip
    decisions = []
    for step in log["steps"]:
        prompt = prompt_of(log, step)
        verdicts = {decision["verdict"] for decision in step.get("decisions", [])}
        sound = bool(step["action"]) and (player == EXPERT or not step["failed"])
        if prompt and step["reply"]:
            target = sound and verdicts <= {"accepted"}
            decisions.append(Decided(step["step"], prompt, step["reply"], target))
    return Lesson(about, decisions, episode.success)


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


def _conversation(decisions: Sequence[Decided]) -> list[Document]:
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


def _reply(decision: Decided) -> Document:
    return {"role": "assistant", "content": decision.reply, "weight": int(decision.target)}


def about_file(out: Path) -> Path:
    """Where the second file lies: beside the first."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.meta.jsonl")


def write_chat(
    lessons: Iterable[Lesson], out: Path, per: Per = "decision", most: int = 0,
    tell: Tell = lambda _: None, total: int = 0,
) -> Written:  # fmt: skip
    """Write lessons as they come, holding one at a time; both files are whole or not there."""
    done = Written(total=total)
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
                total,
            )
            tell(done)
    return done


def _check_turns(per: Per, histories: Iterable[Any]) -> None:
    """A whole episode as one conversation is nothing that was played where turns were left out."""
    if per == "episode" and any(history != ALL_TURNS for history in histories):
        raise RpmsError("an arm has a history of its own, not all turns: give --per decision")


def export_chat(
    run: Run, out: Path, conditions: Collection[str] = (), per: Per = "decision", most: int = 0,
    tell: Tell = lambda _: None,
) -> Written:  # fmt: skip
    """Write the won episodes of a run as training data."""
    manifest, labels = run.manifest, known_conditions(run, conditions)
    refuse_judged(manifest.env, manifest.split)
    _check_turns(per, (manifest.conditions[name].get("history", ALL_TURNS) for name in labels))
    lessons = (
        lesson_of(episode, log, manifest.env, manifest.split, run.model(episode.condition))
        for _, episode, log in logged_episodes(run, labels)
    )
    return write_chat(lessons, out, per, most, tell)


def export_expert(
    env: str,
    out: Path,
    *,
    split: str = "",
    limit: int = 0,
    spread: bool = False,
    conditions: Sequence[str] = (),
    arms: Sequence[str] = (),
    settings: RunContext | None = None,
    mistakes: float = 0.0,
    per: Per = "decision",
    most: int = 0,
    workers: int | None = None,
    tell: Tell = lambda _: None,
) -> Written:
    """Let the expert play and write its decisions.

    Args:
        env: the world.
        out: the file to write.
        split: the tasks; those the world itself learns on by default.
        limit: how many of them; 0 for all.
        spread: evenly from the whole split.
        conditions: who plays, in turn; one that is named twice gets twice as much.
        arms: more of them, as ``LABEL:SETTING=VALUE,...``.
        settings: what every arm begins with; its seed is that of the mistakes, too.
        mistakes: how often it errs, 0 to 1.
        per: a line for each decision or episode.
        most: of an episode so many decisions; 0 for all.
        workers: processes; 0 plays in this one, None takes one per processor.
        tell: called after each episode.
    """
    split, base = split or get_environment(env).learning_split, settings or RunContext()
    refuse_judged(env, split)
    mix = [parse_arm(text, base) for text in [*conditions, *arms] or ABLATION]
    _check_turns(per, (variant.context.history for _, variant in mix))
    for _, variant in mix:  # a wrong file is an answer at once
        manual_for(env, variant.settings())
        check_memory(env, variant.settings())
    plan = RunPlan(
        env,
        split,
        choose_tasks(env, split, limit, spread),
        {label: arm.settings().with_(temperature=mistakes) for label, arm in mix},
        truth=False,
        nodes={label: {**arm.paths(), "llm_call": path_of(llm_call, "")} for label, arm in mix},
    )
    jobs = assign(plan, [label for label, _ in mix])
    processes = workers if workers is not None else os.cpu_count() or 1
    pool = local_pool(plan, min(processes, len(jobs)))
    try:
        lessons = _expert_lessons(Dispatcher(pool, AT_ONCE, jobs).play(), jobs)
        return write_chat(lessons, out, per, most, tell, len(jobs))
    finally:
        pool.close()


def assign(plan: RunPlan, labels: Sequence[str]) -> list[Job]:
    """One arm for each task, in turn within each goal type.

    Splits repeat their types in a fixed order; arms by the task's number alone would give each
    type only some of the arms.
    """
    world = get_environment(plan.env)
    seen: Counter[str] = Counter()
    ranks: defaultdict[str, int] = defaultdict(lambda: len(ranks))
    jobs = []
    for task in plan.tasks:
        goal_type = world.parse_goal(task["goal"])["type"]
        jobs.append(Job(labels[(seen[goal_type] + ranks[goal_type]) % len(labels)], task))
        seen[goal_type] += 1
    return jobs


def _expert_lessons(
    results: Iterator[tuple[Job, EpisodeResult]], jobs: Sequence[Job]
) -> Iterator[Lesson]:
    """In the order of the jobs, however many processes play them."""
    early: dict[JobKey, EpisodeResult] = {}
    for job in jobs:
        while job.key not in early:
            played, result = next(results)
            early[played.key] = result
        line, steps = early.pop(job.key)
        if line.is_error:
            say_place(line.error_place, "the expert's episode broke off")
            raise RpmsError(f"{line.condition}, {line.task}: {line.error}")
        yield lesson_of(line, json.loads(gzip.decompress(steps)), line.env, line.split, EXPERT)
