"""Parses the simulator's descriptions of rooms, things, doors and the inventory.

A thing is described by its name, states, door and, as far as visible, its contents. The same
sentence forms nest in one another ("a bed. On the bed is: a mattress. On the mattress is: a white
pillow.."), so they are read by a small scanner, not by one pattern per kind. The scanner skips
unknown text: a missing state is better than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rpms.envs.scienceworld.things import (
    CARRYING,
    INVENTORY,
    POURED,
    SOWN,
    add_event,
    kinds,
    names_before,
    note,
    states_of,
)  # fmt: skip
from rpms.vocabulary.belief import Belief, Door, objects_at
from rpms.vocabulary.naming import find, is_a, same_words


class Thing(NamedTuple):
    """One described thing.

    Attributes:
        name: without article, in the words of the text (``red apple``, ``liquid tin``).
        states: its states, in the belief's words (``activated``, ``adult stage``).
        door: open or closed, if the text says so.
        contents: the things in or on it; None if the text does not mention them.
    """

    name: str
    states: tuple[str, ...] = ()
    door: Door | None = None
    contents: tuple[Thing, ...] | None = None


# The text says "blank paper"; commands and listings say "paper".
_ARTICLE = re.compile(r"(?:(?:an?|the) )?(?:substance called |blank (?=paper))?", re.I)
# A title in brackets belongs to the name ("book (Moby Dick)"), other brackets do not.
_NAME = re.compile(
    r"[^,.():\n]+?(?: \((?!containing |on fire|that )[^()]*\))?"
    r"(?=\s*[,.):\n]| \((?:containing |on fire|that )| in the \w+ stage| titled |its terminal"
    r"| approximately | at the (?:top|bottom) of | of (?=[^,.()]*\.\s+The artist)|\s*$)"
)
_SWITCHED = {
    "turned on": "activated", "on": "activated", "activated": "activated",
    "turned off": "deactivated", "off": "deactivated", "deactivated": "deactivated",
}  # fmt: skip
_SWITCH = re.compile(r", which is (turned on|turned off|on|off|activated|deactivated)\b")
_STATE = re.compile(
    r"(?:,? \(?(on fire)\)?|, currently reading a temperature of (-?\d+ degrees celsius)"
    r"| in the (\w+ stage)|(?: with| and)(?: an?)? (\w+ (?:height|leaves))"
    r"| approximately (\d+% down the plane)| at the (\w+ of the plane))"
)
_BRACKET = re.compile(r" \(containing ")
_LOAD = re.compile(r", with: ")
# Text about a thing that the belief does not keep.
_REST = re.compile(
    r"(?: titled | of (?=[^,.()]*\.\s+The artist)| with an? )[^,.()\n]*|\.\s+The artist[^.\n]*\."
    r"|\.? ?its (?:terminal \d|anode|cathode) is connected to: [^.\n]*|, that is [^,.()\n]*"
    r"|, which is flushing| \(that [^()]*\)"
)
# The simulator prints "lemonpollen" but knows only "lemon pollen".
_GLUED = re.compile(r"(\w)pollen$")
LISTED_BELOW = "is:"
_NEXT = re.compile(r"\s*, ")
_BRACKET_END = re.compile(r"\s*\)")
_SENTENCE_END = re.compile(r"\. ?")


@lru_cache(maxsize=1024)
def _sentences(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of the sentences about a thing's door and its contents.

    They contain its name, so no sentence is attributed to another thing.
    """
    subject = rf"{re.escape(name)}(?: \(on fire\))?"
    return (
        re.compile(rf"(?:\. +The {subject}(?: door)? is|, which is) (open|closed)\b\.? ?"),
        re.compile(rf"(?:\. )?(?:On|In|Inside) the {subject} (?:is|you see): "),
    )


class _Scanner:
    """Reads one line from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume the pattern if it comes next."""
        if match := pattern.match(self.text, self.at):
            self.at = match.end()
        return match

    def things(self) -> Iterator[Thing]:
        """Read a list inside a sentence: ``a, b, c``, or ``nothing``."""
        while (thing := self.thing()) is not None:
            if thing.name != "nothing":
                yield thing
            if not self.take(_NEXT):
                return

    def thing(self) -> Thing | None:
        """Read one thing with its description."""
        self.take(_ARTICLE)
        name = self.take(_NAME)
        if name is None:
            return None
        states: list[str] = []
        door: Door | None = None
        contents: tuple[Thing, ...] | None = None
        # Later sentences about a wilting flower say just "the flower".
        door_sentence, contents_sentence = _sentences(name[0].removeprefix("wilting "))
        while True:
            if match := self.take(door_sentence):
                door = "open" if match[1] == "open" else "closed"
            elif match := self.take(_SWITCH):
                states.append(_SWITCHED[match[1]])
            elif match := self.take(_STATE):
                states.append(next(state for state in match.groups() if state))
            elif self.take(_BRACKET):
                contents = tuple(self.things())
                self.take(_BRACKET_END)
            elif self.take(contents_sentence) or self.take(_LOAD):
                contents = tuple(self.things())
                self.take(_SENTENCE_END)
            elif not self.take(_REST):
                break
        plain = _GLUED.sub(r"\1 pollen", " ".join(name[0].split()))
        return Thing(plain, tuple(states), door, contents)


@lru_cache(maxsize=4096)
def read_thing(line: str) -> Thing | None:
    """The thing that one line of a listing describes; None for ``nothing``."""
    thing = _Scanner(line.strip()).thing()
    return None if thing is None or thing.name == "nothing" else thing


def read_lines(block: str) -> list[Thing]:
    """The things of an indented listing, one a line.

    Some things list their contents on the lines below, with the same indent. Such a list ends
    with a blank line or with ``nothing``.
    """
    things: list[Thing] = []
    inner: list[Thing] | None = None
    for line in block.splitlines():
        thing = read_thing(line)
        if inner is None:
            if thing is not None:
                things.append(thing)
            if line.rstrip().endswith(LISTED_BELOW):
                inner = []
        elif thing is not None:
            inner.append(thing)
        if inner is not None and thing is None:
            things[-1] = things[-1]._replace(contents=tuple(inner))
            inner = None
    if inner is not None:
        things[-1] = things[-1]._replace(contents=tuple(inner))
    return things


def walk(things: Sequence[Thing], inside: str) -> Iterator[tuple[Thing, str]]:
    """Every thing of a listing with the name of its container, outermost first."""
    for thing in things:
        yield thing, inside
        yield from walk(thing.contents or (), thing.name)


_ROOM = re.compile(
    r"This (?:room|outside location) is called the ([\w ]+?)\. (?:In it|Here),? you see:\s*\n"
    r"((?:\t.*\n?|\n(?=\t))*)(?:You also see:\n((?:\t.*\n?|\n(?=\t))*))?"
)
_INSIDE = re.compile(r"Inside the (.+?) is:\s*\n((?:\t.*\n?|\n(?=\t))*)")
LISTED = "In your inventory, you see:"
_CARRIED = re.compile(rf"{LISTED}\n((?:\t.*\n?|\n(?=\t))*)")
EXIT = re.compile(r"A door to the ([\w ]+?) \(that is (open|closed)\)")
_DOOR = re.compile(
    r"door to (?:the )?([\w ]+)$|^\w+ (?:the )?([\w ]+) door$|door between ([\w ]+) and ([\w ]+)$"
)
_AGENT = "agent"
# Several rooms have one, so the belief about it ends with the room.
_COMMON = ("sink", "drawer")


def look(belief: Belief, command: str, text: str) -> bool:
    """Read the description of a room, the inventory, a container or a thing.

    Returns False if the text is none of these.
    """
    if match := _ROOM.match(text):
        things = read_lines(match[2])
        if _has_agent(things):
            arrive(belief, match[1])
        see_room(belief, match[1], things, EXIT.findall(match[3] or ""))
    elif match := _CARRIED.match(text):
        _carry(belief, read_lines(match[1]))
    elif match := _INSIDE.match(text):
        _look_inside(belief, match[1], match[2], text)
    elif command.startswith(("look at", "examine")):
        return _look_at(belief, text)
    else:
        return False
    return True


def _has_agent(things: Sequence[Thing]) -> bool:
    return any(thing.name == _AGENT for thing in things)


def _look_inside(belief: Belief, name: str, block: str, text: str) -> None:
    things = read_lines(block)
    if name == INVENTORY:
        _carry(belief, things)
    elif name in belief["places"] or _has_agent(things):
        if _has_agent(things):
            arrive(belief, name)
        see_room(belief, name, things, EXIT.findall(text))
    else:
        _see_thing(belief, Thing(name, contents=tuple(things)))


def _look_at(belief: Belief, text: str) -> bool:
    """Read one thing, with its contents in the same line or in the lines below."""
    if match := EXIT.match(text):
        if match[1] in belief["places"]:
            belief["containers"][f"door to {match[1]}"] = "open" if match[2] == "open" else "closed"
        return True
    things = read_lines(text)
    if not things:
        return False
    if things[0].name == INVENTORY:
        _carry(belief, things[0].contents or ())
    else:
        _see_thing(belief, things[0])
    return True


def arrive(belief: Belief, room: str) -> None:
    """Move the agent to a room. The view is empty again, and doors get names from this room."""
    _know_room(belief, room)
    if room == belief["location"]:
        return
    belief["location"] = room
    belief["visible"], belief["alike"] = [], {}
    for name in [name for name in belief["containers"] if name.startswith(("door to ", *_COMMON))]:
        del belief["containers"][name]
    for name in _COMMON:
        belief["flags"].pop(name, None)


def _know_room(belief: Belief, room: str) -> None:
    if room not in belief["places"]:
        belief["places"].append(room)


def see_room(
    belief: Belief, room: str, things: Sequence[Thing], exits: Sequence[tuple[str, str]]
) -> None:
    """Read a whole room. The listing replaces the belief about it, except in closed containers."""
    _know_room(belief, room)
    listed = [(thing, inside) for thing, inside in walk(things, room) if thing.name != _AGENT]
    names = [thing.name for thing, _ in listed]
    truncated = [name for name in belief["spots"].get(room, []) if name not in names]
    seen_in = belief["last_seen"]
    missing = [
        name
        for name in dict.fromkeys(truncated)
        if name in seen_in and seen_in[name] not in belief["holding"]
    ]
    doors = belief["containers"]
    hidden = [name for name in missing if doors.get(seen_in[name]) == "closed"]
    # A renamed substance keeps its old name in the belief until the new one is noted.
    for thing, inside in listed:
        _see(belief, thing, inside, names)
    for name in missing:
        if name not in hidden:
            seen_in.pop(name, None)
    belief["spots"][room] = names + hidden
    _searched(belief, room)
    if room == belief["location"]:
        belief["visible"] = names
        belief["alike"] = {
            f"{thing.name} in {inside}": ", ".join(thing.states)
            for thing, inside in listed
            if names.count(thing.name) > 1
        }
        for beyond, state in exits:
            belief["containers"][f"door to {beyond}"] = "open" if state == "open" else "closed"
    for beyond, _ in exits:
        _know_room(belief, beyond)


def _see_thing(belief: Belief, thing: Thing) -> None:
    """Read one thing that was looked at, with its visible contents."""
    place = _rename(belief, thing.name)
    if find(belief["holding"], thing.name) is None:
        belief["last_seen"][thing.name] = place
    missing: list[str] = []
    names = [inner.name for inner, _ in walk([thing], place)]
    if thing.contents is not None:
        inside = {inner.name for inner in thing.contents}
        missing = [old for old in objects_at(belief, thing.name) if old not in inside]
    for inner, where in walk([thing], place):
        if inner is thing:
            _state(belief, inner)
        else:
            _see(belief, inner, where, names)
            _in_view(belief, inner.name)
    for old in missing:
        remove(belief, old)


def _rename(belief: Belief, name: str) -> str:
    """The place of a thing. A new name replaces another phase of the substance in this view."""
    if name in belief["last_seen"]:
        return belief["last_seen"][name]
    for old in names_before(belief, name):
        if old in belief["visible"]:
            note(belief, name, [])
            belief["visible"].remove(old)
            _in_view(belief, name)
            return belief["last_seen"].pop(old)
    return belief["location"] or ""


def _see(belief: Belief, thing: Thing, inside: str, view: Sequence[str] = ()) -> None:
    """Note where a thing is, unless the belief tracks a carried thing of that name."""
    _state(belief, thing, view)
    if (key := f"{thing.name} in {inside}") in belief["alike"]:
        belief["alike"][key] = ", ".join(thing.states)
    held = belief["holding"]
    if inside in held or belief["last_seen"].get(thing.name) not in held:
        belief["last_seen"][thing.name] = inside


def _state(belief: Belief, thing: Thing, view: Sequence[str] = ()) -> None:
    states = list(thing.states)
    if thing.name.startswith("inclined plane"):
        states += [f"{load.name} {' '.join(load.states)}" for load in thing.contents or ()]
    # A pot may hold several things of one name, and `last_seen` keeps only one.
    if is_a(thing.name, kinds("flower_pot")) and thing.contents is not None:
        poured = [state for state in states_of(belief, thing.name) if state == POURED]
        for inner, _ in walk(thing.contents, ""):
            states += [inner.name, *inner.states]
        states += poured
    note(belief, thing.name, states, view)
    if thing.door is not None and thing.name != "drain":
        belief["containers"][thing.name] = thing.door
    if thing.contents is not None:
        _searched(belief, thing.name)


def _searched(belief: Belief, place: str) -> None:
    if place not in belief["searched"]:
        belief["searched"].append(place)


def _in_view(belief: Belief, name: str) -> None:
    names = belief["spots"].setdefault(belief["location"] or "", [])
    if name not in names:
        names.append(name)
    # An empty view means that the room was not looked at; one thing is not the whole view.
    if belief["visible"] and name not in belief["visible"]:
        belief["visible"].append(name)


def _carry(belief: Belief, things: Sequence[Thing]) -> None:
    """Read the listed inventory. A thing that was held under another of its names keeps it."""
    before = list(belief["holding"])
    belief["holding"] = []
    for thing in things:
        name = find(before, thing.name) or thing.name
        if name in before:
            before.remove(name)
        belief["holding"].append(name)
        for inner, where in walk(thing.contents or (), name):
            _see(belief, inner, where)
        _state(belief, thing)
    belief["flags"].pop(CARRYING, None)


def put(belief: Belief, thing: str, place: str) -> None:
    """Put a thing in, on or at a place: a container in view, or a room."""
    belief["last_seen"][thing] = place
    if is_a(place, kinds("flower_pot")):
        note(belief, place, [*states_of(belief, place), thing])
        if not is_a(thing, kinds("matter")):
            add_event(belief, SOWN, place)
    room = place if place in belief["places"] else belief["location"]
    if room is not None:
        belief["spots"].setdefault(room, []).extend([thing, *_contents(belief, thing)])
    if room == belief["location"] and belief["visible"]:
        belief["visible"].append(thing)


def _contents(belief: Belief, thing: str) -> list[str]:
    """Everything believed to be in a thing, directly or inside its contents."""
    inside, place = list[str](), [thing]
    while place:
        inner = [name for name in objects_at(belief, place.pop()) if name not in (thing, *inside)]
        inside += inner
        place += inner
    return inside


def remove(belief: Belief, thing: str) -> None:
    """Remove a thing from the place where it was seen."""
    for names in (belief["visible"], belief["spots"].get(belief["location"] or "", [])):
        if (name := find(names, thing)) is not None:
            names.remove(name)
    name = find(list(belief["last_seen"]), thing)
    if name is not None and not any(same_words(each, thing) for each in belief["visible"]):
        del belief["last_seen"][name]


def set_door(belief: Belief, command: str, name: str, door: Door) -> None:
    """Open or close a container or a door. For "the door", the command says which one."""
    if name != "door":
        belief["containers"][name] = door
        return
    rooms = [room for match in _DOOR.finditer(command) for room in match.groups() if room]
    beyond = [room for room in rooms if room != belief["location"]]
    doors = [name for name in belief["containers"] if name.startswith("door to ")]
    if beyond:
        belief["containers"][f"door to {beyond[0]}"] = door
    elif len(doors) == 1 and belief["visible"]:
        belief["containers"][doors[0]] = door


def resolve(belief: Belief, phrase: str) -> str:
    """The thing in reach that a phrase of a command refers to, else the phrase itself."""
    phrase = phrase.removeprefix("the ")
    thing, _, place = phrase.partition(" in ")
    if place and thing in ("substance", "thing", "object", "material", "liquid"):
        inside = objects_at(belief, find([*belief["holding"], *belief["visible"]], place) or place)
        if len(inside) == 1:
            return inside[0]
        return phrase
    name = find([*belief["visible"], *belief["holding"]], thing)
    return name if name is not None else thing


def room_of(belief: Belief, name: str) -> str | None:
    """The room where a thing was last seen. Carried things are where the agent is."""
    seen = set()
    place = name
    while place in belief["last_seen"] and place not in seen:
        seen.add(place)
        place = belief["last_seen"][place]
        if place in belief["holding"]:
            return belief["location"]
    if place in belief["places"]:
        rooms = [room for room, names in belief["spots"].items() if name in names]
        return place if place in rooms or not rooms else rooms[-1]
    return None
