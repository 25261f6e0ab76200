"""A storeroom, to turn into your own environment: the task's object lies in a closed place.

``Game`` is the simulator, ``World`` connects the agent to it. The simulator answers a rejected
command with "Nothing happens." and gives no reason: the rules explain it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import rpms

PLACES = ("drawer 1", "drawer 2", "drawer 3", "box 1", "box 2", "box 3")
THINGS = {"key 1": PLACES[:3], "torch 1": PLACES[3:]}  # and its usual places
SPLITS = {"play": (0, 30), "practice": (1000, 12)}  # first seed, default number of tasks
PLACE = re.compile(r"The (\w+ \d+) is (open|closed)\.(?: In it, you see (.+?)\.)?")


class Game(rpms.LiveGame):
    """The simulator: it takes commands and returns observations."""

    def reset(self, task: rpms.Task) -> str:
        """Place the things by the task's seed, so that a task is the same each time."""
        rng = random.Random(task["source"])
        self.goal, self.opened = task["goal"], set[str]()
        self.where = {thing: rng.choice(usual * 3 + PLACES) for thing, usual in THINGS.items()}
        return f"You are in a storeroom. {self._view()}\n\nYour task is to: {self.goal}"

    def step(self, action: str) -> rpms.Outcome:
        """Execute one action; only reaching the goal ends the game."""
        verb, _, rest = action.partition(" ")
        thing, _, place = rest.partition(" from ")
        answer, won = "Nothing happens.", False
        if action == "look":
            answer = self._view()
        elif verb == "open" and rest in PLACES and rest not in self.opened:
            self.opened.add(rest)
            answer = self._view(rest)
        elif verb == "take" and place in self.opened and self.where.get(thing) == place:
            self.where[thing] = "hand"
            answer, won = f"You take the {thing}.", self.goal == f"fetch the {thing[:-2]}."
        return rpms.Outcome(answer, done=won, won=won, score=float(won))

    def _view(self, *places: str) -> str:
        """Describe the places; only open ones show their contents."""
        texts = []
        for place in places or PLACES:
            inside = ", ".join(f"a {thing}" for thing, at in self.where.items() if at == place)
            seen = f"open. In it, you see {inside or 'nothing'}."
            texts.append(f"The {place} is {seen if place in self.opened else 'closed.'}")
        return " ".join(texts)


class World(rpms.Environment):
    """The environment; the base class has defaults for signatures, COMPAT and rejections."""

    max_steps = 20

    def goal_types(self) -> list[str]:
        """Each goal type has a procedure in domain.yaml and an example in prompts/examples."""
        return ["fetch"]

    def splits(self) -> list[str]:
        """The split for evaluation, and the split to learn on."""
        return list(SPLITS)

    def tasks(self, split: str, count: int | None = None) -> list[rpms.Task]:
        """Generate ``count`` tasks by their seeds."""
        if split not in SPLITS:
            raise rpms.RpmsError(f"unknown split '{split}'; {self.name} has {', '.join(SPLITS)}")
        first, default = SPLITS[split]
        return [
            rpms.Task(env=self.name, split=split, index=index, id=f"fetch-{first + index}",
                      goal=f"fetch the {('key', 'torch')[index % 2]}.", source=f"{first + index}")
            for index in range(default if count is None else count)
        ]  # fmt: skip

    def open_game(self) -> rpms.LiveGame:
        return Game()

    def parse_goal(self, sentence: str) -> rpms.GoalSpec:
        """Parse the sentence; the signature has the fields of ``rpms.Environment.signature``."""
        if not (goal := re.fullmatch(r"fetch the (\w+)\.", sentence)):
            raise rpms.RpmsError(f"{self.name} has no goal '{sentence}'")
        return rpms.GoalSpec(sentence=sentence, type="fetch", object=goal[1], state=None, count=1,
                             destination="", signature=f"fetch:{goal[1]}::")  # fmt: skip

    def update_belief(self, previous: rpms.Belief, action: str, observation: str) -> rpms.Belief:
        """Read every sentence that carries state; a rejection has none."""
        belief = rpms.copy_belief(previous)
        for place, door, inside in PLACE.findall(observation):
            belief["places"] = list(dict.fromkeys([*belief["places"], place]))
            belief["containers"][place] = door
            if door == "open":
                belief["searched"] = list(dict.fromkeys([*belief["searched"], place]))
                belief["last_seen"] |= dict.fromkeys(re.findall(r"a (\w+ \d+)", inside), place)
        if taken := re.match(r"You take the (.+)\.", observation):
            belief["holding"].append(taken[1])
            belief["last_seen"].pop(taken[1], None)
        return belief

    def sub_goal(
        self, goal: rpms.GoalSpec, belief: rpms.Belief, history: Sequence[rpms.Turn]
    ) -> rpms.SubGoal:
        """The current step, one of those in domain.yaml (``procedures`` and ``applicable``)."""
        thing = f"{goal['object']} 1"
        if place := belief["last_seen"].get(thing):
            return rpms.SubGoal(name="take_object", target=f"{thing} from {place}", progress=50)
        return rpms.SubGoal(name="find_object", target=goal["object"], progress=0)


WORLD = World()
