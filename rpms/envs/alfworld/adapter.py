"""The ALFWorld environment: it joins the modules of this folder and translates the wordings.

Games written by alfworld 0.4 and later say ``move X to Y``; earlier ones ``put X in/on Y``.
The agent always acts and reads in the paper's ``put X in/on Y``, whichever game is underneath.
Only this module knows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rpms.envs.alfworld import belief as beliefs
from rpms.envs.alfworld import goals, truth
from rpms.envs.alfworld.alfworld_package import Dialect
from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.game_file import GameFile, digest_of
from rpms.envs.alfworld.tasks import GENERATED, OFFICIAL, index_in, list_tasks, split_types
from rpms.envs.base import Demo, Environment, LiveGame, Outcome, Task
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.goal import SubGoal, Target

SHIPPED = Path(__file__).parents[2]

_PUT = re.compile(r"^put (?P<o>.+?) in/on (?P<p>.+)$")
_MOVED = re.compile(r"^You move the (?P<o>.+?) to the (?P<p>.+)\.$")
_ARRIVED = re.compile(r"^You arrive at [^.]+\. ")
_WELCOME = re.compile(r"^-= Welcome to TextWorld, ALFRED! =-\s*")

# Loose wordings that models use for the same command. Order matters: the first match wins.
_LOOSE: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), command)
    for pattern, command in (
        (r"^(?:go ?to|goto|walk to|move to|head to|navigate to) (.+)$", r"go to \1"),
        (r"^(?:put|place|move|set|drop) (.+?) (?:in/on|in / on|into|onto|inside|in|on|to) (.+)$",
         r"put \1 in/on \2"),
        (r"^(?:take|pick up|grab|get|pick) (.+?) (?:from|off|out of) (.+)$", r"take \1 from \2"),
        (r"^(?:use|toggle|turn on|switch on|turn off) ([a-z]+ \d+)(?: .*)?$", r"use \1"),
        (r"^(heat|cool|clean) (.+?) (?:with|using|in) (.+)$", r"\1 \2 with \3"),
        (r"^(?:look at|inspect|examine) (.+)$", r"examine \1"),
        (r"^(?:look around|look)$", "look"),
        (r"^(?:check )?inventory$", "inventory"),
    )
]  # fmt: skip
# Every command of the game, in the agent's wording, and what f_upd records when it succeeds. A
# {thing} is a place or an object.
COMMANDS: Mapping[str, Sequence[str]] = {
    "go to {place}": ["at(place)"],
    "open {place}": ["at(place)", "open(place)"],
    "close {place}": ["at(place)", "closed(place)"],
    "take {object} from {place}": ["at(place)", "holding(object)", "not in(object, place)"],
    "put {object} in/on {place}": ["at(place)", "not holding(object)", "in(object, place)"],
    "heat {object} with {place}": ["at(place)", "state(object, hot)"],
    "clean {object} with {place}": ["at(place)", "state(object, clean)"],
    "cool {object} with {place}": ["at(place)", "state(object, cool)"],
    "use {object}": ["state(object, on)"],
    "slice {object} with {tool}": [],
    "examine {thing}": [],
    "inventory": [],
    "look": [],
    "help": [],
}


def to_game(action: str, dialect: Dialect) -> str:
    """Translate the agent's action into the wording of the game."""
    if dialect == "move" and (match := _PUT.match(action)):
        return f"move {match['o']} to {match['p']}"
    return action


def to_agent(feedback: str) -> str:
    """Translate the game's text into the paper's wording; drop the banner and the arrival line.

    Arrival lines name the receptacle in one wording and an internal location number in the
    other. The text after them ("On the desk 1, you see ...") is the same in both.
    """
    text = _WELCOME.sub("", feedback).strip()
    if match := _MOVED.match(text):
        return f"You put the {match['o']} in/on the {match['p']}."
    return _ARRIVED.sub("", text)


def read_action(text: str) -> str:
    """Rewrite a loosely worded action as the canonical one; unknown text passes through."""
    action = " ".join(text.lower().split()).rstrip(" .!")
    action = re.sub(r"\b(?:(?:the|a|an) )+(?=[a-z]+ \d)", "", action)
    for pattern, command in _LOOSE:
        if match := pattern.match(action):
            return match.expand(command)
    return action


class AlfworldGame(LiveGame):
    """One game in the paper's wording; its state is plain data."""

    def __init__(self) -> None:
        self._engine = GameEngine()

    def reset(self, task: Task) -> str:
        self._engine.load(task["source"])
        self._state = self._engine.reset()
        return to_agent(self._state.feedback)

    def step(self, action: str) -> Outcome:
        """Take one action; only a win ends the game."""
        command = to_game(action, self._engine.game.release.dialect)
        self._state = state = self._engine.step(command)
        observation = to_agent(state.feedback)
        snapshot = {**self._engine.snapshot(), "said": digest_of(observation)}
        return Outcome(observation, state.done, state.won, float(state.won), state=snapshot)

    def facts(self) -> Any:
        """The facts that TextWorld holds true, for tests and metrics only."""
        return self._engine.facts()

    def commands(self) -> list[str]:
        return [read_action(command) for command in self._state.admissible_commands]

    def close(self) -> None:
        self._engine.close()

    def restore(self, task: Task, state: Mapping[str, Any], observation: str) -> None:
        """Load the task's game file and restore the state."""
        if state["said"] != digest_of(observation):
            raise EnvironmentFault(
                f"{task['id']}: the saved state does not belong to the last recorded observation, "
                f"{observation!r}; run the episode again"
            )
        self._engine.load(task["source"])
        self._state = self._engine.restore(state)

    def demands(self, actions: Sequence[str]) -> list[dict[str, bool] | None]:
        """The preconditions in alfworld's PDDL domain, each with whether it holds."""
        game = self._engine.game
        commands = [to_game(action, game.release.dialect) for action in actions]
        return truth.preconditions(commands, game, self._engine.facts())


class Alfworld(Environment):
    """The household environment: six task types, one hand, rejected actions change nothing."""

    name = "alfworld"
    memory = SHIPPED / "memory_store" / "snapshots" / "alfworld.jsonl"
    learning_split = "generated_seen"
    judging = ("generated_unseen", "valid_unseen", "valid_seen")
    demo = Demo(
        "generated_unseen", story=2, model="local:smollm2-alfworld", steps=20, max_tokens=96
    )
    packages = ("alfworld",)
    max_live = None
    ends_lost = False
    states_decide = False  # no action has hot, cool or clean as a precondition
    nowhere = "middle of the room"
    results = COMMANDS

    # The functions of this folder, under the names of the base class.
    parse_goal = staticmethod(goals.parse_goal)
    first_belief = staticmethod(beliefs.first_belief)
    update_belief = staticmethod(beliefs.update_belief)
    sub_goal = staticmethod(goals.sub_goal)
    solved = staticmethod(goals.solved)
    read_action = staticmethod(read_action)
    tasks = staticmethod(list_tasks)
    index_in = staticmethod(index_in)
    split_types = staticmethod(split_types)
    belief_errors = staticmethod(truth.disagreements)
    true_state = staticmethod(truth.true_state)
    true_belief = staticmethod(truth.true_belief)

    def goal_types(self) -> list[str]:
        return goals.GOAL_TYPES

    def describe_sub_goal(self, sub_goal: SubGoal, belief: Belief) -> str:
        """The end and the place; what is in the way may be put down at any place that takes it."""
        target = sub_goal.get("about", Target())
        match sub_goal["name"]:
            case "free_hand":
                where = self.seen_from("", belief)
                return f"free_hand: {sub_goal['target']}, at any place that takes it ({where})"
            case "place_object":
                where = self.seen_from(target["place"], belief)
                return f"place_object: {target['object']}, in/on {target['place']} ({where})"
        return super().describe_sub_goal(sub_goal, belief)

    def type_label(self, goal_type: str) -> str:
        """The official name without the prefix and suffix that most types share."""
        if goal_type.endswith("_in_recep"):
            goal_type = goal_type.removeprefix("pick_").removesuffix("_in_recep")
        return super().type_label(goal_type)

    def command_verbs(self) -> list[str]:
        return sorted({command.split()[0] for command in COMMANDS})

    def command_templates(self) -> list[str]:
        return list(COMMANDS)

    def splits(self) -> list[str]:
        # Generated homes first: they need no download.
        return [*reversed(GENERATED), *OFFICIAL]

    def wording(self, split: str) -> str:
        """The paper's wording, and beside it the wording of the game files."""
        dialect = GameFile(Path(list_tasks(split, 1)[0]["source"])).release.dialect
        return f"the paper's (put X in/on Y, no arrival lines), from games that say {dialect}"

    def open_game(self) -> LiveGame:
        return AlfworldGame()


ENVIRONMENT = Alfworld()
