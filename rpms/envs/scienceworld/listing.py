"""How ScienceWorld describes a thing: name, states, door and, as far as visible, its contents.

The same sentence shapes nest in one another ("a bed. On the bed is: a mattress. On the mattress
is: a white pillow.."), so they are read by a small scanner, not by one pattern per kind. What the
scanner does not know it skips: an unread state is better than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rpms.vocabulary.belief import Door


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


_ARTICLE = re.compile(r"(?:(?:an?|the) )?(?:substance called )?", re.I)
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
    r"| in the (\w+ stage)| approximately (\d+% down the plane)| at the (\w+ of the plane))"
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


class _Sentences(NamedTuple):
    """What whole sentences may say of one thing; they name it again, so none is misattributed."""

    door: re.Pattern[str]
    inside: re.Pattern[str]


@lru_cache(maxsize=1024)
def _sentences(name: str) -> _Sentences:
    again = rf"{re.escape(name)}(?: \(on fire\))?"
    return _Sentences(
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
        if found := pattern.match(self.text, self.at):
            self.at = found.end()
        return found

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
            if found := self.take(say_door):
                door = "open" if found[1] == "open" else "closed"
            elif found := self.take(_SWITCH):
                states.append(_SWITCHED[found[1]])
            elif found := self.take(_STATE):
                states.append(next(state for state in found.groups() if state))
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
