"""Lessons for a model of one's own: the guard's policy plays, and its reasons are the thoughts.

The expert plays what the manual's procedure has for the sub-goal, the best first, as the control
``first`` does under the policy guard; while it searches with memory on, it goes where memory says
such things were found. It needs no model. Only tasks that are there to be learned from are played:
a model tuned on the games it is later judged by shows nothing. Many processes may play; the order
of the lessons does not depend on how many.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from rpms.envs import Task, get_environment
from rpms.evals.arms import Paths, Variant, load_stages
from rpms.graph.build import Swapped, build_graph
from rpms.nodes.action_arbitration import situation
from rpms.nodes.reset_env import make_reset_env
from rpms.nodes.state import EpisodeInput, EpisodeState
from rpms.policy import DecisionPoint, serving_actions, veto
from rpms.rules.semantics import forbidden_by, match_action
from rpms.vocabulary.belief import fingerprint
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import surviving
from rpms.vocabulary.turn import Message, Usage

JUDGED = {"valid", "validation", "dev", "eval", "test"}
"""Parts of a split's name that say its tasks are for judging, whatever else the name says."""
NOTHING = Usage(prompt_tokens=0, cached_tokens=0, output_tokens=0, replayed=False)
TRIES = 20
LOST = "nothing else is left to try"


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


class Assignment(NamedTuple):
    """One episode for the expert to play; plain data, so that another process can play it."""

    task: Task
    label: str
    context: RunContext
    nodes: Paths
    mistakes: float
    seed: int


def may_be_trained_on(env: str, split: str) -> bool:
    """Whether a split's tasks may end up in a model's weights: generated and training tasks.

    Stricter than for memory, where "seen" is enough: ALFWorld's valid_seen is a test split.
    """
    parts = {*split.split("_")}
    known = split == get_environment(env).learning_split or parts & {"generated", "train"}
    return bool(known) and not parts & JUDGED


def refuse_judged(env: str, split: str) -> None:
    """Say which splits there are for it, instead of training on one that judges."""
    if not may_be_trained_on(env, split):
        others = [name for name in get_environment(env).splits() if may_be_trained_on(env, name)]
        raise RpmsError(
            f"nothing is trained on {env} {split}, whose tasks are there to judge by; "
            f"choose from {', '.join(others)}"
        )


def assign(
    tasks: Sequence[Task], arms: Sequence[tuple[str, Variant]], mistakes: float, seed: int
) -> Iterator[Assignment]:
    """One arm for each task, in turn within each goal type.

    Splits repeat their types in a fixed order; arms by the task's number alone would give each
    type only some of the arms.
    """
    seen: Counter[str] = Counter()
    ranks: defaultdict[str, int] = defaultdict(lambda: len(ranks))
    for task in tasks:
        goal_type = get_environment(task["env"]).parse_goal(task["goal"])["type"]
        label, arm = arms[(seen[goal_type] + ranks[goal_type]) % len(arms)]
        seen[goal_type] += 1
        yield Assignment(task, label, arm.settings(), arm.paths(), mistakes, seed)


def play(assignment: Assignment) -> Lesson:
    """The expert's episode. The same assignment gives the same lesson, in whatever order."""
    task = assignment.task
    rng = random.Random(f"{assignment.seed}|{assignment.label}|{task['split']}|{task['id']}")
    expert = Expert(rng, assignment.mistakes)
    stages: dict[str, Swapped] = {"reset_env": make_reset_env(lambda _: task)}
    graph = build_graph({**stages, **load_stages(assignment.nodes), "llm_call": expert.llm_call})
    result = graph.invoke(
        EpisodeInput(env=task["env"], split=task["split"], task=task["id"]),
        context=assignment.context,
    )
    about = {
        "env": task["env"], "split": task["split"], "task": task["id"],
        "condition": assignment.label, "player": "expert",
    }  # fmt: skip
    return Lesson(about, expert.decisions, bool(result["success"]))


class Expert:
    """Stands in for the model in one episode, and notes what it was asked and what it said."""

    def __init__(self, rng: random.Random, mistakes: float) -> None:
        """``mistakes`` is how often it does something else instead, 0 to 1."""
        self._rng = rng
        self._mistakes = mistakes
        self._played: defaultdict[str, list[str]] = defaultdict(list)
        self.decisions: list[Decided] = []

    def llm_call(self, state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        """The stage of that name."""
        here = self._played[fingerprint(state["belief"])]
        now = situation(state, runtime.context)._replace(repeated_here=tuple(here))
        action, reason = self._choose(now, state)
        target = reason != LOST
        if self._errs(state) and (wrong := self._mistake(now, action)):
            action, target = wrong, False
        here.append(action)
        text = f"Thought: {reason[0].upper()}{reason[1:]}.\nAction: {action}"
        self.decisions.append(Decided(state["steps"] + 1, state["prompt"], text, target))
        return EpisodeState(reply=text, usage=NOTHING, action="")

    def _choose(self, now: DecisionPoint, state: EpisodeState) -> tuple[str, str]:
        choices = serving_actions(now)
        if not choices:
            return now.manual.domain.idle or "look around", LOST
        best = choices[0]
        if there := _as_remembered(now, best["action"], state):
            return there, f"{now.sub_goal['target']} was found in such places before"
        return best["action"], best["reason"]

    def _errs(self, state: EpisodeState) -> bool:
        """Never at the start, and never twice in a row: every mistake is followed by recovery."""
        if not state["history"] or not self.decisions[-1].target:
            return False
        return self._rng.random() < self._mistakes

    def _mistake(self, now: DecisionPoint, right: str) -> str:
        """An action of the manual with names that are known, but not the right one.

        What a rule forbids may end the episode for good, and nothing could be learned from that.
        """
        belief = now.belief
        known = [*belief["places"], *belief["last_seen"], *belief["holding"], *belief["visible"]]
        for _ in range(TRIES if known else 0):
            rule = self._rng.choice(now.manual.actions)
            action = rule.syntax.format(**{p: self._rng.choice(known) for p in rule.parameters})
            if action != right and forbidden_by(now.manual, action, now.goal) is None:
                return action
        return ""


def _as_remembered(now: DecisionPoint, action: str, state: EpisodeState) -> str:
    """The same step, but to the place where memory has found the thing; empty where it has none.

    A step that is about one place, not searched so far, is a step of a search.
    """
    rule, names = match_action(now.manual, action) or (None, {})
    left = {*now.belief["places"]} - {*now.belief["searched"]}
    if rule is None or len(names) != 1 or not {*names.values()} <= left:
        return ""
    for recall in surviving(state["recalls"]):
        if recall["entry"].get("object") != now.sub_goal["target"]:
            continue
        for said in recall["advice"]["places"]:  # "shelf 1, shelf 2 (3 of 4 held one)"
            place = re.split(r"[,(]", said)[0].strip()
            there = rule.syntax.format(**dict.fromkeys(names, place))
            if place in left and veto(now, there) is None:
                return there
    return ""


AHEAD = 4
"""Lessons that each process may be ahead of the one that is written: memory stays bounded."""


def taught(assignments: Iterable[Assignment], workers: int) -> Iterator[Lesson]:
    """The lessons in the order of their assignments; without workers they are played here."""
    if workers < 1:
        yield from map(play, assignments)
        return
    # A fresh interpreter: forking would copy the locks of this process's threads.
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_end_with_parent)
    left = iter(assignments)
    waiting: deque[Future[Lesson]] = deque()

    def submit(count: int) -> None:
        with _deaf_children():
            waiting.extend(pool.submit(play, one) for one in islice(left, count))

    try:
        submit(workers * AHEAD)
        while waiting:
            lesson = waiting.popleft().result()
            submit(1)
            yield lesson
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Ctrl-C is for the process that writes, which ends the others; here it comes a little later.

    A process that is started inherits which signals are held back.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """Nobody plays on for a writer that is gone, not even one who had not begun by then.

    What is waited for is a pipe that only the parent holds open. A signal at its death would not
    come to a process that asks for it too late.
    """
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()
