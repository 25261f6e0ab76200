"""What the planner pictures from its own turns: rooms, things, what it carries and has done."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rpms.models.sim.science_listing import Node, every, read_listing, without_articles

_ROOM = re.compile(
    r"This (?:room|outside location) is called the ([\w ]+?)\. (?:In it|Here),? you see:"
)
_WENT = re.compile(r"You (?:move|teleport)(?: through .+?)? to the ([\w ]+)\.$")
_MOVED = re.compile(r"You (?:move|pour) the (contents of the )?(.+?) (?:in)?to the (.+?)\.$")
_SWITCHED = re.compile(r"The (.+?) is (?:now|already) (open|closed|activated|deactivated)\.")
_FOCUSED = re.compile(r"You focus on the (.+?)\.$")
_READING = re.compile(r"measures a temperature of (-?\d+)")
_RECIPE = re.compile(r"To make .+?, you need to mix (.+?)\.?$", re.M)
_MADE = re.compile(r"mix to produce (?:an? )?(.+?)\.$")
_DUG = re.compile(r"You dig a hole")
MENU = re.compile(r"^(\d+):\s*(.+?)\s*$", re.M)
# A menu line says where a thing is: "cup (in sink, in kitchen)".
_PATH = re.compile(r" \(in ([^(),]+)[^()]*\)")
_SAID = re.compile(r"(?:pick up|put down|move|pour) (.+?)(?: (?:in)?to (.+))?$")
_CARRIED = "In your inventory, you see:"
_INVENTORY = "inventory"
_REFUSED = re.compile(
    r"No known action|Unknown action|It's not clear|I'm not sure|You can't|That |There is only|"
    r"The door is not|Mixing the contents|"
    r"The .*(?: is not | isn't | can't | does not | appears broken)"
)


class Scene:
    """Built turn by turn; what it was not told it does not know."""

    def __init__(self) -> None:
        self.room = ""
        self.rooms: dict[str, list[Node]] = {}
        self.exits: dict[str, list[str]] = {}
        self.carried: list[Node] = []
        self.focused: list[str] = []
        self.readings: list[tuple[str, int]] = []
        self.recipe: list[str] = []
        self.made: list[str] = []
        self.arrived = False
        self.opened = False
        self.menu: dict[str, str] = {}
        self.refused: Counter[tuple[str, str]] = Counter()
        self.done: list[str] = []

    @property
    def here(self) -> list[Node]:
        """What is in the room, as far as it is pictured."""
        return self.rooms.get(self.room, [])

    @property
    def view(self) -> list[Node]:
        """All that can be named: in the room and in the hand."""
        return [*every(self.here), *every(self.carried)]

    def find(self, name: str) -> Node | None:
        """The thing of a name in view, exactly so or with more words before it."""
        return _find(self.view, name)

    def broken(self, device: str) -> bool:
        """Whether a device in this room could not be switched on."""
        return bool(self.refused[self.room, f"activate {device}"])

    def meant(self, phrase: str) -> Node | None:
        """The thing of ``cup in freezer``, ``pot in inventory`` or ``cup containing milk``."""
        if (exact := self.find(phrase)) is not None:
            return exact
        name, _, content = phrase.partition(" containing ")
        if content:
            fit = [n for n in self.view if n.name.endswith(name)]
            return next((n for n in fit if _find(n.inside, content)), None)
        name, _, place = phrase.rpartition(" in ")
        if place == _INVENTORY:
            return _find(every(self.carried), name)
        outer = [node for node in self.view if node.name == place]
        return next((hit for o in outer if (hit := _find(o.inside, name))), None)

    def apply(self, action: str, answer: str) -> None:
        """One turn. Answers of unknown shape change nothing."""
        action = self.menu.get(action, action)
        # What is refused in one room may well be possible in another.
        self.menu = {}
        if answer.startswith("Ambiguous"):
            self.menu = {
                number: _PATH.sub(r" in \1", line) for number, line in MENU.findall(answer)
            }
            return
        if _REFUSED.match(answer):
            self.refused[self.room, action] += 1
            return
        self.done.append(action)
        if found := _ROOM.match(answer):
            self._look(found[1], answer)
        elif found := _WENT.match(answer):
            self.room = found[1]
            self.arrived, self.opened = True, False
        elif found := _MOVED.match(answer):
            self._move(action, found[2], found[3], contents=bool(found[1]))
        elif answer.startswith(_CARRIED):
            self.carried = read_listing(answer.partition("\n")[2])
        else:
            self._operate(action, answer)

    def _look(self, room: str, answer: str) -> None:
        listing, _, doors = answer.partition("You also see:")
        nodes = read_listing(listing.partition("\n")[2].partition("\n\n")[0])
        if not any(node.name == "agent" for node in nodes):
            return
        self.room, self.arrived, self.opened = room, False, False
        self.rooms[room] = [node for node in nodes if node.name not in ("agent", "air")]
        self.exits[room] = re.findall(r"door to the ([\w ]+?) \(", doors)

    def _move(self, action: str, name: str, place: str, contents: bool) -> None:
        """Picture the thing at its new place; the command says more exactly which one it was."""
        said = _SAID.match(action)
        source = (self.meant(said[1]) if said else None) or self.find(name)
        goal = (self.meant(said[2]) if said and said[2] else None) or self.find(place)
        if contents:
            moved = list(source.inside) if source else []
            if source:
                source.inside.clear()
        else:
            moved = [source or Node(name)]
            self._remove(moved[0])
        if place == _INVENTORY:
            self.carried += moved
        elif goal is None or any(goal is inner for inner in every(moved)):
            self.rooms.setdefault(self.room, []).extend(moved)
        else:
            goal.inside += moved

    def _remove(self, wanted: Node) -> None:
        for nodes in (self.carried, self.here, *(node.inside for node in self.view)):
            nodes[:] = [node for node in nodes if node is not wanted]

    def _operate(self, action: str, answer: str) -> None:
        if found := _SWITCHED.match(answer):
            if (node := self.find(found[1])) is not None:
                self._switch(node, found[2])
        elif found := _FOCUSED.match(answer):
            self.focused.append(found[1])
        elif found := _READING.search(answer):
            self.readings.append((action.rpartition(" on ")[2], int(found[1])))
        elif found := _RECIPE.search(answer):
            self.recipe = [part.strip() for part in found[1].split(",")]
        elif found := _MADE.search(answer):
            self.made.append(found[1])
            if (node := self.meant(action.removeprefix("mix "))) is not None:
                node.inside[:] = [Node(found[1])]
        elif _DUG.match(answer):
            self.rooms.setdefault(self.room, []).append(Node("soil"))
        elif action.startswith(("look", "examine")):
            self._look_at(answer)

    def _switch(self, node: Node, state: str) -> None:
        if state in ("open", "closed"):
            self.opened = self.opened or (state == "open" and node.door == "closed")
            node.door = state
        else:
            node.note = state

    def _look_at(self, answer: str) -> None:
        """One thing, or ``Inside the cupboard is:`` and the things below."""
        if found := re.match(r"Inside the (.+?) is:", answer):
            if (node := self.find(found[1])) is not None:
                node.inside[:] = read_listing(answer.partition("\n")[2])
            return
        things = read_listing(answer)
        node = self.find(things[0].name) if things else None
        if node is not None:
            node.note, node.door = things[0].note, things[0].door
            node.inside[:] = things[0].inside


def picture(turns: Sequence[tuple[str, str]], span: int) -> Scene:
    """The scene after the turns; only the last ``span`` leave more than room and inventory."""
    whole = Scene()
    for action, answer in turns:
        whole.apply(action, answer)
    if span >= len(turns):
        return whole
    recent = Scene()
    recent.room = _room_before(turns[: len(turns) - span])
    for action, answer in turns[len(turns) - span :]:
        recent.apply(action, answer)
    recent.room, recent.carried = whole.room, whole.carried
    return recent


def _room_before(turns: Sequence[tuple[str, str]]) -> str:
    scene = Scene()
    for action, answer in turns:
        scene.apply(action, answer)
    return scene.room


def _find(nodes: Iterable[Node], name: str) -> Node | None:
    """Adjectives come first: ``red apple`` is an ``apple``, an ``orange wire`` no ``orange``."""
    known, wanted = list(nodes), without_articles(name)
    for node in known:
        if without_articles(node.name) == wanted:
            return node
    return next((node for node in known if node.name.lower().endswith(f" {wanted}")), None)
