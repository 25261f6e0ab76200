"""Find invalid or empty entries of a memory, for ``rpms memory check``.

Learning creates none of them; a file that was edited by hand may contain some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rpms.envs import Environment
from rpms.envs.manuals import load_manual
from rpms.memory_store import Entry
from rpms.memory_store.entries import CriticalFailure, Success
from rpms.memory_store.lessons import gives_answer
from rpms.memory_store.methods.rpms import says_something
from rpms.memory_store.roles import roles_in
from rpms.rules import match_action


def unearned(entries: Sequence[Entry], env: Environment) -> Iterator[tuple[Entry, str]]:
    """Yield each entry that should not be recalled as it is, and its fault."""
    manual = load_manual(env.name)
    fatal = {
        (entry.goal_signature, entry.lifted or entry.failed_action): entry.id
        for entry in entries
        if isinstance(entry, CriticalFailure)
    }
    for entry in entries:
        if not says_something(entry):
            yield entry, "it says neither what the action needs nor what it does"
        if not isinstance(entry, Success):
            continue
        steps = entry.lifted or entry.actions
        if ended := fatal.get((entry.goal_signature, steps[-1])):
            yield entry, f"its last action ended an episode with the same goal badly ({ended})"
        if repeated := [a for a, b in pairwise(steps) if a == b]:
            yield entry, f"'{repeated[0]}' stands twice in a row"
        if not entry.won and any(gives_answer(manual, action) for action in entry.actions):
            yield entry, "it gives an answer, and its episode is not marked as won"
        for step in entry.lifted:
            matched = match_action(manual, step)
            names = matched[1].values() if matched else ()
            if foreign := [n for n in names if not roles_in(n) and env.individual(n)]:
                yield entry, f"'{foreign[0]}' means another thing in another task"
                break
