"""The task sentence of the science house as the planner reads it."""

from __future__ import annotations

import re
from typing import NamedTuple


class ScienceTask(NamedTuple):
    """What is asked for; empty where the sentence says nothing.

    Attributes:
        verb: what kind of task it is.
        target: what it is about.
        room: where the sentence says that it is.
        boxes: the answer boxes in the sentence's order, with the words of their condition.
        box_room: where the boxes are.
        options: the things to choose from.
        quality: what decides between them.
    """

    verb: str
    target: str
    room: str
    boxes: list[tuple[str, str]]
    box_room: str
    options: list[str]
    quality: str


_KINDS = [
    ("find", r"find an?\(n\) (.+?)\."),
    ("measure", r"measure the temperature of (.+?),"),
    ("melting", r"measure the melting point of (.+?),"),
    ("change", r"change the state of matter of (.+?)\."),
    ("paint", r"use chemistry to create (?:the )?([\w-]+ paint)\b"),
    ("mix", r"use chemistry to create (?:the substance )?'?([^'.]+)"),
    ("grow", r"grow an? (.+?) plant from seed"),
    ("fruit", r"grow an? ([^.]+)\."),
    ("lifespan", r"find the animal with the (.+?)\."),
    ("stages", r"focus on the (?:\d+ )?life stages of the ([^,.]+)"),
    ("planes", r"determine which of the two (inclined plane)s"),
    ("genetics", r"determine whether .+? trait in the ([^.]+?)\."),
    ("boil", r"boil (.+?)\."),
    ("melt", r"melt (.+?)\."),
    ("freeze", r"freeze (.+?)\."),
]


def read_science_task(sentence: str) -> ScienceTask:
    """The first shape that fits; a sentence of no known shape has no verb."""
    text = " ".join(sentence.split())
    verb, target = "", ""
    for name, shape in _KINDS:
        if found := re.match(shape, text, re.I):
            verb, target = name, found[1].strip()
            break
    room = re.search(
        r"(?:located around the|found in the|found near the|located|animals are in the) "
        r"'?([a-z ]+?)'?(?: location)?\.",
        text,
    )
    boxes = [
        (box, when)
        for when, box in re.findall(
            r"is ((?:above|below) -?[\d.]+|dominant|recessive)[^,.]*, "
            r"(?:focus on|place it in) the (\w+ box)",
            text,
        )
    ]
    single = re.search(r"move it to the (\w+ box) in the ([\w ]+)\.", text)
    box_room = re.search(r"boxes are located around the ([\w ]+)\.", text)
    options = re.search(r"\(([^()]+)\)", text)
    quality = re.search(r"has the (\w+) (?:angle|friction)", text)
    return ScienceTask(
        verb=verb,
        target=target,
        room=room[1] if room else "",
        boxes=[(single[1], "")] if single else boxes,
        box_room=single[2] if single else (box_room[1] if box_room else ""),
        options=[option.strip() for option in options[1].split(",")] if options else [],
        quality=quality[1] if quality else "",
    )
