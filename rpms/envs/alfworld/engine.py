"""ALFWorld's actions in plain Python.

The state is the set of true facts. ``_possible`` lists the commands that a state accepts. Each
action is a method that changes the facts and returns the game's answer. Feedback, admissible
commands, flags and facts are word for word those of stock TextWorld (``python -m
tools.compare_engines`` compares them game by game). Engines share no mutable data, so any
number may be open, on any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.alfworld.game_file import ABILITY, GameFile, Row
from rpms.envs.base import NOTHING_HAPPENS
from rpms.vocabulary.errors import EnvironmentFault

Snapshot = dict[str, Any]
_Choice = tuple[Callable[..., str], Row]
"""An action and its arguments."""

_CHANGING = (
    "atlocation", "inreceptacle", "objectatlocation", "holds", "holdsany", "opened", "checked",
    "isclean", "ishot", "iscool", "ison", "istoggled", "issliced",
)  # fmt: skip
_KNIVES = ("knifetype", "butterknifetype")
_VERBS = {"isclean": "clean", "ishot": "heat", "iscool": "cool"}
_OPPOSITES = {"ishot": "iscool", "iscool": "ishot"}
# A thing is described by the first line whose facts are all true of it.
_DESCRIPTIONS = (
    ("This is a hot and clean sliced {}.", "isclean", "ishot", "issliced"),
    ("This is a cool and clean sliced {}.", "isclean", "iscool", "issliced"),
    ("This is a clean sliced {}.", "isclean", "issliced"),
    ("This is a hot sliced {}.", "ishot", "issliced"),
    ("This is a cool sliced {}.", "iscool", "issliced"),
    ("This is a hot and clean {}.", "isclean", "ishot"),
    ("This is a cool and clean {}.", "isclean", "iscool"),
    ("This is a hot {}.", "ishot"),
    ("This is a clean {}.", "isclean"),
    ("This is a cold {}.", "iscool"),
    ("This {} is on.", "toggleable", "istoggled"),
    ("This is a sliced {}.", "sliceable", "issliced"),
    ("There's nothing special about {}.",),
)

_HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""


class Fact(NamedTuple):
    """One true statement about the game, in the names that the game prints."""

    predicate: str
    args: Row


@dataclass(frozen=True)
class EngineState:
    """The result of a reset or a step."""

    feedback: str
    admissible_commands: tuple[str, ...]
    won: bool
    done: bool


class GameEngine:
    """One running game; ``load`` replaces it by another."""

    def __init__(self) -> None:
        self._game: GameFile | None = None
        self._facts: Mapping[str, Set[Row]] | None = None

    @property
    def game(self) -> GameFile:
        if self._game is None:
            raise EnvironmentFault("no game is loaded; call load() first")
        return self._game

    def load(self, gamefile: str | Path) -> None:
        self.close()
        self._game = game = GameFile(Path(gamefile))
        static = game.start.keys() - set(_CHANGING)
        self._static = [
            Fact(name, row) for name in sorted(static) for row in sorted(game.start[name])
        ]

    def reset(self) -> EngineState:
        self._begin()
        banner = "-= Welcome to TextWorld, ALFRED! =-"
        view = self._view(self.game.locations)
        return self._observe(f"{banner}\n\n{view}\n\nYour task is to: {self.game.task}")

    def step(self, command: str) -> EngineState:
        """Execute one command; one that is not admissible changes nothing and says so."""
        self._running()
        choice = self._choices.get(command.strip())
        if choice is None:
            return replace(self._state, feedback=NOTHING_HAPPENS)
        action, things = choice
        return self._observe(action(*things))

    def facts(self) -> list[Fact]:
        """All facts true in the current state, for tests and metrics, never for the agent."""
        self._running()
        changing = [
            Fact(name, row) for name, rows in self._changing.items() for row in sorted(rows)
        ]
        return self._static + changing

    def snapshot(self) -> Snapshot:
        """The state as plain data: the game's mark, and the facts that differ from its start."""
        self._running()
        added, removed = {}, {}
        for name, rows in self._changing.items():
            start = self.game.start.get(name, frozenset())
            if rows != start:
                added[name] = sorted(map(list, rows - start))
                removed[name] = sorted(map(list, start - rows))
        return {"game": self.game.mark, "added": added, "removed": removed}

    def restore(self, snapshot: Mapping[str, Any]) -> EngineState:
        """Restore a snapshot of the loaded game; no action is repeated."""
        if snapshot["game"] != self.game.mark:
            raise EnvironmentFault(f"{self.game.path}: the saved state is of another game")
        self._begin()
        for name, rows in snapshot["added"].items():
            self._changing[name].update(map(tuple, rows))
        for name, rows in snapshot["removed"].items():
            self._changing[name].difference_update(map(tuple, rows))
        return self._observe("")

    def close(self) -> None:
        self._game = self._facts = None

    def _begin(self) -> None:
        start = self.game.start
        names = (*_CHANGING, *(f"not_{name}" for name in _CHANGING))
        self._changing = {name: set(start.get(name, ())) for name in names}
        self._facts = {**start, **self._changing}

    def _running(self) -> Mapping[str, Set[Row]]:
        if self._facts is None:
            raise EnvironmentFault(f"{self.game.path}: no game is running; call reset() first")
        return self._facts

    def _observe(self, feedback: str) -> EngineState:
        self._choices = self._possible()
        won = self._won()
        self._state = EngineState(feedback, tuple(sorted(self._choices)), won, won)
        return self._state

    # Queries on the state.

    def _true(self, predicate: str, *args: str) -> bool:
        return args in self._running()[predicate]

    @property
    def _location(self) -> str:
        ((_, location),) = self._running()["atlocation"]
        return location

    @property
    def _held(self) -> list[str]:
        return [thing for _, thing in self._running()["holds"]]

    def _inside(self, place: str) -> list[str]:
        return self._first(self._running()["inreceptacle"], place)

    def _first(self, rows: Iterable[Row], second: str) -> list[str]:
        """The first elements of the rows with this second element, in the game's order."""
        return sorted((row[0] for row in rows if row[1] == second), key=self.game.order.__getitem__)

    def _won(self) -> bool:
        game, goal = self.game, self.game.goal
        if goal.lamp:
            return any(game.kinds.get(thing) == goal.thing for thing in self._held) and any(
                game.kinds.get(lamp) == goal.lamp
                and self._true("toggleable", lamp)
                and self._true("istoggled", lamp)
                for place in game.places.get(self._location, ())
                for lamp in self._inside(place)
            )
        return any(
            sum(self._fits(thing) for thing in self._inside(place)) >= goal.number
            for place, kind in game.kinds.items()
            if kind == goal.place
        )

    def _fits(self, thing: str) -> bool:
        goal = self.game.goal
        return self.game.kinds.get(thing) == goal.thing and (
            not goal.state
            or (self._true(goal.state, thing) and self._true(ABILITY[goal.state], thing))
        )

    # The commands that a state accepts.

    def _possible(self) -> dict[str, _Choice]:
        """Every command that the game accepts in this state."""
        game, location, held = self.game, self._location, self._held
        choices: dict[str, _Choice] = {"look": (self._look, ()), "inventory": (self._inventory, ())}
        if game.release.dialect == "move":
            choices["help"] = (self._help, ())
        for place, target in game.locations.items():
            if target != location:
                choices[f"go to {place}"] = (self._go, (place,))
        for thing in held:
            choices[f"examine {thing}"] = (self._examine_thing, (thing,))
            if game.kinds.get(thing) in _KNIVES:
                for other in self._first(self._running()["objectatlocation"], location):
                    if self._true("sliceable", other):
                        choices[f"slice {other} with {thing}"] = (self._slice, (other, thing))
        for place in game.places.get(location, ()):
            choices |= self._possible_at(place, held)
        return choices

    def _possible_at(self, place: str, held: list[str]) -> dict[str, _Choice]:
        game = self.game
        choices: dict[str, _Choice] = {f"examine {place}": (self._examine_place, (place,))}
        openable, opened = self._true("openable", place), self._true("opened", place)
        accessible = opened or not openable
        if openable:
            verb, action = ("close", self._close) if opened else ("open", self._open)
            choices[f"{verb} {place}"] = (action, (place,))
        for thing in self._inside(place):
            if self._true("toggleable", thing):
                choices[f"use {thing}"] = (self._use, (thing,))
            if accessible and not held and self._true("pickupable", thing):
                choices[f"take {thing} from {place}"] = (self._take, (thing, place))
        for thing in held:
            if accessible and game.accepts(place, thing):
                moved = game.release.dialect == "move"
                words = f"move {thing} to {place}" if moved else f"put {thing} in/on {place}"
                choices[words] = (self._put, (thing, place))
            for state, verb in _VERBS.items():
                able = self._true(ABILITY[state], thing)
                if able and game.kinds.get(place) in game.devices(state):
                    choices[f"{verb} {thing} with {place}"] = (self._treat, (state, thing, place))
        return choices

    # The actions.

    def _change(self, added: Iterable[Row], removed: Iterable[Row] = ()) -> None:
        """Make facts true, then others false. TextWorld also keeps the facts made false."""
        for predicate, *args in added:
            self._changing[predicate].add(tuple(args))
            self._changing[f"not_{predicate}"].discard(tuple(args))
        for predicate, *args in removed:
            self._changing[predicate].discard(tuple(args))
            self._changing[f"not_{predicate}"].add(tuple(args))

    def _look(self) -> str:
        self._change([("checked", self._location)])
        return self._view([])  # The room is listed at the start of a game and never again.

    def _inventory(self) -> str:
        self._change([("checked", self.game.agent)])
        held = self._held
        return f"You are carrying: {_listed(held)}." if held else "You are not carrying anything."

    def _help(self) -> str:
        self._change([("checked", self.game.agent)])
        return _HELP

    def _examine_place(self, place: str) -> str:
        self._change([("checked", place)])
        return self._contents(place)

    def _examine_thing(self, thing: str) -> str:
        self._change([("checked", thing)])
        if self._true("isreceptacleobject", thing):
            inside = self._first(self._running()["inreceptacleobject"], thing)
            return f"This is a normal {thing}. In it, you see {_listed(inside)}."
        return next(
            text.format(thing)
            for text, *facts in _DESCRIPTIONS
            if all(self._true(fact, thing) for fact in facts)
        )

    def _go(self, place: str) -> str:
        agent, origin, target = self.game.agent, self._location, self.game.locations[place]
        self._change([("atlocation", agent, target)], [("atlocation", agent, origin)])
        name = place if self.game.release.dialect == "move" else target
        return f"You arrive at {name}. {self._contents(place)}"

    def _open(self, place: str) -> str:
        self._change([("opened", place), ("checked", place)])
        return f"You open the {place}. {self._contents(place)}"

    def _close(self, place: str) -> str:
        self._change([], [("opened", place)])
        return f"You close the {place}."

    def _take(self, thing: str, place: str) -> str:
        agent, location = self.game.agent, self._location
        removed = [("inreceptacle", thing, place)]
        if self.game.can_be_at(thing, location):
            removed.append(("objectatlocation", thing, location))
        self._change([("holds", agent, thing), ("holdsany", agent)], removed)
        return f"You pick up the {thing} from the {place}."

    def _put(self, thing: str, place: str) -> str:
        agent, location = self.game.agent, self._location
        self._change(
            [("inreceptacle", thing, place), ("objectatlocation", thing, location)],
            [("holds", agent, thing), ("holdsany", agent)],
        )
        if self.game.release.dialect == "move":
            return f"You move the {thing} to the {place}."
        return f"You put the {thing} in/on the {place}."

    def _treat(self, state: str, thing: str, place: str) -> str:
        opposite = _OPPOSITES.get(state, "")
        ends = bool(opposite) and self.game.can_become(thing, opposite)
        self._change([(state, thing)], [(opposite, thing)] if ends else [])
        return f"You {_VERBS[state]} the {thing} using the {place}."

    def _use(self, thing: str) -> str:
        # The domain both adds and deletes ison; TextWorld applies the deletion last: never ison.
        self._change([("istoggled", thing)], [("ison", thing)])
        return f"You turn on the {thing}."

    def _slice(self, thing: str, knife: str) -> str:
        self._change([("issliced", thing)])
        return f"You sliced the {thing} with the {knife}."

    # The observations.

    def _view(self, room: Iterable[str]) -> str:
        location = self._location
        places = self.game.places.get(location)
        if not places:
            seen = _listed(room)
            return f"You are in the middle of a room. Looking quickly around you, you see {seen}."
        # A thing is listed beside each place that it was taken from, once for each.
        things = [
            thing
            for thing in self._first(self._running()["objectatlocation"], location)
            for place in places
            if self._true("not_inreceptacle", thing, place)
        ]
        return f"You are facing the {_joined(places)}. Next to it, you see {_listed(things)}."

    def _contents(self, place: str) -> str:
        if not self._true("openable", place):
            return f"On the {place}, you see {_listed(self._inside(place))}."
        if not self._true("opened", place):
            return f"The {place} is closed."
        return f"The {place} is open. In it, you see {_listed(self._inside(place))}."


def _listed(things: Iterable[str]) -> str:
    return _joined([f"a {thing}" for thing in things]) or "nothing"


def _joined(words: list[str]) -> str:
    """Join words as TextWorld does, with a comma also before the ``and`` of two."""
    return ", and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
