"""What an action needs and does, read from its uses and from nothing else.

A literal such as ``at(place)`` is a precondition if it held whenever the action worked, and if it
is wanted to explain the refusals: those that explain most are taken first, until no refusal that
can be explained is left. Effects are what held after every use that worked and was not there
before every time, and the state of the hand, which most people guess wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rpms.memory_store.entries import Use

# What tells the state of the hand; said after every action that worked, changed or not.
_HAND = ("holding(", "hand_empty")
# What merely comes into sight is no effect of an action.
_SIGHT = ("here(", "visible(")


def preconditions(uses: Sequence[Use]) -> list[str]:
    """The fewest literals, each true at every success, that explain the refusals."""
    worked = [use for use in uses if use.worked]
    if not worked:
        return []
    always = [name for name, held in worked[0].before.items() if held]
    always = sorted(name for name in always if all(use.before.get(name) for use in worked))
    unexplained = [use for use in uses if not use.worked]
    found: list[str] = []
    while unexplained:
        gains = {name: _explained(name, unexplained) for name in always}
        best = max(gains, key=lambda name: (gains[name], name), default="")
        if not best or not gains[best]:
            break
        found.append(best)
        unexplained = [use for use in unexplained if use.before.get(best) is not False]
    return sorted(found)


def _explained(name: str, refused: Sequence[Use]) -> int:
    return sum(use.count for use in refused if use.before.get(name) is False)


def effects(uses: Sequence[Use]) -> list[str]:
    """What every success left behind."""
    worked = [use for use in uses if use.worked]
    if not worked:
        return []
    after = set(worked[0].after).intersection(*(use.after for use in worked))
    return sorted(
        name
        for name in after
        if not name.startswith(_SIGHT)
        and (name.startswith(_HAND) or any(use.before.get(name) is not True for use in worked))
    )


def confidence(uses: Sequence[Use]) -> float:
    """The share of uses that went as the schema says: worked where its needs held, else not."""
    needs = preconditions(uses)
    total = sum(use.count for use in uses)
    right = sum(
        use.count
        for use in uses
        if use.worked == (not any(use.before.get(name) is False for name in needs))
    )
    return round(right / total, 4) if total else 0.0


def only_kind(kinds: Mapping[str, int], least: int = 3) -> str:
    """The one kind that a parameter ever stood for when it worked; empty if there were more."""
    if len(kinds) == 1 and sum(kinds.values()) >= least:
        return next(iter(kinds))
    return ""
