"""What is in view: rooms, the things in them and in one another, doors, the listed inventory.

A thing is described by its name, states, door and, as far as visible, its contents. The same
sentence shapes nest in one another ("a bed. On the bed is: a mattress. On the mattress is: a white
pillow.."), so they are read by a small scanner, not by one pattern per kind. What the scanner does
not know it skips: an unread state is better than a wrong one.
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
        states: what else is said of it, in the belief's words (``activated``, ``adult stage``).
        door: open or closed, where it says so.
        contents: the things in or on it; None when nothing is said about them.
    """

    name: str
    states: tuple[str, ...] = ()
    door: Door | None = None
    contents: tuple[Thing, ...] | None = None


# Paper is printed as blank, and known as paper alone.
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
# Said of a thing, but nothing the belief keeps.
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
    """How whole sentences say its door and contents; they name it, so none is misattributed."""
    again = rf"{re.escape(name)}(?: \(on fire\))?"
    return (
        re.compile(rf"(?:\. +The {again}(?: door)? is|, which is) (open|closed)\b\.? ?"),
        re.compile(rf"(?:\. )?(?:On|In|Inside) the {again} (?:is|you see): "),
    )


class _Scanner:
    """Reads one line from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over the pattern if it comes next."""
        if match := pattern.match(self.text, self.at):
            self.at = match.end()
        return match

    def things(self) -> Iterator[Thing]:
        """A list as it stands inside a sentence: ``a, b, c``, or ``nothing``."""
        while (thing := self.thing()) is not None:
            if thing.name != "nothing":
                yield thing
            if not self.take(_NEXT):
                return

    def thing(self) -> Thing | None:
        """One thing with all that is said of it."""
        self.take(_ARTICLE)
        name = self.take(_NAME)
        if name is None:
            return None
        states: list[str] = []
        door: Door | None = None
        contents: tuple[Thing, ...] | None = None
        # A wilting flower is just "the flower" when it is spoken of again.
        say_door, say_inside = _sentences(name[0].removeprefix("wilting "))
        while True:
            if match := self.take(say_door):
                door = "open" if match[1] == "open" else "closed"
            elif match := self.take(_SWITCH):
                states.append(_SWITCHED[match[1]])
            elif match := self.take(_STATE):
                states.append(next(state for state in match.groups() if state))
            elif self.take(_BRACKET):
                contents = tuple(self.things())
                self.take(_BRACKET_END)
            elif self.take(say_inside) or self.take(_LOAD):
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

    Some things list their contents on the lines below, just as far indented. Such a list ends
    with a blank line, or with the word that there is nothing.
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
    """Every thing of a listing with the name of what it is in, outermost first."""
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
# Several rooms have one: what was seen of it says nothing about the next.
_COMMON = ("sink", "drawer")


def look(belief: Belief, command: str, text: str) -> bool:
    """Read a description of a room, the inventory, a container or a thing, if the text is one."""
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
    """One thing, its contents in the line or listed below it."""
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
    """Stand in a room. What was in view before is not any more; doors are named from inside."""
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
    """A whole room. What it lists replaces what was believed of it, save behind closed doors."""
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
    # A substance that was renamed is still known by its old name while the new one is noted.
    for thing, inside in listed:
        _see(belief, thing, inside, names)
    for gone in missing:
        if gone not in hidden:
            seen_in.pop(gone, None)
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
    """One thing looked at for itself, with what it shows of its contents."""
    place = _rename(belief, thing.name)
    if find(belief["holding"], thing.name) is None:
        belief["last_seen"][thing.name] = place
    gone: list[str] = []
    others = [inner.name for inner, _ in walk([thing], place)]
    if thing.contents is not None:
        inside = {inner.name for inner in thing.contents}
        gone = [old for old in objects_at(belief, thing.name) if old not in inside]
    for inner, where in walk([thing], place):
        if inner is thing:
            _state(belief, inner)
        else:
            _see(belief, inner, where, others)
            _in_view(belief, inner.name)
    for old in gone:
        remove(belief, old)


def _rename(belief: Belief, name: str) -> str:
    """Where a thing is; one with a new name is what went by another name of it in this view."""
    if name in belief["last_seen"]:
        return belief["last_seen"][name]
    for old in names_before(belief, name):
        if old in belief["visible"]:
            note(belief, name, [])
            belief["visible"].remove(old)
            _in_view(belief, name)
            return belief["last_seen"].pop(old)
    return belief["location"] or ""


def _see(belief: Belief, thing: Thing, inside: str, others: Sequence[str] = ()) -> None:
    """Note where a thing is; what is carried in something is not what lies about by that name."""
    _state(belief, thing, others)
    if (known := f"{thing.name} in {inside}") in belief["alike"]:
        belief["alike"][known] = ", ".join(thing.states)
    held = belief["holding"]
    if inside in held or belief["last_seen"].get(thing.name) not in held:
        belief["last_seen"][thing.name] = inside


def _state(belief: Belief, thing: Thing, others: Sequence[str] = ()) -> None:
    states = list(thing.states)
    if thing.name.startswith("inclined plane"):
        states += [f"{load.name} {' '.join(load.states)}" for load in thing.contents or ()]
    # Pots hold things of one name, which `last_seen` has once.
    if is_a(thing.name, kinds("flower_pot")) and thing.contents is not None:
        poured = [state for state in states_of(belief, thing.name) if state == POURED]
        for inner, _ in walk(thing.contents, ""):
            states += [inner.name, *inner.states]
        states += poured
    note(belief, thing.name, states, others)
    if thing.door is not None and thing.name != "drain":
        belief["containers"][thing.name] = thing.door
    if thing.contents is not None:
        _searched(belief, thing.name)


def _searched(belief: Belief, place: str) -> None:
    if place not in belief["searched"]:
        belief["searched"].append(place)


def _in_view(belief: Belief, name: str) -> None:
    here = belief["spots"].setdefault(belief["location"] or "", [])
    if name not in here:
        here.append(name)
    # A room that was not looked at has no known view: one thing of it is not all there is.
    if belief["visible"] and name not in belief["visible"]:
        belief["visible"].append(name)


def _carry(belief: Belief, things: Sequence[Thing]) -> None:
    """The listed inventory. What was known by another of its names keeps that name."""
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
    """A thing is now in, on or at a place: a container in view, or a room."""
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
    """All that is known to be in a thing, and in what is in it: it comes along."""
    inside, place = list[str](), [thing]
    while place:
        inner = [name for name in objects_at(belief, place.pop()) if name not in (thing, *inside)]
        inside += inner
        place += inner
    return inside


def remove(belief: Belief, thing: str) -> None:
    """A thing is no longer where it was seen."""
    for names in (belief["visible"], belief["spots"].get(belief["location"] or "", [])):
        if (known := find(names, thing)) is not None:
            names.remove(known)
    known = find(list(belief["last_seen"]), thing)
    if known is not None and not any(same_words(name, thing) for name in belief["visible"]):
        del belief["last_seen"][known]


def set_door(belief: Belief, command: str, name: str, door: Door) -> None:
    """A container or a door; the answer says only "the door", the command which one."""
    if name != "door":
        belief["containers"][name] = door
        return
    rooms = [room for match in _DOOR.finditer(command) for room in match.groups() if room]
    beyond = [room for room in rooms if room != belief["location"]]
    known = [other for other in belief["containers"] if other.startswith("door to ")]
    if beyond:
        belief["containers"][f"door to {beyond[0]}"] = door
    elif len(known) == 1 and belief["visible"]:
        belief["containers"][known[0]] = door


def meant(belief: Belief, phrase: str) -> str:
    """The known thing that a phrase of a command stands for, else the phrase itself."""
    phrase = phrase.removeprefix("the ")
    thing, _, place = phrase.partition(" in ")
    if place and thing in ("substance", "thing", "object", "material", "liquid"):
        inside = objects_at(belief, find([*belief["holding"], *belief["visible"]], place) or place)
        if len(inside) == 1:
            return inside[0]
        return phrase
    known = find([*belief["visible"], *belief["holding"]], thing)
    return known if known is not None else thing


def room_of(belief: Belief, name: str) -> str | None:
    """The room a thing was last seen in; carried things are where the agent is."""
    seen = set()
    here = name
    while here in belief["last_seen"] and here not in seen:
        seen.add(here)
        here = belief["last_seen"][here]
        if here in belief["holding"]:
            return belief["location"]
    if here in belief["places"]:
        rooms = [room for room, names in belief["spots"].items() if name in names]
        return here if here in rooms or not rooms else rooms[-1]
    return None
