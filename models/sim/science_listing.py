"""How the planner reads a listing of the science house: things, what they are in, what is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# Nothing that is real nests deeper; made-up text may.
_DEEPEST = 6
_ARTICLE = re.compile(r"^(?:(?:an?|the) )?(?:substance called )?", re.I)
_NAME_END = re.compile(
    r"\. |, | \((?:containing|that|on fire)|(?:,)? with: | in the \w+ stage| titled "
    r"| approximately | at the (?:top|bottom) | with an? (?!.* surface)|\.?\s*$"
)
_ON = re.compile(r"(?:On|In|Inside) the [^:\n]{1,60}? (?:is|you see):\s*")
_AFTERTHOUGHT = re.compile(r"(?:which|that|currently|with) ")


@dataclass
class Node:
    """One thing. ``note`` is all that is said of it, ``door`` is ``open``, ``closed`` or empty."""

    name: str
    note: str = ""
    door: str = ""
    inside: list[Node] = field(default_factory=list)


def read_listing(text: str) -> list[Node]:
    """The things of a listing, one a line; some list what is in them on the lines below."""
    found: list[Node] = []
    below: Node | None = None
    for line in text.splitlines():
        node = _thing(line, 0)
        if node is None:
            below = None
        elif below is not None:
            below.inside.append(node)
        else:
            found.append(node)
            below = node if line.rstrip().endswith("is:") else None
    return found


def every(nodes: Iterable[Node], depth: int = 0) -> Iterator[Node]:
    """All things, outermost first."""
    for node in nodes:
        yield node
        if depth <= _DEEPEST:
            yield from every(node.inside, depth + 1)


def around(nodes: Iterable[Node], wanted: Node) -> list[Node]:
    """What a thing is in, from the outside in; empty when it stands free."""
    for node in nodes:
        if node is wanted:
            return []
        if any(inner is wanted for inner in every(node.inside)):
            return [node, *around(node.inside, wanted)]
    return []


def without_articles(phrase: str) -> str:
    """Names are said with or without them; the world makes no difference."""
    return " ".join(word for word in phrase.lower().split() if word not in ("a", "an", "the"))


def _thing(text: str, depth: int) -> Node | None:
    words = _ARTICLE.sub("", text.strip())
    end = _NAME_END.search(words)
    name = words[: end.start()].strip() if end else words
    if not name or name.lower() == "nothing":
        return None
    rest = words[len(name) :]
    said, held = _contents(rest)
    door = re.search(r"(?:door is|which is|is) (open|closed)\b", said)
    inside = [] if depth >= _DEEPEST else list(_things(held, depth + 1))
    return Node(name, said.strip(" .,"), door[1] if door else "", inside)


def _contents(rest: str) -> tuple[str, str]:
    """What is said of a thing, and the list of what it holds."""
    start = rest.find("(containing ")
    on = _ON.search(rest)
    if start >= 0 and (on is None or start < on.start()):
        end = _closing(rest, start)
        return rest[:start] + rest[end + 1 :], rest[start + 12 : end]
    if on is not None:
        return rest[: on.start()], rest[on.end() :].rstrip(". ")
    said, _, held = rest.partition(", with: ")
    return said, held


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def _things(listing: str, depth: int) -> Iterator[Node]:
    """``a, b (containing c, d), e, which is off``: not every comma parts two things."""
    parts: list[str] = []
    open_brackets = 0
    for piece in listing.split(", "):
        if parts and (open_brackets > 0 or _AFTERTHOUGHT.match(piece)):
            parts[-1] += f", {piece}"
        else:
            parts.append(piece)
        open_brackets = max(0, open_brackets) + piece.count("(") - piece.count(")")
    for part in parts:
        if (node := _thing(part, depth)) is not None:
            yield node
