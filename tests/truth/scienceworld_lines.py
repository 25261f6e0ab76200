"""ScienceWorld: every kind of line that its prompts print, and the simulator's object tree.

A line claims something about now (where the agent is, what it carries, what is closed or runs),
about the last sight of a thing (its state, the room it was in), or about the last measurement. What
is claimed of now is held against the object tree. Of a last sight, only the agent changes the place
of a thing, so the place is held against the tree, too; a state is looked up in the newest
observation that names the thing, and a measurement in the newest answer of the thermometer. The
tree adds what no observation says: a substance cannot have been liquid below its melting point.

What is "usually" so, or may be so, claims no more than that the room exists.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.parse_view import EXIT
from rpms.envs.scienceworld.things import kinds_if_any, split_phase
from rpms.envs.scienceworld.truth import Facts, everything
from rpms.rules import match_action
from rpms.rules.predicates import Predicate, evaluate
from rpms.vocabulary.naming import bare_name, is_a
from tests.truth.playing import Moment
from tests.truth.reading import (
    REJECTED,
    Kind,
    is_so,
    kind,
    learned_faults,
    rejection_faults,
    times_faults,
    true_always,
)

# The whole manual judges what memory has learned, also where a run has no rules.
MANUAL = load_manual("scienceworld")
ROOMS = MANUAL.facts.affordances["room"]
LOOKED = re.compile(r"(?:This (?:room|outside location) is called|Inside) the ([\w ]+?)(?:\.| is:)")
MEASURED = re.compile(r"measures a temperature of (-?\d+) degrees celsius")
FOCUSED = re.compile(r"You focus on the (.+?)\.")
ARRIVED = re.compile(r"You (?:move|teleport)(?: through the [\w ]+?)? to the ([\w ]+)\.")
# The thermometer prints whole degrees, and a substance turns in the tick after it is warm enough.
DEGREES = 1.0
AT_HOME = 20.0
Node = dict[str, Any]


def words_of(name: str) -> set[str]:
    return {*split_phase(name.lower())[0].replace("-", " ").split()}


def called(node: Node, name: str) -> bool:
    """Whether a thing of the tree may be printed so: ``red apple`` for apple, ``ice`` for water.

    The tree has the name alone; what is printed may describe it, or say how old it is.
    """
    own, printed = words_of(node["name"]), words_of(bare_name(name))
    alike = own <= printed or printed <= own
    if life := (node["propLife"] or {}).get("lifeformType", "").lower():
        # Some young have names of their own: a tadpole is a frog.
        alike = alike or words_of(life) <= printed or is_a(name, kinds_if_any(life)) is True
    material = (node["propMaterial"] or {}).get("substanceName", "")
    return alike or words_of(material) == printed


class Truth:
    """What is so in the simulator, in the terms of printed lines."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.room, self.inventory = facts.room, facts.inventory
        self.exits = dict(EXIT.findall(facts.look))

    @cached_property
    def rooms(self) -> dict[str, Node]:
        return {room["name"]: room for room in self.facts.tree["contents"].values()}

    @cached_property
    def placed(self) -> list[tuple[Node, tuple[str, ...]]]:
        """Every thing with what it is in, the room first."""
        return [*self._inside(self.facts.tree, ())]

    def _inside(
        self, node: Node, around: tuple[str, ...]
    ) -> Iterator[tuple[Node, tuple[str, ...]]]:
        for thing in node["contents"].values():
            yield thing, around
            yield from self._inside(thing, (*around, thing["name"]))

    def things(self, name: str) -> list[tuple[Node, tuple[str, ...]]]:
        """Everything that may be printed so, by exact names first."""
        lasting = split_phase(name.lower())[0]
        exact = [(t, at) for t, at in self.placed if split_phase(t["name"].lower())[0] == lasting]
        return exact or [(t, at) for t, at in self.placed if called(t, name)]

    def within(self, name: str, place: str) -> bool:
        """Whether a thing is in a place, directly or not."""
        return any(
            any(called({**t, "name": at, "type": "", "propMaterial": None}, place) for at in around)
            for t, around in self.things(name)
        )

    @cached_property
    def in_view(self) -> list[Node]:
        """What can be acted on: in the room or carried, and behind no closed door."""

        def open_contents(node: Node) -> Iterator[Node]:
            for thing in node["contents"].values():
                yield thing
                if (thing["propContainer"] or {"isOpen": True})["isOpen"]:
                    yield from open_contents(thing)

        return [self.rooms[self.room], *open_contents(self.rooms[self.room])]

    def is_in_view(self, phrase: str) -> bool:
        """Whether something in view goes by this name, in that place if the phrase names one."""
        name = bare_name(phrase)
        if name.endswith(" door") or name.startswith("door"):
            return any(room in phrase for room in self.exits) or name == "door"
        place = re.search(r" in (?:the )?(.+)$", phrase)
        here = [t for t in self.in_view if t["name"].lower() == name]
        if place is None:
            return bool(here)
        holders = [t for t in self.in_view if called(t, place[1])]
        return any(t is inner for t in here for h in holders for inner in everything(h))

    def doors(self, name: str, room: str | None = None) -> set[str]:
        """``open`` or ``closed`` for all of that name, in a room."""
        if name.startswith("door to "):
            return {self.exits.get(name.removeprefix("door to "), "none")}
        return {
            "open" if t["propContainer"]["isOpen"] else "closed"
            for t, around in self.things(name)
            if (t["propContainer"] or {}).get("isClosable") and (room is None or room in around)
        }

    def switches(self, name: str) -> set[str]:
        """``activated``, ``deactivated``, ``broken``: all that is so of any device of the name."""
        found = set()
        for device in (t["propDevice"] for t, _ in self.things(name) if t["propDevice"]):
            found.add("activated" if device["isActivated"] else "deactivated")
            found |= {"broken"} if device["isBroken"] else set()
        return found

    def points(self, substance: str) -> tuple[float, float] | None:
        """Where a substance melts and boils; a tin cup is made of tin and is none."""
        for thing, _ in self.placed:
            material = thing["propMaterial"] or {}
            name = split_phase(thing["name"])[0].lower()
            if material and material["substanceName"].lower() == name == substance.lower():
                return material["meltingPoint"], material["boilingPoint"]
        return None


_newest: list[tuple[Moment, Truth]] = []


def truth_of(moment: Moment) -> Truth:
    """The truth of a moment, asked for once."""
    if not _newest or _newest[0][0] is not moment:
        _newest[:] = [(moment, Truth(moment.game.facts()))]
    return _newest[0][1]


def observations(moment: Moment) -> list[tuple[str, str]]:
    """Everything that was read, with the command before it, the newest first."""
    turns = [(turn["action"], turn["observation"]) for turn in moment.state["history"]]
    return [*reversed(turns), ("", moment.state["first_observation"])]


def looked_at(moment: Moment) -> set[str]:
    return {room for _, text in observations(moment) for room in LOOKED.findall(text)}


def split_list(text: str) -> list[str]:
    """The items of a printed list; a comma within brackets ends none."""
    return [item.strip() for item in re.split(r", (?![^()]*\))", text)]


def read_item(item: str) -> tuple[str, str]:
    """``water in metal pot (liquid)`` -> the text before the brackets, and in them."""
    match = re.fullmatch(r"(.+?)(?: \(([^()]*)\))?", item)
    assert match
    return match[1], match[2] or ""


# The state block.


@kind("state", r"Room: (.+?)  Carrying: (.+)")
def room_and_hands(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth = truth_of(moment)
    yield from is_so(match[1] == truth.room, f"truly in the {truth.room}")
    if "(not sure" in match[2]:
        return
    known, _, more = match[2].partition("perhaps things from the start")
    names = [n for n in known.removesuffix(", and ").split(", ") if n and n != "nothing"]
    left = [t for t, around in truth.placed if around[-1:] == ("inventory",)]
    left = [t for t in left if not t["name"].startswith("terminal ")]
    for name in names:
        fitting = [t for t in left if t["name"] == name] or [t for t in left if called(t, name)]
        yield from is_so(bool(fitting), f"{name} is not carried: {truth.inventory}")
        if fitting:
            left = [t for t in left if t is not fitting[0]]
    if not more and left:
        yield f"{[t['name'] for t in left]} carried, too"


@kind("state", r"Focused on: (.+)")
def focused(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truly = [found[1] for _, text in observations(moment) if (found := FOCUSED.match(text))][::-1]
    names = match[1].split(", ")
    yield from is_so(len(names) == len(truly), f"truly {truly}")


@kind("state", r"Your last command was ambiguous: answer with a number of its list")
def ambiguous(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(observations(moment)[0][1].startswith("Ambiguous request"), "nothing was asked")


@kind("state", r"Closed: (.+)")
def closed(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth = truth_of(moment)
    for name in match[1].split(", "):
        doors = truth.doors(name, truth.room)
        yield from is_so("closed" in doors, f"{name} is truly {doors or 'without a door'}")


@kind("state", r"States when last seen: (.+)")
def states(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    for item in split_list(match[1]):
        name, printed = read_item(item)
        yield from state_faults(moment, name, printed)


def state_faults(moment: Moment, name: str, printed: str) -> Iterator[str]:
    """What is false in the states that are printed of a thing."""
    parts = printed.split(", ") if printed else []
    phase = next((part for part in parts if part in ("solid", "liquid", "gas")), "")
    switches = truth_of(moment).switches(name)
    for part in parts:
        if part in ("activated", "deactivated", "broken"):
            yield from is_so(part in switches, f"{name} is truly {switches}")
        elif part in ("open", "closed"):
            doors = truth_of(moment).doors(name)
            yield from is_so(part in doors, f"{name} is truly {doors}")
        elif name == "thermometer" and part.endswith(" when last measured"):
            yield from sight_faults(moment, name, part.removesuffix(" when last measured"))
        elif part.endswith(" when last measured"):
            yield from reading_faults(moment, name, float(part.split()[0]), phase)
        elif part in ("solid", "liquid", "gas"):
            yield from phase_faults(moment, name, part)
        elif part == "made":
            made = any("mix to produce" in text for _, text in observations(moment))
            yield from is_so(made, f"{name} was not made")
        elif part == "poured into":
            poured = any(" to the " in text for _, text in observations(moment))
            yield from is_so(poured, "nothing was poured")
        else:
            yield from sight_faults(moment, name, part)


def reading_faults(moment: Moment, name: str, degrees: float, phase: str) -> Iterator[str]:
    """A temperature: the newest measurement of the thing, and possible in the state beside it."""
    readings = (
        float(found[1])
        for command, text in observations(moment)
        if (found := MEASURED.search(text)) and names_thing(moment, command, name)
    )
    newest = next(readings, None)
    yield from is_so(degrees == newest, f"the last measurement of {name} was {newest}")
    points = truth_of(moment).points(name)
    if points is None:
        return
    melts, boils = points
    state = phase or ("solid" if melts > AT_HOME else "liquid")
    low = {"solid": -math.inf, "liquid": melts, "gas": boils}[state] - DEGREES
    high = {"solid": melts, "liquid": boils, "gas": math.inf}[state] + DEGREES
    yield from is_so(low <= degrees <= high, f"{name} is never {state} at {degrees:g} degrees")


def names_thing(moment: Moment, command: str, name: str) -> bool:
    """Whether a command, or the line of a menu that a number chose, names a thing."""
    spoken = command.lower()
    if spoken.isdecimal():
        return True
    target = bare_name(spoken.rpartition(" on ")[2])
    return words_of(target) <= words_of(name) | {"substance", "in"} or target == "substance"


def phase_faults(moment: Moment, name: str, phase: str) -> Iterator[str]:
    """A state of matter: that of now if the room was just looked at, where it is the only one."""
    text = observations(moment)[0][1]
    truth = truth_of(moment)
    if not LOOKED.match(text) or name.lower() not in (w.lower() for w in lasting_names(text)):
        return
    portions = {
        t["propMaterial"]["stateOfMatter"]
        for t in truth.in_view
        if t["propMaterial"] and split_phase(t["name"])[0].lower() == name.lower()
    }
    yield from is_so(not portions or phase in portions, f"{name} is truly {portions}")


def lasting_names(text: str) -> Iterator[str]:
    """Every substance that a look names, under the name that stays."""
    for found in re.finditer(r"(?:substance called|containing a?|:|,) ([\w -]+)", text):
        yield split_phase(found[1].strip().removeprefix("substance called ").strip())[0]
    for word in ("ice", "water", "steam"):
        if re.search(rf"\b{word}\b", text):
            yield "water"


def sight_faults(moment: Moment, name: str, part: str) -> Iterator[str]:
    """Any other state: said in the newest observation that names the thing."""
    core = split_phase(name)[0]
    no_look = ("You ", "No known", "the ", "Ambiguous")
    listings = (t for _, t in observations(moment) if not t.startswith(no_look))
    told = next((text for text in listings if core in text), "")
    words = [w for w in part.split() if w not in ("of", "the")]
    yield from is_so(all(word in told for word in words), f"'{part}' was not last seen of {name}")


@kind("state", r"Seen: (.+)")
def seen(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    for item in split_list(match[1]):
        where, room = read_item(item)
        yield from place_faults(moment, where, room)


def place_faults(moment: Moment, where: str, room: str) -> Iterator[str]:
    """``water in metal pot``, in a room or with the agent."""
    truth = truth_of(moment)
    name, _, place = where.rpartition(" in ")
    if not name:
        name, place = where, ""
    # A drain is a passage to the sewer, which the tree lists as no thing.
    if name == "drain" or as_last_seen(moment, name):
        return
    if not truth.things(name):
        yield f"there is no {name}"
    if place and not truth.within(name, place):
        yield f"{name} is in {[at for _, at in truth.things(name)][:4]}"
    if room and not truth.within(name, room):
        yield f"{name} is not in the {room}"


def as_last_seen(moment: Moment, name: str) -> bool:
    """Whether a thing that changes by itself was named before time passed, and by nothing since.

    Water dries up, seeds sprout and fruit falls while time passes.
    """
    core = split_phase(bare_name(name))[0]
    things = truth_of(moment).things(name)
    changes = any(t["propLife"] or t["propMaterial"] for t, _ in things) or core == "water"
    passed = False
    for command, text in observations(moment):
        if core in text and text.startswith(("This ", "Inside ", "You move")):
            return passed and changes
        if core in command:
            return False
        passed = passed or command in ("wait", "wait1")
    return False


@kind("state", r"Looked around: (.+)")
def looked_around(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    rooms = looked_at(moment)
    return [f"{r} was not looked at" for r in match[1].split(", ") if r not in rooms]


@kind("state", r"Not looked around: (.+)")
def not_looked_around(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    for room in match[1].split(", "):
        yield from is_so(room in truth_of(moment).rooms, f"there is no {room}")
        yield from is_so(room not in looked_at(moment), f"{room} was looked at")


@kind("state", r"Exits: (.+)")
def exits(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    truly = truth_of(moment).exits
    return [f"no door to the {room}" for room in match[1].split(", ") if room not in truly]


@kind("state", r"Recipe: (.+)")
def recipe(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    told = [text for _, text in observations(moment) if "you need to mix" in text]
    return [f"{i} was not named" for i in match[1].split(", ") if i not in "".join(told)]


@kind("state", r"Rejected here \((.+)\): (.+)")
def recap(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    failed = {t["action"] for t in moment.state["history"]
              if t["failed"] and match[1] in t["observation"]}  # fmt: skip
    return [f"'{a}' was not rejected so" for a in match[2].split(", ") if a not in failed]


@kind("state", r"Last seen on (inclined plane.*?): (.+)")
def slide(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """How far the block was in the newest observation that shows it on that plane."""
    with_block = re.compile(rf"{re.escape(match[1])}, with: (.+)")
    shown = (found[1] for _, text in observations(moment) if (found := with_block.search(text)))
    told = next(shown, "")
    words = [word for word in match[2].split() if word not in ("of", "the")]
    yield from is_so(all(word in told for word in words), f"last shown: {told}")


@kind("state", r"Seen (?:here|in ([\w ]+)): (.+)")
def around(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    room = match[1] or truth_of(moment).room
    for item in split_list(match[2]):
        where, states = read_item(item)
        yield from place_faults(moment, where, room if room in ROOMS else "")
        yield from state_faults(moment, where.partition(" in ")[0], states)


# The goal and the objective.


@kind("goal", r"\[Task Goal\] (.+)")
def goal(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(match[1] == moment.state["goal"]["sentence"], "another goal")


@kind("goal", r"Target: (.+)")
def target(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    goal = moment.state["goal"]
    spelled = match[1] in goal["sentence"] or goal["object"] not in goal["sentence"].lower()
    return is_so(match[1].lower() == goal["object"] and spelled, "another target")


@kind("situation", r"\[Current Objective\] (.+?)((?:; [^;]+)*)")
def objective(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth, order, sentence = truth_of(moment), match[1], moment.state["goal"]["sentence"]
    for room in ROOMS:
        named = re.search(rf"(?:in the|where the boxes are, in the) {room}\b", order)
        yield from is_so(not named or room in sentence, f"the task does not name the {room}")
    if taken := re.fullmatch(r"pick up the ([\w ]+?)(?: or the container that it is in)?", order):
        carried = [t for t, at in truth.things(taken[1]) if "inventory" in at]
        yield from is_so(not carried, f"{taken[1]} is carried already")
    if chosen := re.fullmatch(r"focus on the ([\w ]+)", order):
        texts = [text for _, text in observations(moment)]
        done = f"You focus on the {chosen[1]}." in texts
        yield from is_so(not done, f"{chosen[1]} was focused on already")
    for more in filter(None, match[2].split("; ")):
        if reading := re.fullmatch(r"last reading: (-?[\d.]+) degrees celsius", more):
            thing = moment.state["goal"]["object"]
            yield from reading_faults(moment, thing, float(reading[1]), printed_phase(moment))
        elif phase := re.fullmatch(r"when last seen it was (solid|liquid|gas)", more):
            yield from phase_faults(moment, moment.state["goal"]["object"], phase[1])
        elif offspring := re.fullmatch(r"the offspring has: (.+)", more):
            texts = "".join(text for _, text in observations(moment))
            words = offspring[1].replace(",", "").split()
            yield from (f"no {word} was seen" for word in words if word not in texts)
        else:
            yield f"nobody can check '{more}'"


def printed_phase(moment: Moment) -> str:
    """The state of matter that the state block prints of the task's object."""
    thing = re.escape(moment.state["goal"]["object"])
    found = re.search(rf"{thing} \((solid|liquid|gas)\b", moment.blocks.state, re.I)
    return found[1] if found else ""


@kind("goal", r"Progress: (\d+)% of the steps are done")
def progress(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(0 <= int(match[1]) <= 100, "no share")


# Rules.


@kind("rules", r"O-LOC-\d+: (.+) (?:is|are) usually at: ([^;]+?)(?:; it may be in .+ there)?")
def usual_places(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    rooms = truth_of(moment).rooms
    return [f"there is no {place}" for place in match[2].split(" -> ") if place not in rooms]


@kind("rules", r"([OE]-ACT-\d+): .+")
def action_line(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    """Held against the simulator by what became of the last action (``needs_hold``)."""
    return is_so(match[1] in {rule.id for rule in moment.manual.actions}, "no such action")


@kind("rules", r"(?:[A-Z]+\d?-)+\d+: (.+)|\d+\. (.+)")
def principle(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    """Principles and sequences; a device with a room in brackets has to be there."""
    truth, text = truth_of(moment), match[1] or match[2]
    for room in truth.rooms:
        for found in re.finditer(rf"([\w ]+) \((?:[\w ]+: )?{room}\)", text):
            named = {t["name"] for t, _ in truth.placed if t["propDevice"]}
            for device in (name for name in named if found[1].endswith(f" {name}")):
                there = [t["name"] for t, at in truth.placed if room in at]
                some = any(f" {name}".endswith(f" {device}") for name in there)
                yield from is_so(some, f"{device} is not in the {room}")


@kind("situation", r"- OS-005: This room has not been looked at yet - look around\.")
def unlooked(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    for _, text in observations(moment):
        if ARRIVED.match(text):
            return
        if truth_of(moment).room in LOOKED.findall(text):
            yield "it was looked at since"
            return


# The last action.


@kind("last_action", REJECTED.pattern)
def rejected(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    yield from times_faults(moment, match)
    yield from reason_faults(moment, match["action"], match["reason"])


def reason_faults(moment: Moment, action: str, reason: str) -> Iterator[str]:
    """What is false in the reason for a rejection."""
    truth = truth_of(moment)

    def holds(predicate: Predicate, names: Mapping[str, str]) -> bool | None:
        return true_predicate(truth, predicate.bind(names))

    other = {
        r"no open door leads from here to (.+): go room by room": lambda m, found: is_so(
            truth.exits.get(found[1]) != "open", "an open door leads there"
        ),
        r"(.+) is no room, or there is no teleporting here: go to the next room": (
            lambda m, found: is_so(found[1] not in truth.rooms, "it is a room")
        ),
        r"(.+?) (?:or (.+) )?is not in view(?: here)? under this name": lambda m, found: is_so(
            not all(truth.is_in_view(name) for name in found.groups() if name), "it is in view"
        ),
    }
    yield from rejection_faults(moment, action, reason, holds, fact_fault, other)


def true_predicate(truth: Truth, predicate: Predicate) -> bool | None:
    """The truth of what an action can need; None for what only the procedure says."""
    name = predicate.arguments[0] if predicate.arguments else ""
    here = [t for t in truth.in_view if t["name"].lower() == bare_name(name)]
    rooms = truth.rooms
    so: bool | None
    if predicate.name == "visible":
        so = truth.is_in_view(name)
    elif predicate.name == "room":
        so = name in rooms
    elif predicate.name == "adjacent":
        so = truth.exits.get(name) == "open"
    elif predicate.name == "unclosed":
        so = "closed" not in truth.doors(name)
    elif predicate.name == "openable":
        so = name.startswith("door") or name.endswith("door") or any(
            (t["propContainer"] or {}).get("isClosable") for t in here
        )  # fmt: skip
    elif predicate.name == "switchable":
        so = any((t["propDevice"] or {}).get("isActivable") for t in here)
    elif predicate.name == "fixed":
        # Gas and liquids are movable by the tree, and cannot be picked up.
        so = not any((t["propMoveable"] or {}).get("isMovable") for t in here)
        so = so or bare_name(name) == "air"
    elif predicate.name == "kind":
        so = bare_name(name) == predicate.arguments[1]
    else:
        return None
    return so if predicate.positive else not so


def fact_fault(moment: Moment, fact: str) -> str:
    """What is false about a fact; empty if nothing is."""
    truth = truth_of(moment)
    if match := re.fullmatch(r"it is in (.+), which is closed", fact):
        return "" if "closed" in truth.doors(match[1]) else f"{match[1]} is not closed"
    if match := re.fullmatch(r"(.+) is (open|closed)", fact):
        return "" if match[2] in truth.doors(match[1]) else f"{match[1]} is not {match[2]}"
    if match := re.fullmatch(r"(.+) has no door", fact):
        return "" if not truth.doors(match[1]) else f"{match[1]} has a door"
    return f"nobody can check the fact '{fact}'"


# Memory.


def named_in(action: str) -> list[str]:
    """The things and rooms that a command names; none where it is no known command."""
    matched = match_action(MANUAL, action)
    return [*matched[1].values()] if matched else []


@kind("memory", r"From here, a similar task (?:was solved by|went on with): (.+)")
def snippet(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth = truth_of(moment)
    for step in match[1].split(" -> "):
        for name in named_in(step):
            there = name in truth.rooms or bool(truth.things(name)) or later(step, name)
            yield from is_so(there, f"there is no {name}")
    first = match_action(MANUAL, match[1].split(" -> ")[0])
    if first and first[0].name == "teleport":
        yield from is_so(first[1]["place"] != truth.room, "it begins where the agent is")


def later(step: str, name: str) -> bool:
    """Whether a step may name what does not exist yet: a mixture, a fruit, an age."""
    return step.startswith(("focus on ", "move ", "pick up ", "look ", "pour ", "mix "))


@kind("memory", r"OK: \w+: (.+)|FOUND: .+|AVOID(?: \[CRITICAL\])?: (.+)|SCHEMA: (.+)")
def recorded(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    """In the names of another house: held to one voice, not to this house."""
    return true_always(moment, match)


@kind("memory", r"Rule: (?:needs .+|it was rejected in a similar task, .+|in the task \S.+)")
def recorded_rule(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return true_always(moment, match)


@kind("memory", r"Danger: in a task with the goal (.+?), '(.+)' was wrong: it ended .+")
def danger(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    yield from is_so(match_action(MANUAL, match[2]) is not None, "no such action")


@kind(
    "memory",
    r"Learned: (.+?)(?: needs (.+?))?(?:; afterwards (.+?))?(?: \(worked in \d+ of \d+ tries\))?",
)
def learned(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    """What memory noticed must be so by the game's rules, or follow from them."""
    return learned_faults(MANUAL, match[1], match[2], match[3], {"visible", "holding"})


@kind("memory", r"In other tasks, (.+) was found in: (.+)")
def found(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    rooms = truth_of(moment).rooms
    for sort, held, looked, here in re.findall(
        r"([\w ]+) \((\d+) of (\d+) searched held one; here: ([^)]+)\)", match[2]
    ):
        yield from is_so(int(held) <= int(looked), "more finds than searches")
        yield from is_so(here.strip() in rooms and sort.strip() == here, f"there is no {here}")
        yield from is_so(here not in looked_at(moment), f"the {here} was looked at already")


@kind("memory", r"In a similar task '(.+)' was rejected; the reason is not known")
def unexplained(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(match_action(MANUAL, match[1]) is not None, "no such action")


@kind("memory", r"WARNING \[(.+?)\]: check first that (.+); that is not known yet")
def warning(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(match[1] in {rule.id for rule in moment.manual.actions}, "no such rule")


@kind("memory", r"WARNING \[(.+?)\]: by the rules '(.+)' can work now")
def allowed(moment: Moment, match: re.Match[str]) -> Iterable[str]:
    return is_so(match[1] in {rule.id for rule in moment.manual.actions}, "no such rule")


# The guard's offers: reasons that say how things are.

# Reasons that claim nothing of the state: time passes, something may be so, the task wants it.
UNCLAIMED = re.compile(
    r"(?:cooling|heating|growing|fruit|the next stage) takes time|the block needs time|"
    r"it may have (?:grown|changed)(?: in .+)?|fruit may have grown|more ingredients may be .+|"
    r"to see .+|.+ names the ingredients|"
    r"bees carry the pollen|its name tells when it changes|a pot needs soil|"
    r"what was made may be listed under another name|.+ (?:heats|cools) what is put into it|"
    r".+ is what (?:the task names|the task is about|the procedure needs|was to be made)|"
    r".+ (?:is an ingredient|goes to the other ingredients|shows how .+ is|has not been tried)|"
    r".+ (?:measures .+|can take all (?:ingredients|of them)|keeps .+ when it melts)|"
    r".+ can be filled.*|"
    r".+ (?:has|have|needs) (?:to be heated|to change|to run|water too|soil|water|grown)|"
    r".+ (?:is to be filled further|is to be planted|has the ingredients|digs up soil)|"
    r".+ (?:belongs in a box|is measured at the boxes|has just been made|ripened on a plant)|"
    r".+ is its (?:first|next) stage|a plant begins as .+|a seedling comes .+|the adult stage .+|"
    r"an adult plant bears flowers|of all in view, .+ lives (?:longest|shortest)|"
    r"the offspring has (?:not )?the trait|the ground of the .+ has soil|"
    r"(?:.+ holds an ingredient and may be closed)|no reading is above or below the limit"
)
HAS = {
    "a tap": "sink", "a heater": "stove|oven|blast furnace|hot plate", "a freezer": "freezer",
    "a blast furnace": "blast furnace", "something to put it into": "bowl|cup|jug|pot",
    "something to fill": "bowl|cup|jug|pot",
}  # fmt: skip


@kind("offered", r"\d+\. (.+?) \((.+)\)")
def offer(moment: Moment, match: re.Match[str]) -> Iterator[str]:
    truth, reason = truth_of(moment), match[2]
    checked = False
    for pattern, check in OFFERS:
        if claim := re.search(pattern, reason):
            checked = True
            yield from check(moment, truth, claim)
    if not checked and not UNCLAIMED.fullmatch(reason):
        yield "nobody can check this reason"


def _contains_goal(moment: Moment, truth: Truth, claim: re.Match[str]) -> Iterator[str]:
    """The vessel of that name holds what the task is about."""
    wanted = [moment.state["goal"]["object"], moment.state["sub_goal"]["about"]["object"]]
    inside = any(name and truth.within(name, claim[1]) for name in wanted)
    yield from is_so(inside, f"{claim[1]} holds none of {wanted}")


def _room_has(moment: Moment, truth: Truth, claim: re.Match[str]) -> Iterator[str]:
    kinds = HAS[claim[2]].split("|")
    names = [t["name"] for t, around in truth.placed if claim[1] in around]
    some = any(name == k or name.endswith(f" {k}") for name in names for k in kinds)
    yield from is_so(some, f"no such thing in the {claim[1]}")


def _compared(moment: Moment, truth: Truth, claim: re.Match[str]) -> Iterator[str]:
    """The reading, its side of the limit, and that the substance truly is on that side."""
    reading, limit, thing = float(claim[1]), float(claim[3]), moment.state["goal"]["object"]
    side = {"above": 1, "below": -1}[claim[2]]
    yield from reading_faults(moment, thing, reading, printed_phase(moment))
    yield from is_so(side * (reading - limit) > 0, "the reading is on the other side")
    box = claim[4]
    told = re.search(rf"(above|below) {limit:.1f} degrees celsius, [\w ]+ the {box}",
                     moment.state["goal"]["sentence"])  # fmt: skip
    yield from is_so(told is not None, f"the task has another limit for the {box}")
    if told and "melting point" in moment.state["goal"]["sentence"]:
        points = truth.points(thing)
        truly = points is None or ((points[0] > limit) == (told[1] == "above"))
        yield from is_so(truly, f"it melts at {points}")


def _slower(moment: Moment, truth: Truth, claim: re.Match[str]) -> Iterator[str]:
    readings = {name: float(n) for n, name in re.findall(r"(\d+) on ([^,:]+)", claim[0])}
    pick = min if claim[1] == "slower" else max
    yield from is_so(readings[claim[2]] == pick(readings.values()), f"read {readings}")
    texts = [text for _, text in observations(moment)]
    for number in readings.values():
        ends = {100.0: "at the bottom of", 0.0: "at the top of"}.get(number, f"{number:g}% down")
        yield from is_so(any(ends in text for text in texts), f"{number:g} was never seen")


OFFERS: Sequence[tuple[str, Any]] = (
    (r"^(.+?) is closed(?:,| and )", lambda m, t, c: is_so(
        "closed" in t.doors(c[1], t.room), f"{c[1]} is not closed here")),
    (r"the ([\w ]+?) has not been looked at", lambda m, t, c: is_so(
        c[1] in t.rooms and c[1] not in looked_at(m), f"{c[1]} was looked at, or is no room")),
    (r"^(?:the task names the|the boxes are in the) ([\w ]+?)(?:,|$)", lambda m, t, c: is_so(
        c[1] in m.state["goal"]["sentence"] and c[1] in t.rooms, "it does not")),
    (r"^(.+) (?:contains what|contains it|holds what)", lambda m, t, c: (
        [] if "focused on" in c.string else _contains_goal(m, t, c))),
    (r"^(.+) is where it belongs$", lambda m, t, c: is_so(
        c[1] == m.state["goal"]["destination"], "the task names another")),
    (rf"^the (.+) has ({'|'.join(HAS)})$", _room_has),
    (r"^(?:an? (animal|plant)|it) was (?:seen|left) in the (.+)$", lambda m, t, c: is_so(
        c[2] in looked_at(m), f"the {c[2]} was never looked at")),
    (r"^something in the (.+) has not been opened$", lambda m, t, c: is_so(
        any("closed" in t.doors(n["name"], c[1]) for n, at in t.placed if c[1] in at),
        "everything is open there")),
    (r"^flower pots stand in the (.+)$|^the planes are in the (.+)$|^the (.+) has ingredients$",
     lambda m, t, c: is_so((c[1] or c[2] or c[3]) in t.rooms, "no such room")),
    (r"^the (.+) is running$", lambda m, t, c: is_so(
        "activated" in t.switches(c[1]), f"{c[1]} is off")),
    (r"^(.+) has to run$", lambda m, t, c: is_so(
        "deactivated" in t.switches(c[1]), f"{c[1]} runs already")),
    (r"^water runs into what is in the (.+)$", lambda m, t, c: is_so(
        bool(t.switches(c[1])), "no such device")),
    (r"^(flower pot \d+) has soil$", lambda m, t, c: is_so(
        t.within("soil", c[1]), "it has none")),
    (r"^(.+) is an? (animal|plant)$", lambda m, t, c: is_so(
        any(n["propLife"] for n, _ in t.things(c[1])), "it does not live")),
    (r"^(.+) never lived and can be carried$", lambda m, t, c: is_so(
        any(not n["propLife"] and n["propMoveable"]["isMovable"] for n, _ in t.things(c[1])),
        "it lives, or cannot be carried")),
    (r"^(.+) was chosen by focusing on it$", lambda m, t, c: is_so(
        any(FOCUSED.match(text) for _, text in observations(m)), "nothing was focused on")),
    (r"^(-?[\d.]+) is (above|below) (-?[\d.]+) degrees celsius, so (.+)$", _compared),
    (r"^\d+ on .+: the block is (slower|faster) on (.+)$", _slower),
    (r"^your last command was ambiguous$", lambda m, t, c: is_so(
        observations(m)[0][1].startswith("Ambiguous request"), "nothing was asked")),
    (r"^nothing here has been looked at yet$", lambda m, t, c: unlooked.check(m, c)),
    (r"^(.+?) has not been looked into", lambda m, t, c: is_so(
        bool(t.things(c[1])), "no such thing")),
)  # fmt: skip

KINDS: list[Kind] = [each for each in globals().values() if isinstance(each, Kind)]

# What the manual's tables say of kinds of things; the simulator has the last word.
STATIC = ("openable", "switchable", "fixed", "room")


def needs_hold(moment: Moment) -> Iterator[str]:
    """What the manual says that an action needs, against what became of the last one."""
    last = moment.state["history"][-1] if moment.state["history"] else None
    matched = match_action(moment.manual, last["action"]) if last else None
    if (
        last is None
        or matched is None
        or last["failed"]
        or moment.state["belief"]["disambiguation"]
    ):
        return
    rule, names = matched
    for predicate in (p for p in rule.needs if p.name in STATIC):
        if evaluate(predicate, moment.state["belief"], moment.manual.facts, names) is False:
            yield f"{moment.where}: '{last['action']}' worked, and {rule.id} says it could not"
