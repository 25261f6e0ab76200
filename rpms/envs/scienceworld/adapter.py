"""The ScienceWorld environment: it joins the modules of this folder and defines COMPAT.

Loosely worded commands are rewritten in the one wording per command that the manual teaches. COMPAT
tests the paper's three conditions: instrument, room and progress. The printed state of an entry
gives the room and the progress it was recorded at; its actions give the instrument, a tool that
they use without fetching it first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rpms.envs.base import BlockName, Demo, Environment, LiveGame, Task
from rpms.envs.scienceworld import belief as beliefs
from rpms.envs.scienceworld import goals, names, tasks, things, truth
from rpms.envs.scienceworld.things import TASK
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec, SubGoal, read_state
from rpms.vocabulary.naming import find

SHIPPED = Path(__file__).parents[2]
# The commands that rules can be learned for, in the wording and with the parameters of the manual.
# The outcome of the others depends on facts that no predicate over their parameters expresses: the
# right focus, open doors between rooms (go to), amounts of substances (use, pour, dunk, mix, eat,
# flush); or they change nothing (look at, look in, examine, read, wait, task).
LEARNABLE = (
    "look around", "inventory", "teleport to {place}", "open {thing}", "close {thing}",
    "activate {device}", "deactivate {device}", "pick up {object}", "put down {object}",
    "move {object} to {place}",
)  # fmt: skip
# What f_upd records when a command succeeds.
RESULTS: Mapping[str, Sequence[str]] = {
    "go to {place}": ["at(place)"],
    "teleport to {place}": ["at(place)"],
    "open {thing}": ["open(thing)"],
    "close {thing}": ["closed(thing)"],
    "activate {device}": ["activated(device)"],
    "deactivate {device}": ["not activated(device)"],
    "pick up {object}": ["holding(object)"],
    "put down {object}": ["not holding(object)"],
    "move {object} to {place}": ["not holding(object)", "in(object, place)"],
}
# The number of procedure steps that a memory may be ahead of the agent.
LAG = 1

_USED = re.compile(r"use (.+?)(?: in inventory)? on .+")
_FOCUS = re.compile(r"focus on (?!.* stage\b)(.+)")
_TAKEN = re.compile(r"pick up (.+)")
_LOOSE = [
    (re.compile(pattern, re.I), command)
    for pattern, command in (
        (r"(?:look|look (?:a)?round(?: (?:the )?(?:room|here))?|observe|survey(?: the)? room)$",
         r"look around"),
        (r"(?:look|check) inside (?:of )?(.+)$", r"look in \1"),
        (r"inspect (.+)$", r"examine \1"),
        (r"(?:go|walk|head|run|travel)(?: (?:in|out|back))?(?: to| into| through)? "
         r"(?:the )?(?:door to )?(?:the )?(.+?)(?: door| room(?<!living room))?$", r"go to \1"),
        (r"(?:enter|leave (?:for|to)) (.+)$", r"go to \1"),
        (r"teleport (?:in|into|to)?(?: the)? ?(.+)$", r"teleport to \1"),
        (r"pick (?!up )(.+) up$", r"pick up \1"),
        (r"(?:take|grab|get|collect|pick(?: up)?) (.+?)(?: up)?$", r"pick up \1"),
        (r"(?:drop|put down) (.+)$", r"put down \1"),
        (r"put (.+) down$", r"put down \1"),
        (r"move (.+) to (.+)$", r"move \1 to \2"),
        (r"(?:put|place|insert|move|set) (.+) (?:in/on|into|onto|inside|to|in|on) (.+)$",
         r"move \1 to \2"),
        (r"(pour|dunk) (?:contents of )?(.+?) into (.+)$", r"\1 \2 into \3"),
        (r"(pour|dunk) (?:contents of )?(.+) (?:onto|in|on|to) (.+)$", r"\1 \2 into \3"),
        (r"(?:turn|switch) on (.+)$", r"activate \1"),
        (r"(?:turn|switch) off (.+)$", r"deactivate \1"),
        (r"(?:turn|switch) (.+) on$", r"activate \1"),
        (r"(?:turn|switch) (.+) off$", r"deactivate \1"),
        (r"focus (?!on )(.+)$", r"focus on \1"),
        (r"mix (?:the )?contents (?:of|in) (.+)$", r"mix \1"),
        (r"(?:check |show |open )?(?:my )?inventory$", r"inventory"),
        (r"wait ?(?:1|one)(?: (?:tick|step|turn|moment))?$", r"wait1"),
        (r"wait(?: ?10| ten|ing)?(?: (?:ticks|steps|turns|moments))?$", r"wait"),
    )
]  # fmt: skip
_ARTICLE = re.compile(r"\b(?:the|a|an) (?=\w)", re.I)
# Names that mean a different thing in each task.
_OF_ONE_TASK = re.compile(r"\b(?:box|inclined plane|unknown substance)\b")


def read_action(text: str) -> str:
    """Rewrite a loosely worded command as the canonical one; unknown text passes through.

    Letters keep their case: in some names only a letter differs ("unknown substance B").
    """
    action = _ARTICLE.sub("", " ".join(text.split()).rstrip(" .!"))
    for pattern, command in _LOOSE:
        if match := pattern.match(action):
            return " ".join(match.expand(command).split())
    verb, _, rest = action.partition(" ")
    return f"{verb.lower()} {rest}".rstrip()


def compat(entry: Mapping[str, Any], belief: Belief) -> str:
    """The reason why an entry does not fit this state, or an empty text.

    Schemas have no recorded state, so they fit any.
    """
    printed = entry.get("state_signature")
    if printed is None:
        return ""
    tool = needed_instrument(entry.get("actions", ()))
    if tool and find(belief["holding"], tool) is None:
        return f"needs the {tool}, which is not carried"
    recorded = read_state(printed)
    room = recorded.get("room", "unknown")
    if room not in ("unknown", belief["location"]):
        return f"recorded in the {room}, in the {belief['location'] or 'unknown'} now"
    ahead = int(recorded.get("progress", "0")) - belief["progress"]
    if ahead > LAG:
        return f"recorded {ahead} steps further on in the procedure"
    return ""


def requirements(belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
    """The three conditions of COMPAT, to be stored with a success snippet."""
    return {
        "instrument": needed_instrument(actions) or None,
        "room": belief["location"],
        "progress": belief["progress"],
    }


def steps_done(entry: Mapping[str, Any], belief: Belief) -> set[int]:
    """The steps that focus on what was focused on already: the order counts, so never again.

    A plant is focused on in each of its stages, which the events do not distinguish.
    """
    target = goals.parse_goal(belief["flags"][TASK])["object"] if TASK in belief["flags"] else ""
    focused, done = things.events(belief, things.FOCUS), set[int]()
    for number, step in enumerate(entry.get("lifted", ())):
        match = _FOCUS.fullmatch(step.replace("{the object}", target))
        if match and any(things.same_thing(thing, match[1]) for thing in focused):
            done.add(number)
    return done


def needed_instrument(actions: Sequence[str]) -> str:
    """The tool that the actions use without fetching it first, or an empty text."""
    fetched: list[str] = []
    for action in actions:
        if match := _TAKEN.fullmatch(action):
            fetched.append(match[1])
        elif (match := _USED.fullmatch(action)) and find(fetched, match[1]) is None:
            return match[1]
    return ""


class ScienceWorld(Environment):
    """The science house: four families of tasks, an inventory, and one fatal mistake (focus)."""

    name = "scienceworld"
    max_steps = 100
    max_tokens = 512
    # Each running game is a separate Java process.
    max_live = 1
    memory = SHIPPED / "memory_store" / "snapshots" / "scienceworld.jsonl"
    # The order of the paper's listing for ScienceWorld: state, objective, rules, memory.
    blocks: tuple[BlockName, ...] = ("state", "goal", "rules", "situation", "memory")
    graded = True
    results = RESULTS
    # family:verb:target, because goals of a family differ by verb, not by destination.
    signature = ("type", "destination", "object")
    learning_split = "train_mini"
    judging = ("test", "dev", "dev_mini")
    packages = ("scienceworld",)

    # The functions of this folder, under the names of the base class.
    parse_goal = staticmethod(goals.parse_goal)
    first_belief = staticmethod(beliefs.first_belief)
    update_belief = staticmethod(beliefs.update_belief)
    failed = staticmethod(beliefs.rejected)
    rejection_reason = staticmethod(beliefs.rejection_reason)
    sub_goal = staticmethod(goals.sub_goal)
    describe_belief = staticmethod(beliefs.describe_belief)
    recap = staticmethod(beliefs.recap)
    print_state = staticmethod(beliefs.print_state)
    compat = staticmethod(compat)
    requirements = staticmethod(requirements)
    is_known = staticmethod(names.is_known)
    steps_done = staticmethod(steps_done)
    read_action = staticmethod(read_action)
    tasks = staticmethod(tasks.list_tasks)
    belief_errors = staticmethod(truth.disagreements)
    true_state = staticmethod(truth.true_state)

    @property
    def demo(self) -> Demo:
        """The first measuring task, which the planner only completes with a guard."""
        families = [self.parse_goal(task["goal"])["type"] for task in self.tasks("dev_mini")]
        return Demo("dev_mini", families.index("F2"), ("E",), steps=12)

    def goal_types(self) -> list[str]:
        return goals.FAMILIES

    def command_verbs(self) -> list[str]:
        return tasks.command_verbs()

    def command_templates(self) -> list[str]:
        """The commands whose outcome a belief can describe."""
        return list(LEARNABLE)

    def splits(self) -> list[str]:
        return list(tasks.SPLITS)

    def task_name(self, task: Task) -> str:
        """``boil`` for ``boil/21``."""
        return tasks.read_source(task["source"])[0]

    def task_types(self) -> dict[str, str]:
        """Each task with the sentence of its first variation; electricity tasks have none."""
        return tasks.sentences()

    def plan(self, goal: GoalSpec) -> list[tuple[SubGoal, str]]:
        """The steps of ``steps.yaml``, filled in for this task."""
        return [
            (
                SubGoal(name=step.name, target=step.target, progress=0, about=step.about,
                        words=step.words),
                step.when,
            )
            for step in goals.plan_for(goal["sentence"])
        ]  # fmt: skip

    def open_game(self) -> LiveGame:
        from rpms.envs.scienceworld.simulator import ScienceWorldGame

        return ScienceWorldGame()

    def carried_out(self, action: str, belief: Belief, observation: str) -> str:
        """The command that a menu number chose, in the manual's wording."""
        command = beliefs.carried_out(action, belief, observation)
        return read_action(command) if command != action else action

    def individual(self, name: str) -> bool:
        """True for boxes, planes and unknown substances, which differ in each task."""
        return _OF_ONE_TASK.search(name.lower()) is not None

    def role_names(self, belief: Belief) -> dict[str, str]:
        """The box that the task names, if it is the only one, and its room."""
        return goals.roles_of(belief["flags"].get(TASK, ""))

    def compat_key(self, printed: str) -> str:
        """The room, which ``compat`` compares, or the default key of entries without a room."""
        return read_state(printed).get("room") or super().compat_key(printed)


ENVIRONMENT = ScienceWorld()
