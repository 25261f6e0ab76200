"""One thing, many names: phases, adjectives and life stages come and go, the thing stays."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WATER = {"ice": "solid", "water": "liquid", "steam": "gas"}
_PHASE = re.compile(r"(solid|liquid|gaseous) (.+)")


def split_phase(name: str) -> tuple[str, str]:
    """The lasting name of a substance and its phase: ``liquid tin`` -> (``tin``, ``liquid``)."""
    if name in _WATER:
        return "water", _WATER[name]
    if found := _PHASE.fullmatch(name):
        return found[2], "gas" if found[1] == "gaseous" else found[1]
    return name, ""


def same_words(printed: str, name: str) -> bool:
    """Whether a thing of this name can be printed so: ``red apple`` for the ``apple``.

    Adjectives come first, so both end alike: an ``orange wire`` is no ``orange``. Only eggs are
    printed with a word behind, and ``bee 3`` is printed without its number.
    """
    longer, shorter = printed.lower().split(), name.lower().split()
    if name[-1:].isdigit() and not printed[-1:].isdigit():
        shorter = shorter[:-1]
    if longer[-1:] == ["egg"] != shorter[-1:]:
        longer = longer[:-1]
    return longer[-1:] == shorter[-1:] and set(shorter) <= set(longer)


def same_thing(name: str, target: str) -> bool:
    """Whether a seen name can be the target of a task, whatever its phase."""
    return same_words(split_phase(name.lower())[0], split_phase(target.lower())[0])


def find(names: Iterable[str], name: str) -> str | None:
    """The entry that stands for a thing: exactly, printed with more words, or with fewer."""
    known = list(names)
    if name in known:
        return name
    fitting = [other for other in known if same_words(other, name) or same_words(name, other)]
    return fitting[0] if fitting else None
