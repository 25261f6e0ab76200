"""Command lines over every command and option there is, drawn from the command tree itself.

A new command or option is in the game at once. What would take long, start processes or reach for
a network is kept from doing so by words put before or behind; see ``BEFORE`` and ``BEHIND``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from typer.main import get_command

from rpms.commands import main as cli
from tests.fuzz.values import LAID_OUT, NUMBERS, PLACES, WORDS

Words = tuple[str, ...]

# A hostile option given later wins over these, which keep what is possible small.
SMALL = ("--workers", "0", "--limit", "1", "--max-steps", "1")
BEFORE: dict[Words, Words] = {
    ("eval",): ("--out", "out", "--conditions", "A", "--no-cache", *SMALL),
    ("learn",): ("--out", "memory.jsonl", *SMALL),
    ("export",): ("--out", "out.jsonl", "--format", "chat", "--workers", "0", "--limit", "1"),
    ("rules", "learn"): ("--out", "rules", "--steps", "1"),
    ("tasks",): ("--limit", "1"),
    ("rules", "check"): ("--env", "alfworld"),
}
# These play for seconds, or ask a network, as soon as all their words are right.
BEHIND: dict[Words, Words] = {
    ("run",): ("--split", "nowhere"),
    ("demo",): ("--conditions", "nowhere"),
    ("models", "pull"): ("--nowhere",),
    ("rules", "audit"): ("--split", "nowhere"),
}
# And these, which play little, do so now and then.
MOSTLY_BEHIND: dict[Words, Words] = {
    ("eval",): ("--split", "nowhere"),
    ("learn",): ("--split", "nowhere"),
}
SELDOM = 0.1
LEFT_OUT = {"--ray", "--help", "--version"}
"""A cluster is not started; help and version are all alike."""


TREE = get_command(cli.app)


def commands(tree: Any = TREE, above: Words = ()) -> Iterator[tuple[Words, Any]]:
    """Every command that does something, by the words that name it."""
    found = getattr(tree, "commands", None)
    if found is None:
        yield above, tree
        return
    for name, command in sorted(found.items()):
        yield from commands(command, (*above, name))


def value(chance: Random) -> str:
    """One word."""
    return chance.choice(chance.choice((NUMBERS, WORDS, WORDS, (*PLACES, *LAID_OUT))))


def command_line(chance: Random, known: Sequence[tuple[Words, Any]]) -> list[str]:
    """One command with some of its options, in any order, and sometimes words too many."""
    name, command = chance.choice(known)
    words: list[str] = []
    options = [one for one in command.params if not LEFT_OUT & {*one.opts}]
    for one in chance.sample(options, k=min(len(options), chance.choice((0, 1, 1, 1, 2, 3, 5)))):
        if one.param_type_name == "argument":
            words.append(value(chance))
            continue
        words.append(chance.choice([*one.opts, *one.secondary_opts]))
        if not getattr(one, "is_flag", False):
            words.append(value(chance))
    if chance.random() < 0.1:
        words.append(value(chance))
    if name == ("models", "pull"):
        words = [value(chance)]
    behind = BEHIND.get(name, () if chance.random() < SELDOM else MOSTLY_BEHIND.get(name, ()))
    return [*name, *BEFORE.get(name, ()), *words, *behind]
