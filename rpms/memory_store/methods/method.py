"""The interface of a memory method: recall, select, render, learn, and carry between trials.

Our own memory implements it. To add another, subclass ``MemoryMethod`` and give its import path as
``RunContext.memory_method``. Its recalls pass the same state filter and arbiter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from langgraph.store.base import BaseStore

from rpms.memory_store import Header, write_snapshot
from rpms.memory_store.grounding import GroundingContext
from rpms.memory_store.retrieval import Similarity
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord, Message

# Calls the run's model, for methods whose texts a model writes.
Ask = Callable[[list[Message]], Awaitable[str]]
# Renders a template of the environment, or the shared template of that name.
Fill = Callable[..., str]


class RecallRequest(NamedTuple):
    """The input of ``recall`` at one step.

    Attributes:
        env: the environment's name.
        moment: goal, sub-goal, belief, and the environment's commands.
        context: the run's settings: memory file, theta, k.
        cross_trial_memory: the memory of earlier trials of this task; empty in the first trial.
        store: LangGraph's store, if the deployment has one.
        begun: True after the first step of the episode.
        similarity: a function of two goals in place of d_gamma.
    """

    env: str
    moment: GroundingContext
    context: RunContext
    cross_trial_memory: Mapping[str, Any] = {}
    store: BaseStore | None = None
    begun: bool = False
    similarity: Similarity | None = None


class Learned(NamedTuple):
    """A new memory; ``unread`` counts the parts of model replies that could not be read."""

    entries: Sequence[Any]
    unread: int = 0


class Origin(NamedTuple):
    """The origin of a memory, for the header of its file."""

    sources: Sequence[str] = ()
    learned_by: Sequence[str] = ()
    rounds: int = 0
    written_by: str = ""


class MemoryMethod(ABC):
    """The base class of memory methods.

    Attributes:
        name: the name in ``memory_method`` and in the header of its file.
        title: the part of a published method that it implements.
        cumulative: True if it keeps a memory from trial to trial of one task. The memory of other
            methods is frozen: it is learned in advance, and trials do not change it.
        learns: True if it can learn in advance, from episodes of other tasks.
        needs_file: True if it needs a memory that was learned in advance.
        needs_model: True if a language model writes its texts, in ``learn`` or in ``carry``. A run
            whose model cannot write texts is an error.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    cumulative: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    needs_file: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False

    @abstractmethod
    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return the candidates for this step, best first; the token budget drops the last ones."""

    def truncated(self, request: RecallRequest) -> dict[str, int]:
        """Count the candidates that ``recall`` does not list, by outcome."""
        return {}

    def select(self, recalls: Sequence[Recall], context: RunContext) -> list[Recall]:
        """Select memories for the prompt, after the state filter and the arbiter.

        Memories that are left out stay in the list, marked as dropped.
        """
        return list(recalls)

    @abstractmethod
    def check(self, env: str, context: RunContext) -> None:
        """Raise ``RpmsError`` before the first step if the memory is missing or does not fit."""

    @abstractmethod
    def render(self, recalls: Sequence[Recall], fill: Fill) -> str:
        """Return the text of the memory block for the selected memories."""

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        """Learn a memory from finished episodes, won and lost; not needed if ``learns`` is False.

        ``ask`` is None if the run's model cannot write texts. If the method has a third parameter
        ``manual``, it receives the run's rules.
        """
        raise NotImplementedError

    def save(self, file: Path, env: str, learned: Learned, origin: Origin) -> Header:
        """Write a learned memory to a file."""
        return write_snapshot(
            file, env, learned.entries, method=self.name, unread=learned.unread, **origin._asdict()
        )

    async def carry(
        self, cross_trial_memory: Mapping[str, Any], record: EpisodeRecord, ask: Ask
    ) -> dict[str, Any]:
        """Return the memory for the next trial of this task, as plain data.

        If the method has a further parameter ``manual``, it receives the run's rules.
        """
        return {}
