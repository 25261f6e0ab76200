"""How often a manual is right about what will work, in games it was not learned from.

The player is the one that explores: it knows no manual and learns as it goes, draws some commands
blindly, means others to work and sets up situations in which just one thing is wrong. So every
manual is asked about the same play, before each command, with the belief alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from rpms.rule_learning.exploring import Player, Watcher
from rpms.rules.manual import Manual
from rpms.rules.semantics import can_work, match_action
from rpms.vocabulary.naming import Truth


class Rates(NamedTuple):
    """Shares of predictions that came true; 1.0 where none were made."""

    possible: float
    impossible: float
    open: float


@dataclass
class Predictions:
    """Counts of what was said and what happened, by action."""

    counts: Counter[tuple[str, Truth, bool]] = field(default_factory=Counter)

    def add(self, action: str, said: Truth, worked: bool) -> None:
        """One more."""
        self.counts[action, said, worked] += 1

    def count(self, said: Truth, worked: bool, action: str = "") -> int:
        """How often this was said and that happened."""
        return sum(
            n for (name, what, did), n in self.counts.items()
            if what is said and did is worked and action in ("", name)
        )  # fmt: skip

    def rates(self, action: str = "") -> Rates:
        """Of what was called possible or impossible, how much was so; and what was left open."""
        cells = {
            (s, w): self.count(s, w, action) for s in (True, False, None) for w in (True, False)
        }
        total = sum(cells.values())
        return Rates(
            _share(cells[True, True], cells[True, False]),
            _share(cells[False, False], cells[False, True]),
            (cells[None, True] + cells[None, False]) / total if total else 0.0,
        )

    @property
    def actions(self) -> list[str]:
        """Every action that was tried."""
        return list(dict.fromkeys(name for name, _, _ in self.counts))


def _share(right: int, wrong: int) -> float:
    return right / (right + wrong) if right + wrong else 1.0


class Asked(Watcher):
    """Asks a manual before every command and keeps what came of it."""

    def __init__(self, manual: Manual, only: Collection[str] = ()) -> None:
        """``only`` names the actions that count; all if empty."""
        self.manual = manual
        self.only = only
        self.found = Predictions()

    def after(self, player: Player, action: str, worked: bool) -> None:
        """The belief is still the one from before the command."""
        matched = match_action(self.manual, action)
        name = matched[0].name if matched else action.split()[0]
        if not self.only or name in self.only:
            said = can_work(self.manual, action, player.belief) if matched else None
            self.found.add(name, said, worked)
