"""What the graph asks of a world.

An ``Environment`` is stateless knowledge about a world (its tasks, how its texts read, how a
belief follows from them). A ``LiveGame`` is one running simulator. Nodes see only these two, so a
new world is a folder of its own, with its rules and prompts in it, and never a branch in a node.

What a world must give is abstract, and little. The rest has a default that suits a world with one
hand and silent refusals, and does without what only measures.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast, runtime_checkable

from typing_extensions import TypedDict

from rpms.vocabulary.belief import Belief, empty_belief, kind_of, objects_at
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_text, read_yaml, stamp_of
from rpms.vocabulary.goal import (
    PRINTED,
    GoalSignature,
    GoalSpec,
    Keys,
    SubGoal,
    hand,
    hand_was_empty,
    read_signature,
)
from rpms.vocabulary.turn import Turn

BlockName = Literal["rules", "situation", "goal", "state", "memory"]
NOTHING_HAPPENS = "Nothing happens."


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

    ``state`` is the simulator's state after it, where that is plain data.
    """

    observation: str
    done: bool
    won: bool
    score: float
    state: dict[str, Any] | None = None


class LiveGame(Protocol):
    """One running simulator."""

    def reset(self, task: Task) -> str:
        """Start the task and return the first observation."""

    def step(self, action: str) -> Outcome:
        """Play one action, given in the agent's wording."""

    def facts(self) -> Any:
        """The simulator's true state, for tests and metrics; never shown to the agent."""
        return None

    def close(self) -> None:
        """Free the simulator."""
        return None


class Planted(NamedTuple):
    """A call against the rules that a demonstration's scripted model makes.

    It is the plan's own call of ``tool``, with other ``arguments`` where some are given, made just
    before the plan's first call of ``before``.
    """

    tool: str
    before: str
    arguments: Mapping[str, Any] = {}


class Demo(NamedTuple):
    """What a demonstration plays of a world.

    Attributes:
        split: the list of tasks.
        story: which of them is told step by step; the table begins with it, too.
        tasks: how many the table has.
        steps: how long an episode may be.
        condition: of the story; the table has it, too.
        planted: in a world of tools, what a scripted model does against the rules; the story is
            that agent's then, behind the guard of tools, and there is no table.
    """

    split: str
    story: int = 0
    tasks: int = 10
    steps: int = 25
    condition: str = "D+verify"
    planted: tuple[Planted, ...] = ()


@runtime_checkable
class Restorable(LiveGame, Protocol):
    """A simulator whose state is plain data: what its outcomes carry brings it back."""

    def restore(self, task: Task, state: Mapping[str, Any], observation: str) -> None:
        """Go where ``state`` was taken, just after ``observation`` was given.

        Raises:
            EnvironmentFault: it is not the same game, or not the same point of it.
        """


@runtime_checkable
class Listing(LiveGame, Protocol):
    """A simulator that can say what it would accept; shown only where a run asks for it."""

    def commands(self) -> list[str]:
        """Every action that would not be refused now, in the agent's wording."""


@runtime_checkable
class ToolGame(LiveGame, Protocol):
    """A simulator that an agent can act in through tools."""

    def tools(self) -> list[Any]:
        """Its tools, for LangChain."""

    def won(self) -> bool:
        """Whether the task is solved."""


class Environment(ABC):
    """A world the agent can act in.

    Attributes:
        name: as on the command line and in a run's input. A world found by entry point or by
            import path gets the name it was found by.
        max_steps: the step budget of an episode.
        max_tokens: how long a reply may be.
        max_live: how many simulators one process can hold, all on one thread and each rebuilt by
            replay when it is needed again; None where games are Restorable and independent
            objects, which need neither thread nor limit nor replay.
        blocks: the order of the knowledge blocks in the prompt; the paper's equation by default.
        graded: whether scores between lost and won mean something.
        signature: the fields of the printed goal signatures, in their order.
        demo: what ``rpms demo`` plays of it; the first tasks of its first split by default.
        packages: the installed packages whose versions belong into a run's manifest.
        nowhere: what the agent reads of where it is while that is no place.
        embodied: whether the agent is somewhere or holds something; a state is more than that else.
        lists_actions: whether its games can say which actions they would accept (``Listing``).
        states_decide: whether the states on record may decide if an action works; where they never
            do, learning rules leaves them out.
        sub_goal_from_manual: whether ``sub_goal`` reads the procedure of Tier 2 or other knowledge
            of the domain. A run without rules then has no sub-goal: its name is empty.
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
    lists_actions: bool = False
    sub_goal_from_manual: bool = False
    states_decide: bool = True
    max_live: int | None = 64

    @property
    def demo(self) -> Demo:
        """See above."""
        return Demo(self.splits()[0])

    # What a world must give.

    @abstractmethod
    def goal_types(self) -> list[str]:
        """Every goal type (or family) the world has; the manual must cover them all."""

    @abstractmethod
    def splits(self) -> list[str]:
        """Names of the task lists that can be asked for; the first is played by default."""

    @abstractmethod
    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """The split's tasks in their fixed order; raises RpmsError when it is not there."""

    @abstractmethod
    def open_game(self) -> LiveGame:
        """A fresh simulator; reuse it for many tasks through ``reset``."""

    @abstractmethod
    def parse_goal(self, sentence: str) -> GoalSpec:
        """Read the goal from the task sentence alone."""

    @abstractmethod
    def update_belief(self, previous: Belief, action: str, observation: str) -> Belief:
        """f_upd: deterministic pattern matching, no language model (Eq. 1)."""

    @abstractmethod
    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """Where the agent is within the goal."""

    # Its files: beside the module that defines it, unless it says otherwise.

    @cached_property
    def folder(self) -> Path:
        """Where the world's own files are."""
        return Path(inspect.getfile(type(self))).parent

    @cached_property
    def rules(self) -> Path:
        """The folder with Tiers 2 and 3: domain.yaml and environment.yaml."""
        return self.folder / "rules"

    @cached_property
    def prompts(self) -> Path:
        """The folder with system.md, examples/ and, for blocks printed its own way, templates/."""
        return self.folder / "prompts"

    @cached_property
    def memory(self) -> Path:
        """The snapshot that is used where a run names none; it need not exist."""
        return self.folder / "memory.jsonl"

    # What most worlds have in common.

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
        """First words of the simulator's own commands, if the manual is to be held against them."""
        return []

    def wording(self, split: str) -> str:
        """Which of its wordings the agent reads in a split, where the world has several."""
        return "the world's own"

    def command_templates(self) -> list[str]:
        """The simulator's commands with blanks, such as ``open {place}``: what rules are about.

        By default the numbered list that the system prompt gives of them.
        """
        text = read_text(self.prompts / "system.md", "the system prompt")
        return re.findall(r"^\d+\. (.+?)\s*$", text, flags=re.MULTILINE)

    def task_name(self, task: Task) -> str:
        """What the benchmark calls the task that this episode is one variation of."""
        return self.parse_goal(task["goal"])["type"]

    def task_types(self) -> dict[str, str]:
        """Types of tasks finer than goal types, each with a real sentence, or empty: not played."""
        return {}

    def plan(self, goal: GoalSpec) -> list[tuple[SubGoal, str]]:
        """The steps of a goal's own way, each with when it is done; empty: its type's procedure."""
        return []

    def type_label(self, goal_type: str) -> str:
        """A goal type as the tables of a report show it."""
        return goal_type.replace("_", " ")

    def first_belief(self, observation: str) -> Belief:
        """b_0 from the first observation, read like any other."""
        return self.update_belief(empty_belief(), "", observation)

    def read_answer(self, belief: Belief, call: Call, answer: str) -> Belief | None:
        """The belief after a tool's answer; None leaves it to the manual's effects and records."""
        return None

    def tools(self) -> list[Any]:
        """The tools that an agent acts by, for holding the manual against them."""
        return []

    def failed(self, observation: str) -> bool:
        """Whether the environment's answer means that the action was refused."""
        return observation.startswith(NOTHING_HAPPENS)

    def rejection_reason(self, observation: str) -> str:
        """Why a command was rejected, in the environment's own words; empty if it does not say."""
        return ""

    def carried_out(self, action: str, belief: Belief, observation: str) -> str:
        """The command that was carried out in the end; empty if the world only asked back."""
        return action

    def read_action(self, text: str) -> str:
        """Bring loose wording to the canonical action text; unknown text passes through."""
        return " ".join(text.lower().split())

    def describe_belief(self, belief: Belief, goal: GoalSpec) -> list[str]:
        """The lines of the [Current State] block: short, and only what helps decide."""
        doors = belief["containers"]
        named = (goal["object"], goal["destination"])
        parts = {
            "Location": belief["location"] or self.nowhere,
            "Within reach": ", ".join(belief["reachable"]),
            "Holding": ", ".join(belief["holding"]) or "nothing",
            "Open": ", ".join(place for place, door in doors.items() if door == "open"),
            "Closed": ", ".join(place for place, door in doors.items() if door == "closed"),
            "Known": ", ".join(f"{thing} is {state}" for thing, state in belief["flags"].items()),
            "Seen": ", ".join(
                f"{thing} at {place}"
                for thing, place in belief["last_seen"].items()
                if kind_of(thing) in named
            ),
            "Searched": ", ".join(belief["searched"]),
        }
        return [f"{name}: {text}" for name, text in parts.items() if text]

    def whereabouts(self, belief: Belief) -> str:
        """Where the agent is and what it holds, before a step that is watched."""
        if not self.embodied:
            return ""
        holding = ", ".join(belief["holding"]) or "nothing"
        return f"at {belief['location'] or 'the start'}, holding {holding}; "

    def recap(self, belief: Belief) -> dict[str, list[str]]:
        """What that block says besides where old turns are left out, the most relevant first."""
        around = ((place, objects_at(belief, place)) for place in belief["reachable"])
        near = [f"{thing} at {place}" for place, things in around for thing in things]
        return {"Here": [*objects_at(belief, belief["location"] or ""), *near, *belief["visible"]]}

    # Signatures and COMPAT: how experience is filed and when it fits.

    def print_state(self, belief: Belief) -> str:
        """The printed state signature: ``holding=none|open=chest 1,locker 2``."""
        opened = sorted(place for place, door in belief["containers"].items() if door == "open")
        text = f"holding={','.join(belief['holding']) or 'none'}"
        return f"{text}|open={','.join(opened)}" if opened else text

    def compat(self, entry: Mapping[str, Any], belief: Belief) -> str:
        """COMPAT: why a memory recorded in another state does not fit this one, else empty.

        The paper's occupancy of the hand (Eq. 6). Schemas are recorded in no particular state, so
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
        """How the facts begin that an action changes, for schemas of a world without a body.

        What else an answer shows was found out, or is a consequence that other things decide.
        """
        return ("",)

    def steps_done(self, entry: Mapping[str, Any], belief: Belief) -> set[int]:
        """Which steps of a snippet, by number, are done by what the entry itself tells of them.

        For worlds whose state has more than a hand: what a step changed then is changed already.
        Nothing here may ask the rules.
        """
        return set()

    def requirements(self, belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
        """What a success snippet writes down of the state that its actions started from."""
        return {"holding": belief["holding"][0] if belief["holding"] else None}

    def role_names(self, belief: Belief) -> dict[str, str]:
        """Roles of the world's own, each with the name that plays it now: ids are told by them."""
        return {}

    def individual(self, name: str) -> bool:
        """Whether a name without a number means another thing in another task, as ``blue box``.

        Such a name is remembered only by the role it plays (``role_names``), or not at all.
        """
        return False

    def read_signature(self, printed: str) -> GoalSignature:
        """Gamma from a printed goal signature."""
        return read_signature(printed, self.signature)

    def compat_key(self, printed: str) -> str:
        """The part of a printed state that ``compat`` compares for equality."""
        return hand(printed)

    @property
    def keys(self) -> Keys:
        """Both, for a memory of this world."""
        return Keys(self.read_signature, self.compat_key)

    # Metrics, never hints: nothing the agent reads may come from here.

    def belief_errors(self, belief: Belief, facts: Any) -> list[str]:
        """Statements of the belief that the true facts contradict."""
        return []

    def true_state(self, facts: Any) -> dict[str, str]:
        """The true state in a few words, for logs and viewers; empty where nothing is checked."""
        return {}

    def true_belief(self, facts: Any, named: Collection[str] = ()) -> Belief | None:
        """The belief of somebody who knows everything, for auditing rules; None if nobody does.

        A belief has each thing in one place: where it is in several, in one that is ``named``.
        """
        return None

    def demands(
        self, game: LiveGame, actions: Sequence[str]
    ) -> list[dict[str, bool] | None] | None:
        """What the simulator's own rules demand of actions, and whether each part holds now.

        None where its rules cannot be read; None for an action that they do not know.
        """
        return None


class ToolWorld(Environment):
    """A world that somebody else's agent acts in through tools, without a simulator of ours.

    Its tools are the actions of Tier 3, by their names and those of their arguments. Answers are
    read by the manual, or in Python by ``read_answer``. A task is what the person said first; a
    world that tells by ``sub_goal`` how far it has come is won at 100%.
    """

    def __init_subclass__(cls) -> None:
        """Refuse what an earlier version had."""
        if "update_belief" in vars(cls):
            raise RpmsError(
                f"{cls.__name__}.update_belief: a world of tools reads an answer in "
                "read_answer(belief, call, answer), where the call is data"
            )

    nowhere = ""
    max_steps = max_tokens = 0  # the agent's own affair

    def goal_types(self) -> list[str]:
        """Those that Tier 2 has a procedure for."""
        return list(self._tier("domain")["procedures"])

    def splits(self) -> list[str]:
        """One, in which tasks are as they come."""
        return ["agent"]

    def tasks(self, split: str, count: int | None = None) -> list[Task]:
        """None that are known beforehand."""
        return []

    def open_game(self) -> LiveGame:
        """There is none."""
        raise RpmsError(f"{self.name} is played by an agent with tools, not by us: rpms.guard")

    def parse_goal(self, sentence: str) -> GoalSpec:
        """The sentence, as a goal of the first type."""
        kind = self.goal_types()[0]
        return GoalSpec(sentence=sentence, type=kind, object="", state=None, count=1,
                        destination="", signature=f"{kind}:::")  # fmt: skip

    def update_belief(self, previous: Belief, action: str, observation: str) -> Belief:
        """What is read of a call is read from the call itself, not from its text."""
        return previous

    def sub_goal(self, goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
        """All of it."""
        return SubGoal(name=goal["type"], target=goal["sentence"], progress=0)

    def failed(self, observation: str) -> bool:
        """As LangChain words an error, or in JSON."""
        return observation == "Error" or observation.startswith(("Error:", "Error ", '{"error"'))

    def command_templates(self) -> list[str]:
        """The syntax of Tier 3: tools are known, whatever they need and do."""
        return [_syntax(action) for action in self._tier("environment")["actions"]]

    def _tier(self, name: str) -> dict[str, Any]:
        file = self.rules / f"{name}.yaml"
        return _read_tier(file, stamp_of(file))  # asked at every message of a conversation


@lru_cache(maxsize=64)
def _read_tier(file: Path, _content: tuple[int, int]) -> dict[str, Any]:
    return cast(dict[str, Any], read_yaml(file)[1])


def _syntax(action: Mapping[str, Any]) -> str:
    """An action's syntax, or one made from the arguments of a tool."""
    given = action.get("arguments", {})
    table = given if isinstance(given, dict) else {name: name for name in given}
    blanks = [f"{name}={{{parameter}}}" for name, parameter in table.items()]
    return str(action.get("syntax") or " ".join([action["name"], *blanks]))
