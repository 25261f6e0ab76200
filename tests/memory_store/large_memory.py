"""A memory of many entries, and states that recall from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, cycle
from pathlib import Path

from rpms.envs import get_environment
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext

WORLD = get_environment("alfworld")
CONTEXT = RunContext.for_condition("D")


def write_memory(file: Path, size: int) -> None:
    """The shipped memories, and those with a goal again and again, under other goals of a type."""
    header, *rows = WORLD.memory.read_text(encoding="utf-8").splitlines()
    known = [json.loads(row) for row in rows]
    recorded = [entry for entry in known if "goal_signature" in entry]
    parts = zip(*(entry["goal_signature"].split(":") for entry in recorded), strict=True)
    _, things, _, places = (cycle(sorted(set(part))) for part in parts)
    with file.open("w", encoding="utf-8") as out:
        out.write(json.dumps({**json.loads(header), "entries": size, "counts": {}}) + "\n")
        for number, entry in zip(range(size), chain(known, cycle(recorded)), strict=False):
            if number >= len(known):
                kind, _, state, _ = entry["goal_signature"].split(":")
                entry |= {"goal_signature": f"{kind}:{next(things)}:{state}:{next(places)}"}
            out.write(json.dumps({**entry, "id": f"{entry['type']}_{number:07}"}) + "\n")


def situations(count: int = 24) -> Iterator[EpisodeState]:
    """Goals of unseen tasks, each in a state with an empty and with a full hand."""
    opening = (
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, "
        "a countertop 1, a fridge 1, a microwave 1, a sinkbasin 1, a desk 1, and a drawer 1.\n\n"
    )
    for task in WORLD.tasks("generated_unseen", count):
        goal, belief = WORLD.parse_goal(task["goal"]), WORLD.first_belief(opening)
        thing = f"{goal['object']} 1"
        for action, answer in (
            ("go to countertop 1", f"On the countertop 1, you see a {thing}."),
            (f"take {thing} from countertop 1", f"You pick up the {thing} from the countertop 1."),
        ):
            belief = WORLD.update_belief(belief, action, answer)
            sub_goal = WORLD.sub_goal(goal, belief, [])
            yield EpisodeState(env=WORLD.name, goal=goal, belief=belief, sub_goal=sub_goal)
