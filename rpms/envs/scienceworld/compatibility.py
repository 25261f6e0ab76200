"""COMPAT for ScienceWorld: instrument, room and progress of a memory against the belief.

The paper's three conditions. An entry says what it needs by its printed state (the room and the
pointer it was recorded at) and by its advice (a tool that is used without being fetched first).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import read_state
from rpms.vocabulary.naming import find

# How many steps of the procedure a memory may lie ahead of the agent.
LAG = 1

_USED = re.compile(r"use (.+?)(?: in inventory)? on .+")
_TAKEN = re.compile(r"pick up (.+)")


def compat(entry: Mapping[str, Any], belief: Belief) -> str:
    """Why an entry does not fit this state; empty when it does.

    Schemas are recorded in no particular state, so they fit any.
    """
    printed = entry.get("state_signature")
    if printed is None:
        return ""
    tool = needed_instrument(entry.get("actions", ()))
    if tool and find(belief["holding"], tool) is None:
        return f"needs the {tool}, which is not carried"
    recorded = read_state(printed)
    room = recorded.get("room", "unknown")
    if room not in ("unknown", belief["location"]):
        return f"recorded in the {room}, in the {belief['location'] or 'unknown'} now"
    ahead = int(recorded.get("progress", "0")) - belief["progress"]
    if ahead > LAG:
        return f"recorded {ahead} steps further on in the procedure"
    return ""


def requirements(belief: Belief, actions: Sequence[str]) -> dict[str, Any]:
    """The same three things, to be written down with a success snippet."""
    return {
        "instrument": needed_instrument(actions) or None,
        "room": belief["location"],
        "progress": belief["progress"],
    }


def needed_instrument(actions: Sequence[str]) -> str:
    """The tool that the advice uses without fetching it first; empty if there is none."""
    fetched: list[str] = []
    for action in actions:
        if found := _TAKEN.fullmatch(action):
            fetched.append(found[1])
        elif (found := _USED.fullmatch(action)) and find(fetched, found[1]) is None:
            return found[1]
    return ""
