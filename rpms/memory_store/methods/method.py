"""What a memory method is: recall for this step, render, learn from episodes, carry between trials.

Our own memory is one of them. Another is a class of this shape, named by its import path in
``RunContext.memory_method``; whatever it recalls goes through the same state filter and arbiter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from langgraph.store.base import BaseStore

from rpms.memory_store import Header, write_snapshot
from rpms.memory_store.grounding import GroundingContext
from rpms.rules import Manual
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord, Message

# The run's own model, for methods that have their texts written.
Ask = Callable[[list[Message]], Awaitable[str]]
# Prints a template of the world, or else the shared one of that name.
Fill = Callable[..., str]


class RecallRequest(NamedTuple):
    """What a method is asked with at one step.

    Attributes:
        env: the world.
        now: goal, sub-goal, belief, and what may be known of the rules.
        context: the run's settings: which memory file, theta, k.
        cross_trial_memory: what earlier trials of this very task left behind; empty in the first.
        store: the deployment's store, where there is one.
        begun: whether the episode has had a step.
    """

    env: str
    now: GroundingContext
    context: RunContext
    cross_trial_memory: Mapping[str, Any] = {}
    store: BaseStore | None = None
    begun: bool = False


class Learned(NamedTuple):
    """A memory fresh from its episodes; ``unread`` counts parts of replies without a known form."""

    entries: Sequence[Any]
    unread: int = 0


class Origin(NamedTuple):
    """Where a memory comes from, for the header of its file."""

    sources: Sequence[str] = ()
    learned_by: Sequence[str] = ()
    rounds: int = 0
    written_by: str = ""


class PrintedRules(NamedTuple):
    """The manual of a run, and the ids of the rules that stand in this prompt."""

    manual: Manual
    ids: frozenset[str]


class MemoryMethod(ABC):
    """One way to remember.

    Attributes:
        name: as ``memory_method`` and the header of its file have it.
        title: what of a published method it is, where that is not all of it.
        cumulative: it keeps something from trial to trial of one task. Others are frozen: what
            they know was learned before, and trials change nothing.
        learns: it can be learned beforehand, from episodes of other tasks.
        needs_file: it has nothing to say without a memory learned before.
        needs_model: its texts are written by a language model, whether in learning or carrying: a
            run whose model writes none is refused.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    cumulative: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    needs_file: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False

    @abstractmethod
    def recall(self, request: RecallRequest) -> list[Recall]:
        """What is remembered for this step, best first; the last goes first for want of room."""

    def truncated(self, request: RecallRequest) -> dict[str, int]:
        """Candidates too many to be listed one by one: how many, by their outcome."""
        return {}

    def select(
        self, recalls: Sequence[Recall], context: RunContext, rules: PrintedRules | None = None
    ) -> list[Recall]:
        """What the prompt has room for in principle; asked behind the state filter and the arbiter.

        Whatever is left out stays in the list, with its outcome. ``rules`` is what the same prompt
        prints of the manual, where rules are on.
        """
        return list(recalls)

    @abstractmethod
    def check(self, env: str, context: RunContext) -> None:
        """Refuse a memory that is missing, or of another method or world, before the first step."""

    @abstractmethod
    def render(self, recalls: Sequence[Recall], fill: Fill) -> str:
        """The memory block's text, with what the state filter and the arbiter left."""

    @abstractmethod
    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """A memory from finished episodes, won and lost.

        ``ask`` is None where the run's model writes no texts. One that takes ``manual`` as well is
        given the run's rules.
        """

    def save(self, file: Path, env: str, learned: Learned, origin: Origin) -> Header:
        """Freeze what was learned, in one step."""
        return write_snapshot(
            file, env, learned.entries, method=self.name, unread=learned.unread, **origin._asdict()
        )

    async def carry(
        self, cross_trial_memory: Mapping[str, Any], record: EpisodeRecord, ask: Ask
    ) -> dict[str, Any]:
        """What goes on to the next trial of this task, as plain data; nothing for a frozen one.

        One that takes ``manual`` as well is given what the run may know of the rules.
        """
        return {}
