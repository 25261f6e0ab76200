"""One ALFWorld game file: a home, a goal and a task sentence, in one of the supported releases.

A game file carries its rules (a PDDL domain), its texts (a grammar) and its home (a PDDL problem).
All official games share the rules and the texts of one of two releases of alfworld, and generated
homes take theirs from the installed package. The engine implements exactly those rules and texts,
so a file with any other is an error, and so is a home that they do not cover.

Things have the names that the game prints, such as ``mug 2``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.alfworld.alfworld_package import Dialect
from rpms.vocabulary.errors import RpmsError

Row = tuple[str, ...]
Facts = Mapping[str, frozenset[Row]]

_ADVICE = "fetch or generate the game again"

# The facts that a home may start with, and the types of their arguments.
PREDICATES: dict[str, Row] = {
    "atlocation": ("agent", "location"),
    "receptacleatlocation": ("receptacle", "location"),
    "receptacletype": ("receptacle", "rtype"),
    "openable": ("receptacle",),
    "opened": ("receptacle",),
    "checked": ("receptacle",),
    "full": ("receptacle",),
    "objecttype": ("object", "otype"),
    "objectatlocation": ("object", "location"),
    "inreceptacle": ("object", "receptacle"),
    "wasinreceptacle": ("object", "receptacle"),
    "isreceptacleobject": ("object",),
    "isreceptacleobjectfull": ("object",),
    "inreceptacleobject": ("object", "object"),
    "cancontain": ("rtype", "otype"),
    "pickupable": ("object",),
    "moveable": ("object",),
    "cleanable": ("object",),
    "heatable": ("object",),
    "coolable": ("object",),
    "toggleable": ("object",),
    "sliceable": ("object",),
    "isclean": ("object",),
    "ishot": ("object",),
    "iscool": ("object",),
    "ison": ("object",),
    "istoggled": ("object",),
    "issliced": ("object",),
    "examined": ("location",),
}
ABILITY = {"isclean": "cleanable", "ishot": "heatable", "iscool": "coolable"}
"""State -> the property that a thing needs to get into it."""
_DEVICES = {"ishot": ("microwavetype",), "iscool": ("fridgetype",)}


class Release(NamedTuple):
    """The differences between the supported rules and texts."""

    dialect: Dialect
    washers: Row


# Digests of the domain and the grammar -> release: first the official games of both wordings, then
# homes generated with the domain and the grammar of alfworld 0.4.2.
_BASINS: Row = ("sinktype", "sinkbasintype")
_RELEASES = {
    ("5d9550c7b5ec75d9", "d7b1655f468b06ba"): Release("move", _BASINS),
    ("f23be92a659bdfe6", "ff1ba9d132685233"): Release("put", _BASINS),
    ("540d612a1c6ceaa7", "a277ad123e4cb9f7"): Release("move", _BASINS[1:]),
    ("7f6d5e4aacc34729", "ff1ba9d132685233"): Release("put", _BASINS[1:]),
}

_COMMENT = re.compile(r";.*")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_SENTENCE = re.compile(r'"Your task is to: ([^"\\;|<>\[\]#{}]*)"')
_FACT = re.compile(r"\((\w*) ?([\w ]*)\)")
_PROBLEM = re.compile(
    r"\(define \(problem [\w-]+\) \(:domain alfred\) \(:objects ([\w -]*)\) "
    r"\(:init ((?:\([\w ]*\) ?)*)\) \(:goal (.*)\)\)",
    re.ASCII,
)


class EngineGoal(NamedTuple):
    """Things of a kind in a place of a kind, or a held thing beside a lamp that is on."""

    thing: str
    place: str = ""
    lamp: str = ""
    state: str = ""
    number: int = 1


def _shape(text: str) -> re.Pattern[str]:
    """The pattern of a goal: ``THING`` matches a kind, and the same kind where it recurs."""
    pattern = re.escape(text)
    for blank in ("THING", "PLACE", "LAMP", "ABLE", "STATE"):
        pattern = pattern.replace(blank, rf"(?P<{blank.lower()}>\w+)", 1)
        pattern = pattern.replace(blank, rf"(?P={blank.lower()})")
    return re.compile(pattern)


_PLACED = _shape(
    "(and (exists (?r - receptacle) (exists (?o - object) (and (inreceptacle ?o ?r)"
    " (objecttype ?o THING) (receptacletype ?r PLACE)))))"
)
_CHANGED = _shape(
    "(and (exists (?r - receptacle) (exists (?o - object) (and (ABLE ?o)"
    " (objecttype ?o THING) (receptacletype ?r PLACE) (STATE ?o) (inreceptacle ?o ?r)))))"
)
_TWO_PLACED = _shape(
    "(and (exists (?r - receptacle) (exists (?o1 - object) (and"
    " (objecttype ?o1 THING) (receptacletype ?r PLACE) (inreceptacle ?o1 ?r)"
    " (exists (?o2 - object) (and (not (= ?o1 ?o2))"
    " (objecttype ?o2 THING) (receptacletype ?r PLACE) (inreceptacle ?o2 ?r)))))))"
)
_IN_LIGHT = _shape(
    "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and"
    " (objecttype ?ot LAMP) (toggleable ?ot) (istoggled ?ot) (receptacleatlocation ?r ?l)"
    " (atlocation ?a ?l) (inreceptacle ?ot ?r)))"
    " (exists (?o - object ?a - agent) (and (objecttype ?o THING) (holds ?a ?o))))"
)


class GameFile:
    """A game as its file has it. The engine never changes it.

    Raises:
        RpmsError: the file is missing, damaged, or not a game that the engine can run.
    """

    def __init__(self, path: Path) -> None:
        data, self.mark = _read_json(path)
        self.path = path
        steps = data.get("walkthrough")
        self.walkthrough = [str(step) for step in steps] if isinstance(steps, list) else None
        try:
            self.release, self.task = _read_release(data["pddl_domain"], data["grammar"])
            self.goal = self._read_problem(data["pddl_problem"])
            if not self._reachable_goal():
                raise ValueError("its goal can never be met")
        except ValueError as error:
            raise RpmsError(f"{path}: unplayable game: {error}; skip it, or {_ADVICE}") from error

    def _read_problem(self, text: str) -> EngineGoal:
        problem = _PROBLEM.fullmatch(_canonical(text))
        if problem is None:
            raise ValueError("its PDDL problem is not in alfworld's form")
        types = _typed(problem[1].split())
        rows: dict[str, set[Row]] = {predicate: set() for predicate in PREDICATES}
        for predicate, words in _FACT.findall(problem[2]):
            args = tuple(words.split())
            if PREDICATES.get(predicate) != tuple(types.get(arg) for arg in args):
                raise ValueError(
                    f"its PDDL problem starts with ({predicate} {words}), not an ALFWorld fact"
                )
            rows[predicate].add(args)
        ids = sorted({arg for group in rows.values() for row in group for arg in row})
        names = {thing: name.strip() for thing, name in display_names(ids).items()}
        # A game lists things in the order of their ids, which is not that of their names.
        self.order = {names[thing]: number for number, thing in enumerate(ids)}
        self.types = {names[thing]: types[thing] for thing in ids}
        self.start: Facts = {
            predicate: frozenset(tuple(names[arg] for arg in row) for row in group)
            for predicate, group in rows.items()
        }
        self.kinds = self._single("objecttype") | self._single("receptacletype")
        self.locations = self._single("receptacleatlocation")
        self.places: dict[str, list[str]] = {}
        for place, location in self.locations.items():
            self.places.setdefault(location, []).append(place)
        agents = self._single("atlocation")
        if len(agents) != 1:
            raise ValueError("its PDDL problem does not start with one agent at one location")
        (self.agent,) = agents
        return _read_goal(problem[3])

    def _single(self, predicate: str) -> dict[str, str]:
        """The values of a predicate that gives each thing one value, in the game's order."""
        rows = sorted(self.start[predicate], key=lambda row: self.order[row[0]])
        values = {row[0]: row[1] for row in rows}
        if len(values) < len(rows):
            raise ValueError(f"its PDDL problem has two values of {predicate} for one thing")
        return values

    def accepts(self, place: str, thing: str) -> bool:
        kinds = self.kinds.get(place, ""), self.kinds.get(thing, "")
        return kinds in self.start["cancontain"]

    def devices(self, state: str) -> Row:
        """The kinds of place that bring a thing into a state."""
        return self.release.washers if state == "isclean" else _DEVICES[state]

    # TextWorld's planner leaves out every fact that no sequence of actions can bring about. A game
    # whose goal is such a fact is not playable, and no such fact is reported as made false.

    def can_be_held(self, thing: str) -> bool:
        return (thing,) in self.start["pickupable"] and any(
            (thing, place) in self.start["inreceptacle"] for place in self.locations
        )

    def can_be_in(self, thing: str, place: str) -> bool:
        return (thing, place) in self.start["inreceptacle"] or (
            place in self.locations and self.can_be_held(thing) and self.accepts(place, thing)
        )

    def can_be_at(self, thing: str, location: str) -> bool:
        """True if a thing that can be held could ever be put down at a location."""
        return (thing, location) in self.start["objectatlocation"] or any(
            self.accepts(place, thing) for place in self.places.get(location, ())
        )

    def can_become(self, thing: str, state: str) -> bool:
        return (thing,) in self.start[state] or (
            (thing,) in self.start[ABILITY[state]]
            and self.can_be_held(thing)
            and any(self.kinds.get(place) in self.devices(state) for place in self.locations)
        )

    def _reachable_goal(self) -> bool:
        goal = self.goal
        things = [thing for thing, kind in self.kinds.items() if kind == goal.thing]
        if goal.lamp:
            lamps = [lamp for lamp, kind in self.kinds.items() if kind == goal.lamp]
            return any(map(self.can_be_held, things)) and any(
                (lamp,) in self.start["toggleable"] and self.can_be_in(lamp, place)
                for lamp in lamps
                for place in self.locations
            )
        if goal.state:
            able = self.start[ABILITY[goal.state]]
            things = [t for t in things if (t,) in able and self.can_become(t, goal.state)]
        # The planner ignores that two things have to be different: one is enough.
        return any(
            self.can_be_in(thing, place)
            for place, kind in self.kinds.items()
            if kind == goal.place
            for thing in things
        )


def _read_json(path: Path) -> tuple[dict[str, Any], str]:
    """The file's contents, and a digest that identifies them."""
    try:
        content = path.read_bytes()
        data = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise RpmsError(f"{path}: cannot read the game ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise RpmsError(f"{path}: not an ALFWorld game: not JSON ({error}); {_ADVICE}") from error
    if not isinstance(data, dict):
        raise RpmsError(f"{path}: not an ALFWorld game: no JSON object; {_ADVICE}")
    for key in ("pddl_domain", "pddl_problem", "grammar"):
        if not isinstance(data.get(key), str):
            raise RpmsError(f"{path}: not an ALFWorld game: no text {key!r} in it; {_ADVICE}")
    return data, hashlib.sha256(content).hexdigest()[:16]


def _canonical(pddl: str) -> str:
    """A PDDL text without comments, case and layout, which mean nothing in PDDL."""
    tokens = _TOKEN.findall(_COMMENT.sub("", pddl).lower())
    return " ".join(tokens).replace("( ", "(").replace(" )", ")")


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=8)
def _domain_digest(domain: str) -> str:
    return digest_of(_canonical(domain))


def _read_release(domain: str, grammar: str) -> tuple[Release, str]:
    """The release of a game's rules and texts, and its task sentence."""
    rules = _domain_digest(domain)
    if rules not in {digest for digest, _ in _RELEASES}:
        raise ValueError("its rules (PDDL domain) are not those of a known release of alfworld")
    sentences = _SENTENCE.findall(grammar)
    texts = digest_of(_SENTENCE.sub('"Your task is to: ..."', grammar).strip())
    if (rules, texts) not in _RELEASES or len(sentences) != 1:
        raise ValueError("its texts (grammar) are not those that alfworld has for these rules")
    return _RELEASES[rules, texts], sentences[0]


def _typed(words: list[str]) -> dict[str, str]:
    """Parse names that are followed by ``- type``."""
    types: dict[str, str] = {}
    waiting: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "-":
            kind = next(rest, "")
            types |= dict.fromkeys(waiting, kind)
            waiting = []
        else:
            waiting.append(word)
    return types


def _read_goal(text: str) -> EngineGoal:
    if match := _PLACED.fullmatch(text):
        return EngineGoal(match["thing"], match["place"])
    if match := _TWO_PLACED.fullmatch(text):
        return EngineGoal(match["thing"], match["place"], number=2)
    if match := _IN_LIGHT.fullmatch(text):
        return EngineGoal(match["thing"], lamp=match["lamp"])
    match = _CHANGED.fullmatch(text)
    if match and ABILITY.get(match["state"]) == match["able"]:
        return EngineGoal(match["thing"], match["place"], state=match["state"])
    raise ValueError("its PDDL goal is none of the six that ALFWorld has")


_SPELLED = (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """The names a game prints, such as ``mug 2``, for the ids of one problem.

    Instances are numbered from the last id in alphabetical order to the first, as alfworld does;
    without a number, it still writes the space.
    """
    kinds = {}
    for thing in sorted(thing_id.lower() for thing_id in ids):
        kind, bar, _ = thing.partition("_bar_")
        kinds[thing] = f"{kind}basin" if bar and "basin" in thing else kind, bool(bar)
    unnumbered = Counter(kinds.values())
    names = {}
    for thing, (kind, numbered) in kinds.items():
        names[thing] = f"{kind} {unnumbered[kind, True] if numbered else ''}"
        unnumbered[kind, True] -= numbered
        for word, sign in _SPELLED:
            names[thing] = names[thing].replace(word, sign)
    return names
