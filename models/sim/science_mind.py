"""What the planner knows at one moment, and the little skills that every plan is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from zlib import crc32

from rpms.models.sim.science_listing import Node, around, every
from rpms.models.sim.science_reading import ScienceView
from rpms.models.sim.science_scene import Scene, picture
from rpms.models.sim.science_task import ScienceTask, read_science_task

Ideas = Iterator[tuple[str, str]]

ATTENTION = 3
"""How many of its own turns the planner remembers when no rule sends it back to the record."""

ROOMS = ["kitchen", "workshop", "living room", "bedroom", "art studio", "greenhouse", "outside",
         "bathroom", "foundry", "hallway"]  # fmt: skip
CUPS = ("metal pot", "glass cup", "tin cup", "ceramic cup", "wood cup", "plastic cup", "paper cup",
        "bowl", "jug", "cup", "pot")  # fmt: skip
FURNITURE = ("table", "counter", "chair", "desk", "shelf", "cupboard", "closet", "fridge",
             "freezer", "oven", "stove", "sink", "bed", "couch", "bathtub", "toilet", "fountain",
             "furnace", "pit", "ground", "hive", "plane", "drawer", "drain")  # fmt: skip
_PHASE = re.compile(r"^(?:solid|liquid|gaseous|frozen|melted) ")
_WATER = ("water", "ice", "steam")


class Mind:
    """The prompt, the task and the scene, with what has been tried in vain."""

    def __init__(self, view: ScienceView) -> None:
        self.view = view
        self.task: ScienceTask = read_science_task(view.task)
        careful = self.knows("U-STATE-001")
        self.scene: Scene = picture(view.turns, len(view.turns) if careful else ATTENTION)
        if room := view.state.get("Room", "").replace("unknown", ""):
            self.scene.room = room
        # Its own turns do not tell what it carried from the start; the state block does.
        carrying = view.state.get("Carrying", "nothing").partition(" (not sure")[0]
        for name in carrying.split(", "):
            if name not in ("nothing", "") and self.scene.find(name) is None:
                self.scene.carried.append(Node(name))
        if focused := view.state.get("Focused on", ""):
            self.scene.focused = [name.strip() for name in focused.split(",")]
        looked = view.state.get("Looked around", "")
        self.looked: set[str] = {name.strip() for name in looked.split(",")} | set(self.scene.rooms)

    def knows(self, rule: str) -> bool:
        """Whether the rule is in the prompt."""
        return rule in self.view.rules

    def allowed(self, action: str) -> bool:
        """Not what was refused too often, nor what past experience calls a grave mistake."""
        if self.view.avoid.get(action):
            return False
        tries = 2 if self.knows("U-FAIL-001") else 3
        return self.scene.refused[self.scene.room, action] < tries and not self.repeating(action)

    def repeating(self, action: str) -> bool:
        """Whether it got the very same answer to this three times running; waiting is no such."""
        last = self.view.turns[-3:]
        same = len(last) == 3 and len(set(last)) == 1
        return same and last[-1][0] == action and not action.startswith("wait")

    def coin(self, sides: int) -> int:
        """Whim without chance: the same prompt always gives the same choice."""
        trail = "|".join(action for action, _ in self.view.turns[-ATTENTION:])
        text = f"{self.view.whim}|{self.view.task}|{len(self.view.turns)}|{trail}"
        return crc32(text.encode()) % max(1, sides)

    @property
    def hasty(self) -> bool:
        """Now and then it cuts an experiment short, unless a past success shows the whole way."""
        text = f"{self.view.whim}|{self.view.task}|{self.view.turns[0][1]}"
        return not self.view.snippets and crc32(text.encode()) % 4 == 0

    def rooms(self) -> list[str]:
        """The house in some order; another beginner goes through it in another."""
        whim = self.view.whim
        return sorted(ROOMS, key=lambda room: crc32(f"{whim}:{room}".encode())) if whim else ROOMS

    def seen(self, name: str) -> Node | None:
        """The thing in view, whatever its phase: ``liquid tin`` for tin, ice for water."""
        wanted = plain(name)
        for node in self.scene.view:
            if plain(node.name) == wanted:
                return node
        return next((n for n in self.scene.view if plain(n.name).endswith(f" {wanted}")), None)

    def holder(self, node: Node) -> Node | None:
        """The cup or pot that a thing is in and that can be carried."""
        path = around([*self.scene.carried, *self.scene.here], node)
        fit = [outer for outer in path if not outer.name.endswith(FURNITURE)]
        return fit[-1] if fit else None

    def path(self, node: Node) -> list[str]:
        """Names of all that a thing is in, from the outside in."""
        return [outer.name for outer in around([*self.scene.carried, *self.scene.here], node)]

    def carries(self, node: Node) -> bool:
        """Whether it is in the hand, or in something that is."""
        return any(node is held for held in every(self.scene.carried))

    def known(self, name: str) -> Node | None:
        """The thing in view or as it was last seen in another room."""
        nodes = [node for room in self.scene.rooms.values() for node in every(room)]
        return self.seen(name) or next((n for n in nodes if plain(n.name) == plain(name)), None)

    def remembered(self, name: str) -> str:
        """The room in which a thing was seen, by the state block or by the pictured rooms."""
        for room, nodes in self.scene.rooms.items():
            if any(plain(node.name) == plain(name) for node in every(nodes)):
                return room
        for entry in self.view.state.get("Seen", "").split(", "):
            found = re.match(r"(.+?) in (.+?)(?: \((.+)\))?$", entry)
            if found and plain(found[1]).endswith(plain(name)):
                return found[3] or found[2]
        return ""

    def go(self, room: str) -> Ideas:
        """Into a room: at once by the rule, else through doors as far as they are pictured."""
        if room == self.scene.room or not room:
            return
        if self.knows("E-ACT-003"):
            yield f"On to the {room}.", f"teleport to {room}"
        exits = self.scene.exits.get(self.scene.room, [])
        if room in exits or not exits:
            yield f"The {room} is next door.", f"go to {room}"
        elif exits:
            yield f"Somewhere there must be the {room}.", f"go to {exits[self.coin(len(exits))]}"

    def look(self) -> Ideas:
        """Look around where the picture is missing or out of date."""
        if self.scene.opened or self.unlooked:
            yield "Let me see what is here.", "look around"

    @property
    def unlooked(self) -> bool:
        """Whether it has not looked since it came in."""
        return self.scene.arrived or self.scene.room not in self.scene.rooms

    def search(self, what: str, rooms: Sequence[str]) -> Ideas:
        """Likely rooms first, closed things in them, then every other room."""
        likely = list(dict.fromkeys(room for room in rooms if room))
        # Everything that is closed is opened first: one look then shows what is in all of it.
        if not self.unlooked and self.scene.room in likely:
            yield from self.open_all()
        yield from self.look()
        if room := self.remembered(what):
            yield from self.go(room)
        order = [*likely, *self.places(what), *self.rooms()]
        for room in dict.fromkeys(order):
            if room != self.scene.room and room not in self.looked:
                yield from self.go(room)
        yield from self.open_all()
        # What was not found in any room is behind a door somewhere.
        for room in self.rooms():
            if any(n.door == "closed" for n in every(self.scene.rooms.get(room, []))):
                yield from self.go(room)

    def open_all(self) -> Ideas:
        """Open what is closed here."""
        for node in every(self.scene.here):
            if node.door == "closed" and node.name not in ("drain", "bee hive"):
                yield f"The {node.name} is closed.", f"open {node.name}"

    def places(self, what: str) -> list[str]:
        """Rooms that the locality rule or past successes name for a thing."""
        found = [room for text in self.view.rules.values()
                 for listed in re.findall(r"is usually at: (.+)", text)
                 for room in listed.split(" -> ")]  # fmt: skip
        for snippet in self.view.snippets:
            for before, after in pairwise(snippet):
                if went := re.match(r"(?:go|teleport) to (.+)", before):
                    found += [went[1]] if what and what in after else []
        return found


def plain(name: str) -> str:
    """The lasting name of a thing: phases come and go."""
    name = name.lower()
    return "water" if name in _WATER else _PHASE.sub("", name)
