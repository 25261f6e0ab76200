"""The interface between the graph and a world.

An ``Environment`` is stateless knowledge about a world: its tasks, the parsing of its texts, the
update of the belief. A ``LiveGame`` is one running simulator. Nodes use only these two, so a new
world is a folder with its rules and prompts, and never a branch in a node.

The abstract methods are the minimum. The others have defaults that suit a world with one hand and
rejections without a reason; metrics are optional.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from typing_extensions import TypedDict

from rpms.vocabulary.belief import Belief, empty_belief, kind_of, objects_at
from rpms.vocabulary.calls import Call
from rpms.vocabulary.categories import Categories, read_categories
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_text
from rpms.vocabulary.goal import (
    PRINTED,
    GoalSignature,
    GoalSpec,
    Keys,
    SubGoal,
    Target,
    hand,
    hand_was_empty,
    read_signature,
)
from rpms.vocabulary.turn import Turn

if TYPE_CHECKING:
    from rpms.rules.manual import Manual

BlockName = Literal["rules", "situation", "goal", "state", "memory"]
NOTHING_HAPPENS = "Nothing happens."


class Task(TypedDict):
    """One task that can be run as an episode; plain data, so it fits in state and run files.

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
    """The result of one action. Success is ``won``; ``done`` alone never counts as success.

    ``state`` is the simulator's state after it, if that is plain data.
    """

    observation: str
    done: bool
    won: bool
    score: float
    state: dict[str, Any] | None = None


class LiveGame(ABC):
    """One running simulator; everything but ``reset`` and ``step`` is optional."""

    @abstractmethod
    def reset(self, task: Task) -> str:
        """Start the task and return the first observation."""

    @abstractmethod
    def step(self, action: str) -> Outcome:
        """Execute one action, in the agent's wording."""

    def close(self) -> None:  # noqa: B027
        """Free the simulator."""

    def restore(self, task: Task, state: Mapping[str, Any], observation: str) -> None:
        """Restore the point at which an ``Outcome`` had ``state``, just after ``observation``.

        Games whose outcomes have no state are restored by a replay.

        Raises:
            EnvironmentFault: the state belongs to another game or another point of it.
        """
        raise NotImplementedError

    def commands(self) -> list[str]:
        """Every action that would not be rejected now, in the agent's wording."""
        return []

    def tools(self) -> list[Any]:
        """The tools through which an agent of LangChain can act in it."""
        return []

    def won(self) -> bool:
        """Return whether the task is solved, for agents that act through ``tools``."""
        return False

    # Metrics only: nothing that the agent reads may come from here.

    def facts(self) -> Any:
        """The simulator's true state."""
        return None

    def demands(self, actions: Sequence[str]) -> list[dict[str, bool] | None] | None:
        """The preconditions of actions by the simulator's rules, each with whether it holds.

        None if its rules cannot be read; None for an action that they do not have.
        """
        return None


class Planted(NamedTuple):
    """A call of a demonstration's scripted model that violates the rules.

    It is the plan's call of ``tool``, with the given ``arguments`` changed, made just before the
    plan's first call of ``before``.
    """

    tool: str
    before: str
    arguments: Mapping[str, Any] = {}


class Demo(NamedTuple):
    """The task that ``rpms demo`` shows in a world, and how it is run.

    Attributes:
        split: the list of tasks.
        story: the index of the task.
        conditions: the conditions under which it is run, one after the other.
        steps: the step budget of an episode.
        model: the model that acts, by its name.
        max_tokens: the token limit of this model's replies; 0 for the environment's own.
        planted: in a world of tools, the calls of a scripted model that violate the rules; the demo
            then shows that agent behind the guard instead.
    """

    split: str
    story: int = 0
    conditions: tuple[str, ...] = ("A", "D+verify")
    steps: int = 25
    model: str = "sim"
    max_tokens: int = 0
    planted: tuple[Planted, ...] = ()


class Environment(ABC):
    """A world the agent can act in.

    Attributes:
        name: the name on the command line and in a run's input. A world found by entry point or
            import path gets that as its name.
        max_steps: the step budget of an episode.
        max_tokens: the token limit of a reply.
        max_live: the number of simulators that one process can hold, all on one thread and each
            restored by replay when it is needed again; None if games have ``restore`` and are
            independent objects, which need no thread, limit or replay.
        blocks: the order of the knowledge blocks in the prompt; the paper's equation by default.
        graded: scores between failure and success are meaningful.
        signature: the fields of the printed goal signatures, in their order.
        demo: the task of ``rpms demo``; the first one of its first split by default.
        packages: the installed packages whose versions a run's manifest records.
        nowhere: the text for the agent's location while it is at no place.
        embodied: the agent has a location and a hand.
        ends_lost: an episode can end lost before its steps are used up.
        states_decide: recorded states may decide whether an action works; if not, rule learning
            ignores them.
        results: what each command leaves in the belief when it succeeds, by its template, as f_upd
            reads it. Grounding skips a step whose results hold already; without results it skips
            only what the episode has executed.
    """

    name: str = ""
    max_steps: int = 50
    max_tokens: int = 256
    blocks: tuple[BlockName, ...] = ("rules", "situation", "goal", "state", "memory")
    graded: bool = False
    signature: tuple[str, ...] = PRINTED
    packages: tuple[str, ...] = ()
    nowhere: str = "unknown"
    embodied: bool = True
    ends_lost: bool = True
    states_decide: bool = True
    max_live: int | None = 64
    results: Mapping[str, Sequence[str]] = MappingProxyType({})

    @property
    def demo(self) -> Demo:
        """The task of ``rpms demo``."""
        return Demo(self.splits()[0])

    # Required.

    @abstractmethod
    def goal_types(self) -> list[str]:
        """Every goal type (or family) of the world; the manual must cover them all."""

    @abstractmethod
    def splits(self) -> list[str]:
        """The names of the task lists; the first is the default."""

    @abstractmethod
    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The split's tasks in their fixed order; raises RpmsError for an unknown split."""

    def index_in(self, split: str, task_id: str) -> int | None:
        """The index of a generated task, if its id has it; None otherwise."""
        return None

    def tasks_with(self, split: str, ids: Iterable[str]) -> list[Task]:
        """The split's tasks; a generated split gets as many as these ids need."""
        tasks = self.tasks(split, None)
        last = max((self.index_in(split, name) or 0 for name in ids), default=0)
        return self.tasks(split, last + 1) if last >= len(tasks) else tasks

    @abstractmethod
    def open_game(self) -> LiveGame:
        """A new simulator; ``reset`` reuses it for many tasks."""

    @abstractmethod
    def parse_goal(self, sentence: str) -> GoalSpec:
        """Read the goal from the task sentence alone."""

    @abstractmethod
    def update_belief(self, previous: Belief, action: str, observation: str) -> Belief:
        """f_upd: deterministic pattern matching, no language model (Eq. 1)."""

    @abstractmethod
    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """The current sub-goal, and the progress of the goal."""

    # Files: by default beside the module that defines the world.

    @cached_property
    def folder(self) -> Path:
        """The folder with the world's files."""
        return Path(inspect.getfile(type(self))).parent

    @cached_property
    def rules(self) -> Path:
        """The folder with Tiers 2 and 3: domain.yaml and environment.yaml."""
        return self.folder / "rules"

    @cached_property
    def policy(self) -> Path | None:
        """The file with the policy that the manual is written from; None if there is none."""
        return None

    @cached_property
    def categories(self) -> Categories:
        """The kinds that are alike, by category: d_gamma counts them as close (mug ~ cup)."""
        return read_categories(self.folder)

    @cached_property
    def prompts(self) -> Path:
        """The folder with system.md, examples/ and, for custom prompt blocks, templates/."""
        return self.folder / "prompts"

    @cached_property
    def memory(self) -> Path:
        """The default memory snapshot; it need not exist."""
        return self.folder / "memory.jsonl"

    # Defaults that suit most worlds.

    @property
    def learning_split(self) -> str:
        """The tasks that experience is gathered on."""
        return self.splits()[-1]

    @property
    def judging(self) -> tuple[str, ...]:
        """The splits that results are reported on, the default of ``rpms eval`` first.

        No memory, no rule and no model's weights are learned from their tasks. By default all
        splits but the learning split.
        """
        return tuple(split for split in self.splits() if split != self.learning_split)

    def split_types(self, split: str) -> list[str]:
        """The task types of a split (see ``task_name``), each once, in the split's order."""
        return list(dict.fromkeys(map(self.task_name, self.tasks(split))))

    def command_verbs(self) -> list[str]:
        """First words of the simulator's commands, if the manual is to be checked against them."""
        return []

    def wording(self, split: str) -> str:
        """The wording of the texts in a split, if the world has several."""
        return "the world's own"

    def command_templates(self) -> list[str]:
        """The simulator's commands with blanks, such as ``open {place}``.

        By default the numbered list in the system prompt.
        """
        text = read_text(self.prompts / "system.md", "the system prompt")
        return re.findall(r"^\d+\. (.+?)\s*$", text, flags=re.MULTILINE)

    def task_name(self, task: Task) -> str:
        """The benchmark's name of the task that this episode is a variation of."""
        return self.parse_goal(task["goal"])["type"]

    def task_types(self) -> dict[str, str]:
        """Task types finer than goal types, each with a sample sentence (empty: no tasks)."""
        return {}

    def solved(self, goal: GoalSpec, belief: Belief) -> bool | None:
        """Return whether the belief meets the goal's own conditions; None if it cannot tell."""
        return None

    def plan(self, goal: GoalSpec) -> list[tuple[SubGoal, str]]:
        """A goal's own steps, each with its end condition; empty to use its type's procedure."""
        return []

    def type_label(self, goal_type: str) -> str:
        """The label of a goal type in the tables of a report."""
        return goal_type.replace("_", " ")

    def first_belief(self, observation: str) -> Belief:
        """b_0 from the first observation, parsed like any other."""
        return self.update_belief(empty_belief(), "", observation)

    def read_answer(self, belief: Belief, call: Call, answer: str) -> Belief | None:
        """The belief after a tool's answer; None to use the manual's effects and records."""
        return None

    def tools(self) -> list[Any]:
        """The agent's tools, for checking the manual against them."""
        return []

    def failed(self, observation: str) -> bool:
        """Return whether the environment's answer means that the action was rejected."""
        return observation.startswith(NOTHING_HAPPENS)

    def rejection_reason(self, observation: str) -> str:
        """The environment's own reason for rejecting a command; empty if it gives none."""
        return ""

    def carried_out(self, action: str, belief: Belief, observation: str) -> str:
        """The command that was carried out; empty if the world asked for disambiguation."""
        return action

    def read_action(self, text: str) -> str:
        """Convert loose wording to the canonical action text; unknown text stays as it is."""
        return " ".join(text.lower().split())

    def describe_belief(self, belief: Belief, goal: GoalSpec) -> list[str]:
        """The lines of the [Current State] block: short, and only what helps decide."""
        doors = belief["containers"]
        goal_kinds = (goal["object"], goal["destination"])
        parts = {
            "Location": belief["location"] or self.nowhere,
            "Within reach": ", ".join(belief["reachable"]),
            "Holding": ", ".join(belief["holding"]) or "nothing",
            "Open": ", ".join(place for place, door in doors.items() if door == "open"),
            "Closed": ", ".join(place for place, door in doors.items() if door == "closed"),
            "Known": ", ".join(f"{thing} is {state}" for thing, state in belief["flags"].items()),
            "Seen": ", ".join(
                f"{thing} at {' and '.join([place, *belief['also_at'].get(thing, [])])}"
                for thing, place in belief["last_seen"].items()
                if kind_of(thing) in goal_kinds
            ),
            "Searched": ", ".join(belief["searched"]),
        }
        return [f"{name}: {text}" for name, text in parts.items() if text]

    def describe_sub_goal(self, sub_goal: SubGoal, belief: Belief) -> str:
        """The sub-goal as the prompt prints it: its end, and the place where it is reached.

        The next action is never named: choosing it is the model's.
        """
        target = sub_goal.get("about", Target())
        thing, place = target.get("object") or sub_goal["target"], target.get("place")
        if not place:
            return f"{sub_goal['name']}: {sub_goal['target']}"
        return f"{sub_goal['name']}: {thing}, at {place} ({self.seen_from(place, belief)})"

    def seen_from(self, place: str, belief: Belief) -> str:
        """Where the agent is, seen from a place: ``you are there``, ``you are at desk 1``."""
        location = belief["location"]
        if place == location or place in belief["reachable"]:
            return "you are there"
        return f"you are at {location}" if location else "you are at no place yet"

    def whereabouts(self, belief: Belief) -> str:
        """The agent's location and hand in words, for a step that is shown to a person."""
        if not self.embodied:
            return ""
        holding = ", ".join(belief["holding"]) or "nothing"
        return f"at {belief['location'] or 'the start'}, holding {holding}; "

    def recap(self, belief: Belief) -> dict[str, list[str]]:
        """Additions to [Current State] when old turns are omitted, most relevant first."""
        reachable = ((place, objects_at(belief, place)) for place in belief["reachable"])
        near = [f"{thing} at {place}" for place, things in reachable for thing in things]
        return {"Here": [*objects_at(belief, belief["location"] or ""), *near, *belief["visible"]]}

    # Signatures and COMPAT: the keys of experience, and when it fits.

    def print_state(self, belief: Belief) -> str:
        """The printed state signature: ``holding=none|open=chest 1,locker 2``."""
        opened = sorted(place for place, door in belief["containers"].items() if door == "open")
        text = f"holding={','.join(belief['holding']) or 'none'}"
        return f"{text}|open={','.join(opened)}" if opened else text

    def compat(self, entry: Mapping[str, Any], belief: Belief) -> str:
        """COMPAT: why a memory's recorded state does not fit this one; empty if it fits.

        By default the paper's occupancy of the hand (Eq. 6). Schemas have no recorded state, so
        they fit any.
        """
        printed = entry.get("state_signature")
        if printed is None:
            return ""
        was_empty = hand_was_empty(printed)
        if was_empty and belief["holding"]:
            return f"recorded with an empty hand, holding {', '.join(belief['holding'])} now"
        if not was_empty and not belief["holding"]:
            return "recorded while holding something, the hand is empty now"
        return ""

    def changed_by(self, action: str) -> tuple[str, ...]:
        """The prefixes of the facts that an action changes, for schemas of a world without a body.

        Other facts in an answer were discovered, or follow from something else.
        """
        return ("",)

    def steps_done(self, entry: Mapping[str, Any], belief: Belief) -> set[int]:
        """The steps of a snippet, by index, that are already done by the entry's own record.

        For worlds whose state has more than a hand: the recorded change of the step holds already.
        An implementation must not use the rules.
        """
        return set()

    def requirements(self, belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
        """The part of the starting state that a success snippet records."""
        return {"holding": belief["holding"][0] if belief["holding"] else None}

    def role_names(self, belief: Belief) -> dict[str, str]:
        """Roles of the world, each with its current name: ids are remembered by role."""
        return {}

    def individual(self, name: str) -> bool:
        """Return whether an unnumbered name (``blue box``) is another thing in another task.

        Such a name is remembered by its role (``role_names``), or not at all.
        """
        return False

    def is_known(self, name: str, goal: GoalSpec, belief: Belief) -> bool:
        """Return whether a name in a remembered command is known to stand for something here.

        A memory that names anything else is not groundable. Worlds whose names are filled in from
        roles need no such test.
        """
        return True

    def read_signature(self, printed: str) -> GoalSignature:
        """Gamma from a printed goal signature."""
        return read_signature(printed, self.signature)

    def compat_key(self, printed: str) -> str:
        """The part of a printed state that ``compat`` compares for equality."""
        return hand(printed)

    @property
    def keys(self) -> Keys:
        """How memories of this world are keyed."""
        return Keys(self.read_signature, self.compat_key)

    # Metrics only: nothing that the agent reads may come from here.

    def belief_errors(self, belief: Belief, facts: Any) -> list[str]:
        """Statements of the belief that the true facts contradict."""
        return []

    def true_state(self, facts: Any) -> dict[str, str]:
        """The true state in a few words, for logs and viewers; empty if the world has no check."""
        return {}

    def true_belief(self, facts: Any, places: Collection[str] = ()) -> Belief | None:
        """The belief that the true state implies, for auditing rules; None if it is unavailable.

        A belief has each thing in one place; if it is in several, one of ``places`` is used.
        """
        return None


class ToolWorld(Environment):
    """A world without a simulator, in which any agent acts through tools.

    Its tools are the actions of Tier 3, matched by the names of tools and arguments. The manual
    reads the answers, or ``read_answer`` does in Python. A task is the user's first message. If
    ``sub_goal`` reports progress, the task is won at 100%.
    """

    nowhere = ""
    max_steps = max_tokens = 0  # the agent sets its own limits

    def goal_types(self) -> list[str]:
        """The goal types with a procedure in Tier 2."""
        return list(self._manual.domain.procedures)

    def splits(self) -> list[str]:
        """One split, without a fixed list of tasks."""
        return ["agent"]

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """No task is known beforehand."""
        return []

    def open_game(self) -> LiveGame:
        """Raise an error: there is no simulator."""
        raise RpmsError(f"{self.name} has no simulator: run an agent with tools behind rpms.guard")

    def parse_goal(self, sentence: str) -> GoalSpec:
        """The sentence as a goal of the first type."""
        kind = self.goal_types()[0]
        return GoalSpec(sentence=sentence, type=kind, object="", state=None, count=1,
                        destination="", signature=f"{kind}:::")  # fmt: skip

    def update_belief(self, previous: Belief, action: str, observation: str) -> Belief:
        """Return the belief unchanged: ``read_answer`` reads calls as data, not as text."""
        return previous

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """The whole goal."""
        return SubGoal(name=goal["type"], target=goal["sentence"], progress=0)

    def failed(self, observation: str) -> bool:
        """Recognise LangChain's error texts, and an error in JSON."""
        return observation == "Error" or observation.startswith(("Error:", "Error ", '{"error"'))

    def command_templates(self) -> list[str]:
        """The syntax of every Tier-3 action: the tools are known without the rules."""
        return [action.syntax for action in self._manual.actions]

    @property
    def _manual(self) -> Manual:
        # Rules need pydantic, which a command line that only prints help does not load.
        from rpms.rules.loader import read_manual

        return read_manual(self.rules)
