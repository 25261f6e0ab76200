"""A lighthouse on a rock: one file for the simulator and for what the agent can know of it.

Fuel goes into what is open and burns in what is closed; the horn needs steam. A command that
cannot work is answered with "Nothing happens.", and nobody says why.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import rpms

STORES = ("locker 1", "locker 2", "chest 1", "chest 2")
FUEL = {"lamp 1": "oil can 1", "boiler 1": "coal sack 1"}
PLACES = (*STORES, *FUEL, "horn 1", "mast 1")
# Verb of the sentence -> goal type, what it takes (else what the sentence names), where that goes.
TYPES = {"light": ("light_lamp", "oil can", "lamp"), "sound": ("sound_horn", "coal sack", "boiler"),
         "hoist": ("hoist_pennant", "", "mast")}  # fmt: skip
GOALS = ("light the lamp.", "sound the horn.", "hoist the red pennant.",
         "light the lamp.", "sound the horn.", "hoist the blue pennant.")  # fmt: skip
SPLITS = {"rocks": (0, 30), "practice": (1000, 12)}  # first seed, usual number of tasks
PROGRESS = {"take_object": 20, "fill_device": 40, "hoist_pennant": 60, "light_device": 60,
            "sound_horn": 80}  # fmt: skip


class LighthouseGame(rpms.LiveGame):
    """The simulator. It is told nothing but commands and tells nothing but what happens."""

    def reset(self, task: rpms.Task) -> str:
        """Lay out the rock by the task's seed: fuel is mostly in lockers, pennants in chests."""
        rng = random.Random(task["source"])
        self.goal, self.here, self.hand, self.won = task["goal"], "", "", False
        self.open = {place: place in STORES and rng.random() < 0.3 for place in (*STORES, *FUEL)}
        self.inside: dict[str, list[str]] = {place: [] for place in self.open}
        self.state: dict[str, str] = {}
        for thing in (*FUEL.values(), "red pennant 1", "blue pennant 1"):
            likely = STORES[2:] if "pennant" in thing else STORES[:2]
            self.inside[rng.choice(likely * 3 + STORES)].append(thing)
        seen = ", ".join(f"a {place}" for place in PLACES)
        return f"You are on a lighthouse rock. You see {seen}.\n\nYour task is to: {self.goal}"

    def step(self, action: str) -> rpms.Outcome:
        """Play one action; only reaching the goal ends the game."""
        answer = self._play(*action.split(" ", 1)) or "Nothing happens."
        return rpms.Outcome(answer, self.won, self.won, float(self.won))

    def _play(self, verb: str, rest: str = "") -> str:
        here, hand, is_open = self.here, self.hand, self.open.get(self.here)
        things = self.inside.get(here, [])
        match verb:
            case "look" if not rest:
                return self._view()
            case "go" if (place := rest.removeprefix("to ")) in PLACES and place != here:
                self.here = place
                return self._view()
            case "open" | "close" if rest == here and is_open is (verb == "close"):
                self.open[here] = verb == "open"
                return self._view()
            case "take" if not hand and is_open and rest in [f"{t} from {here}" for t in things]:
                self.hand = rest.removesuffix(f" from {here}")
                things.remove(self.hand)
                return f"You take the {self.hand} from the {here}."
            case "put" if hand and is_open and here in STORES and rest == f"{hand} in {here}":
                things.append(hand)
                self.hand = ""
                return f"You put the {hand} in the {here}."
            case "fill" if is_open and hand == FUEL.get(here) and rest == f"{here} with {hand}":
                self.state[here], self.hand = "filled", ""
                return f"You fill the {here} with the {hand}."
            case "light" if rest == here and not is_open and self.state.get(here) == "filled":
                self.state[here], answer = "lit", f"The {here} is lit."
            case "sound" if rest == here == "horn 1" and self.state.get("boiler 1") == "lit":
                answer = "The horn 1 sounds over the water."
            case "hoist" if rest == hand and "pennant" in hand and here == "mast 1":
                self.hand, answer = "", f"The {hand} flies from the mast 1."
            case _:
                return ""
        self.won = self.goal == f"{verb} the {rest.removesuffix(' 1')}."
        return answer

    def _view(self) -> str:
        text = f"You are at the {self.here or 'landing stage'}."
        if self.here in self.open:
            things = ", ".join(f"a {thing}" for thing in self.inside[self.here]) or "nothing"
            is_open = f"open. In it, you see {things}." if self.open[self.here] else "closed."
            text += f" The {self.here} is {is_open}"
        return text


class Lighthouse(rpms.Environment):
    """What is not here (signatures, COMPAT, how a refusal reads) is as the base class has it."""

    max_steps = 30

    def goal_types(self) -> list[str]:
        """Three things a keeper does."""
        return [kind for kind, _, _ in TYPES.values()]

    def command_templates(self) -> list[str]:
        """What the simulator can be told, for learning rules; blanks named as in domain.yaml."""
        return ["go to {place}", "open {place}", "close {place}", "take {object} from {place}",
                "put {object} in {place}", "fill {device} with {object}", "light {device}",
                "sound {device}", "hoist {object}", "look"]  # fmt: skip

    def splits(self) -> list[str]:
        """Rocks to be judged on, and others to learn on."""
        return list(SPLITS)

    def tasks(self, split: str, count: int | None = None) -> list[rpms.Task]:
        """Generated by seed, as many as asked for."""
        if split not in SPLITS:
            raise rpms.RpmsError(f"unknown split '{split}'; the lighthouse has {', '.join(SPLITS)}")
        first, usual = SPLITS[split]
        tasks = []
        for index in range(usual if count is None else count):
            goal, seed = GOALS[index % len(GOALS)], first + index
            name = f"{self.parse_goal(goal)['type']}-{seed}"
            tasks.append(rpms.Task(env=self.name, split=split, index=index, id=name, goal=goal,
                              source=f"seed {seed}"))  # fmt: skip
        return tasks

    def open_game(self) -> rpms.LiveGame:
        """A fresh rock."""
        return LighthouseGame()

    def parse_goal(self, sentence: str) -> rpms.GoalSpec:
        """The verb tells the type; a pennant is named, fuel follows from the device."""
        verb, _, thing = sentence.rstrip(".").partition(" the ")
        if verb not in TYPES:
            raise rpms.RpmsError(f"the lighthouse has no goal '{sentence}'")
        kind, needed, device = TYPES[verb]
        what = needed or thing
        return rpms.GoalSpec(sentence=sentence, type=kind, object=what, state=None, count=1,
                        destination=device, signature=f"{kind}:{what}::{device}")  # fmt: skip

    def update_belief(self, previous: rpms.Belief, action: str, observation: str) -> rpms.Belief:
        """f_upd: every sentence that carries state; a refusal matches none of them."""
        belief = rpms.copy_belief(previous)
        if "lighthouse rock" in observation:
            belief["places"] = list(PLACES)
        if match := re.search(r"You are at the (.+? \d+)\.", observation):
            belief["location"] = match[1]
        if match := re.search(r"The (.+? \d+) is closed\.", observation):
            belief["containers"][match[1]] = "closed"
        elif match := re.search(r"The (.+? \d+) is open\. In it, you see (.+)\.", observation):
            place, listed = match[1], match[2].removeprefix("a ").split(", a ")
            belief["containers"][place] = "open"
            belief["searched"] = list(dict.fromkeys([*belief["searched"], place]))
            belief["last_seen"] |= {thing: place for thing in listed if thing != "nothing"}
        elif match := re.match(r"You take the (.+? \d+) from", observation):
            belief["holding"] = [match[1]]
            belief["last_seen"].pop(match[1], None)
        elif match := re.match(r"You put the (.+? \d+) in the (.+? \d+)\.", observation):
            belief["holding"], belief["last_seen"][match[1]] = [], match[2]
        elif match := re.match(r"You fill the (.+? \d+) with", observation):
            belief["holding"], belief["flags"][match[1]] = [], "filled"
        elif match := re.match(r"The (.+? \d+) is lit\.", observation):
            belief["flags"][match[1]] = "lit"
        elif " flies from the mast" in observation:
            belief["holding"] = []
        return belief

    def sub_goal(
        self, goal: rpms.GoalSpec, belief: rpms.Belief, history: Sequence[rpms.Turn]
    ) -> rpms.SubGoal:
        """Find, take, and then what the goal's device still lacks."""
        device, thing = f"{goal['destination']} 1", f"{goal['object']} 1"
        state = belief["flags"].get(device)
        if state:
            name, target = ("sound_horn", "horn 1") if state == "lit" else ("light_device", device)
        elif thing in belief["holding"]:
            name = "hoist_pennant" if device == "mast 1" else "fill_device"
            target = f"{thing} at {device}"
        elif belief["holding"]:
            name, target = "free_hand", f"put down {belief['holding'][0]}"
        elif place := belief["last_seen"].get(thing):
            name, target = "take_object", f"{thing} from {place}"
        else:
            name, target = "find_object", goal["object"]
        return rpms.SubGoal(name=name, target=target, progress=PROGRESS.get(name, 0))


WORLD = Lighthouse()
