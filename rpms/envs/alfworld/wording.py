"""The two wordings of ALFWorld, and the one the agent speaks.

Games written by alfworld 0.4 and later say ``move X to Y``; earlier ones ``put X in/on Y``.
The agent always speaks the paper's ``put X in/on Y`` and always reads its observations in that
wording, whichever game is underneath; this module is the only place that knows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Dialect = Literal["move", "put"]

_PUT = re.compile(r"^put (?P<o>.+?) in/on (?P<p>.+)$")
_MOVED = re.compile(r"^You move the (?P<o>.+?) to the (?P<p>.+)\.$")
_ARRIVED = re.compile(r"^You arrive at [^.]+\. ")
_WELCOME = re.compile(r"^-= Welcome to TextWorld, ALFRED! =-\s*")

# Loose wordings that models use for the same command. Order matters: the first match wins.
_LOOSE: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), command)
    for pattern, command in (
        (r"^(?:go ?to|goto|walk to|move to|head to|navigate to) (.+)$", r"go to \1"),
        (r"^(?:put|place|move|set|drop) (.+?) (?:in/on|in / on|into|onto|inside|in|on|to) (.+)$",
         r"put \1 in/on \2"),
        (r"^(?:take|pick up|grab|get|pick) (.+?) (?:from|off|out of) (.+)$", r"take \1 from \2"),
        (r"^(?:use|toggle|turn on|switch on|turn off) ([a-z]+ \d+)(?: .*)?$", r"use \1"),
        (r"^(heat|cool|clean) (.+?) (?:with|using|in) (.+)$", r"\1 \2 with \3"),
        (r"^(?:look at|inspect|examine) (.+)$", r"examine \1"),
        (r"^(?:look around|look)$", "look"),
        (r"^(?:check )?inventory$", "inventory"),
    )
]  # fmt: skip


def dialect_of(grammar: str) -> Dialect:
    """Which wording a game file's grammar speaks."""
    return "move" if 'template :: "move {o} to {r}"' in grammar else "put"


def to_game(action: str, dialect: Dialect) -> str:
    """The agent's action in the game's own wording."""
    if dialect == "move" and (found := _PUT.match(action)):
        return f"move {found['o']} to {found['p']}"
    return action


def to_agent(feedback: str) -> str:
    """The game's text in the paper's wording, without the banner and the arrival line.

    Arrival lines name the receptacle in one wording and an internal location number in the
    other; what follows ("On the desk 1, you see ...") says the same in both.
    """
    text = _WELCOME.sub("", feedback).strip()
    if found := _MOVED.match(text):
        return f"You put the {found['o']} in/on the {found['p']}."
    return _ARRIVED.sub("", text)


def read_action(text: str) -> str:
    """Bring a loosely worded action to the canonical one; unknown text passes through."""
    action = " ".join(text.lower().split()).rstrip(" .!")
    action = re.sub(r"\b(?:(?:the|a|an) )+(?=[a-z]+ \d)", "", action)
    for pattern, command in _LOOSE:
        if found := pattern.match(action):
            return found.expand(command)
    return action


# What the blanks of the game's grammar stand for.
_BLANKS = {"r": "place", "o": "object", "co": "object", "ko": "tool", "outerr": "object",
           "outero": "place"}  # fmt: skip


def agent_templates(grammar_templates: Iterable[str]) -> list[str]:
    """The game's command templates in the agent's wording.

    A command about one thing that takes an object as well as a place is about a ``{thing}``.
    """
    found: dict[str, list[str]] = {}
    for template in grammar_templates:
        plain = re.sub(r"\[\{(\w+)\.name[^]]*\]", r"{\1}", template)
        named = re.sub(r"\{(\w+)\}", lambda blank: f"{{{_BLANKS[blank[1]]}}}", plain)
        spoken = read_action(named)
        ways = found.setdefault(re.sub(r"\{\w+\}", "{}", spoken), [])
        if spoken not in ways:
            ways.append(spoken)
    return [
        ways[0] if len(ways) == 1 or shape.count("{}") > 1 else shape.replace("{}", "{thing}")
        for shape, ways in found.items()
    ]
