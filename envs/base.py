"""What the graph asks of a world.

An ``Environment`` is stateless knowledge about a world (its tasks, how its texts read, how a
belief follows from them). A ``LiveGame`` is one running simulator. Nodes see only these two
protocols, so a new world is a new folder here and new YAML, never a branch inside a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from typing_extensions import TypedDict

from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.turn import Turn

BlockName = Literal["rules", "situation", "goal", "state", "memory"]


class Task(TypedDict):
    """One episode that can be played; plain data, so it fits in state and run files.

    Attributes:
        env: the environment's name.
        split: the list the task belongs to.
        index: its place in that list.
        id: a stable name, unique within the split. Always a string.
        goal: the task sentence.
        source: where the simulator finds it (a file, or a task name and variation).
    """

    env: str
    split: str
    index: int
    id: str
    goal: str
    source: str


class Outcome(NamedTuple):
    """What one command led to. Success is ``won``; ``done`` alone never counts as success.

    ``world`` is the simulator's state after it, where that is plain data.
    """

    observation: str
    done: bool
    won: bool
    score: float
    world: dict[str, Any] | None = None


class LiveGame(Protocol):
    """One running simulator."""

    def reset(self, task: Task) -> str:
        """Start the task and return the first observation."""

    def step(self, action: str) -> Outcome:
        """Play one action, given in the agent's wording."""

    def facts(self) -> Any:
        """The simulator's true state, for tests and metrics; never shown to the agent."""

    def close(self) -> None:
        """Free the simulator."""


@runtime_checkable
class Restorable(LiveGame, Protocol):
    """A simulator whose state is plain data: what its outcomes carry brings it back."""

    def restore(self, task: Task, world: Mapping[str, Any], observation: str) -> None:
        """Go where ``world`` was taken, just after ``observation`` was given.

        Raises:
            EnvironmentFault: it is not the same game, or not the same point of it.
        """


class Environment(Protocol):
    """A world the agent can act in.

    Attributes:
        name: as on the command line and in a run's input.
        max_steps: the step budget of the paper's experiments.
        max_tokens: how long a reply may be.
        max_live: how many simulators one process can hold, all on one thread and each rebuilt by
            replay when it is needed again; None where games are Restorable and independent
            objects, which need neither thread nor limit nor replay.
        prompts: the folder with system.md, examples/ and, where this world prints its blocks in
            its own way, templates/.
        blocks: the order of the knowledge blocks in the paper's listing for this world.
        graded: whether scores between lost and won mean something.
        learning_split: the tasks that experience is gathered on.
    """

    name: str
    max_steps: int
    max_tokens: int
    prompts: Path
    blocks: tuple[BlockName, ...]
    graded: bool
    learning_split: str

    @property
    def max_live(self) -> int | None:
        """See above."""

    def goal_types(self) -> list[str]:
        """Every goal type (or family) the world has; the manual must cover them all."""

    def command_verbs(self) -> list[str]:
        """First words of the simulator's own commands, in the agent's wording."""

    def splits(self) -> list[str]:
        """Names of the task lists that can be asked for; the first is played by default."""

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The split's tasks in their fixed order; raises RpmsError when it is not there."""

    def task_name(self, task: Task) -> str:
        """What the benchmark calls the task that this episode is one variation of."""

    def open_game(self) -> LiveGame:
        """A fresh simulator; reuse it for many tasks through ``reset``."""

    def parse_goal(self, sentence: str) -> GoalSpec:
        """Read the goal from the task sentence alone."""

    def first_belief(self, observation: str) -> Belief:
        """b_0 from the first observation."""

    def update_belief(self, belief: Belief, action: str, observation: str) -> Belief:
        """f_upd: deterministic pattern matching, no language model (Eq. 1)."""

    def failed(self, observation: str) -> bool:
        """Whether the environment's answer means that the action was refused."""

    def carried_out(self, action: str, belief: Belief, observation: str) -> str:
        """The command that was carried out in the end; empty if the world only asked back."""

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """Where the agent is within the goal."""

    def drift(self, belief: Belief, facts: Any) -> list[str]:
        """Statements of the belief that the true facts contradict; a metric, never a hint."""

    def true_state(self, facts: Any) -> dict[str, str]:
        """The true state in a few words, for logs and viewers.

        A metric like ``drift``, never a hint: nothing the agent reads may come from here.
        """

    def describe_belief(self, belief: Belief, goal: GoalSpec) -> list[str]:
        """The lines of the [Current State] block."""

    def print_state(self, belief: Belief) -> str:
        """The printed state signature."""

    def compat(self, entry: Mapping[str, Any], belief: Belief) -> str:
        """COMPAT: why a memory recorded in another state does not fit this one, else empty."""

    def requirements(self, belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
        """What a success snippet writes down of the state that its actions started from."""

    def read_action(self, text: str) -> str:
        """Bring loose wording to the canonical action text; unknown text passes through."""
