"""Tier 2 from won episodes: in which order sub-goals were reached, and where things were found.

Both are counted, never argued: an order is what most won episodes of a type did, a place is where
a thing of that kind was seen on first sight. What *serves* a sub-goal stays written by hand.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rpms.envs import get_environment
from rpms.rule_learning.writing import SOURCE
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.turn import EpisodeRecord, Turn

MOST_PLACES = 6
"""A longer list of places is no hint any more."""
OFTEN = "mostly found"
Sightings = Mapping[str, Mapping[str, tuple[int, int]]]


def orders(records: Iterable[EpisodeRecord]) -> dict[str, Counter[tuple[str, ...]]]:
    """By goal type, how often won episodes reached their sub-goals in which order."""
    found: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for record in records:
        if record["success"]:
            kind = get_environment(record["env"]).parse_goal(record["goal"])["type"]
            found[kind][tuple(_order(record))] += 1
    return dict(found)


def _order(record: EpisodeRecord) -> Iterator[str]:
    """The sub-goals of an episode, each once for every time it came up.

    What comes up after the last action is none: the task is done.
    """
    last = ""
    for _, name, _ in list(_replayed(record))[:-1]:
        if name != last:
            last = name
            yield name


def sightings(records: Iterable[EpisodeRecord]) -> Sightings:
    """By kind of thing and kind of place: how many such places held one, of how many looked into.

    Every place counts once per episode, by what was first seen there; what the agent put down
    somewhere is not found there.
    """
    held: dict[str, Counter[str]] = defaultdict(Counter)
    looked: Counter[str] = Counter()
    for record in records:
        for place, things in _searched(record):
            looked[kind_of(place)] += 1
            for kind in {kind_of(thing) for thing in things}:
                held[kind][kind_of(place)] += 1
    return {
        kind: {place: (count, looked[place]) for place, count in places.items()}
        for kind, places in held.items()
    }


def _searched(record: EpisodeRecord) -> Iterator[tuple[str, list[str]]]:
    known: set[str] = set()
    for belief, _, moved in _replayed(record):
        for place in belief["searched"]:
            if place not in known and place in belief["places"]:
                known.add(place)
                inside = (thing for thing, at in belief["last_seen"].items() if at == place)
                yield place, [thing for thing in inside if thing not in moved]


def _replayed(record: EpisodeRecord) -> Iterator[tuple[Belief, str, set[str]]]:
    """Belief, sub-goal and what was carried so far, before the first action and after each."""
    env = get_environment(record["env"])
    goal = env.parse_goal(record["goal"])
    belief = env.first_belief(record["first_observation"])
    history: list[Turn] = []
    moved: set[str] = set()
    yield belief, env.sub_goal(goal, belief, history)["name"], moved
    for number, turn in enumerate(record["history"], start=1):
        if turn["action"]:
            belief = env.update_belief(belief, turn["action"], turn["observation"])
            history.append(
                Turn(step=number, thought="", reply="", action=turn["action"],
                     observation=turn["observation"], failed=turn["failed"])
            )  # fmt: skip
            moved.update(belief["holding"])
            yield belief, env.sub_goal(goal, belief, history)["name"], moved


def learned_domain(records: Iterable[EpisodeRecord]) -> dict[str, Any]:
    """Tier 2 as plain data, to be laid over the manual: orders, and likely places by kind."""
    played = list(records)
    procedures = {}
    for kind, counted in sorted(orders(played).items()):
        # Most episodes, then the longest: who found the thing at first sight skipped nothing.
        best = max(counted, key=lambda order: (counted[order], len(order), order))
        procedures[kind] = list(best)
    places = sightings(played)
    return {
        "tier": "domain",
        "procedures": procedures,
        "categories": {_category(kind): [kind] for kind in sorted(places)},
        "likely_places": [_locality(kind, places[kind]) for kind in sorted(places)],
    }


def _category(kind: str) -> str:
    return f"learned_{kind.replace(' ', '_')}"


def _locality(kind: str, counts: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """The places by how often they held one; what was looked into once or twice weighs less."""

    def share(place: str) -> float:
        held, looked = counts[place]
        return held / (looked + 1)

    ranked = sorted(counts, key=lambda place: (-share(place), place))[:MOST_PLACES]
    held = sum(counts[place][0] for place in ranked)
    looked = sum(counts[place][1] for place in ranked)
    name = "".join(sign if sign.isalnum() else "-" for sign in kind.upper())
    return {
        "id": f"L-LOC-{name}", "about": [_category(kind)], "places": ranked, "how_often": OFTEN,
        "source": SOURCE, "support": held, "confidence": round((held + 1) / (looked + 2), 3),
    }  # fmt: skip
