"""Controls: the same memory with one property destroyed at a time, to see which of them helps.

A memory that helps must beat each of them: no entries (``empty``), entries filed under wrong goals
(``shuffled``), only entries of other goal types (``irrelevant``), wrong advice (``corrupted``), and
neutral text of the same length (``filler``, applied when the block is printed). ``conflict`` keeps
the memory and adds wrong advice to it (``contradictions.py``). Controls are pure and seeded: the
same memory and seed give the same control in every process.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, get_args

from rpms.memory_store.contradictions import contradictions
from rpms.memory_store.entries import Entry, Finds, Note, Schema, Success, parse_entry
from rpms.vocabulary.context import Control as Control
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.naming import replace_names

CONTROLS: tuple[Control, ...] = get_args(Control)
_ANY_OF_A_KIND = re.compile(r"\{a ([^{}]+)\}")


def controlled(entries: Sequence[Entry], control: Control, seed: int = 0) -> list[Entry]:
    """Apply a control to the entries; ``filler`` is applied only when they are printed."""
    spoil = {"shuffled": _shuffled, "irrelevant": _irrelevant, "corrupted": _corrupted,
             "conflict": _planted}  # fmt: skip
    if control == "empty":
        return []
    return spoil[control](entries, random.Random(seed)) if control in spoil else list(entries)


def _shuffled(entries: Sequence[Entry], chance: random.Random) -> list[Entry]:
    """Permute the goal signatures among the entries that have one.

    Finds are retrieved by object, so their objects are permuted. Schemas belong to no goal and
    stay.
    """
    signatures = [
        entry.goal_signature for entry in entries if not isinstance(entry, Schema | Finds)
    ]
    chance.shuffle(signatures)
    others = iter(signatures)
    kinds = {kind for entry in entries if isinstance(entry, Finds) for kind in entry.objects}
    wrong = _ring(kinds, chance)

    def moved(entry: Entry) -> Entry:
        if isinstance(entry, Finds):
            return entry.model_copy(update={"objects": _exchanged(entry.objects, wrong)})
        return entry if isinstance(entry, Schema) else _filed(entry, next(others))

    return [moved(entry) for entry in entries]


def _irrelevant(entries: Sequence[Entry], chance: random.Random) -> list[Entry]:
    """File each entry under a goal of another type, so that a goal finds only other types.

    Entries are sorted by type and rotated by the size of the largest type, so none meets its own
    type again unless that type is more than half of the memory; the surplus is left out. Schemas
    and finds are left out too: they belong to no type and would help with any goal.
    """
    owned = [entry for entry in entries if not isinstance(entry, Schema | Finds)]
    chance.shuffle(owned)
    owned.sort(key=lambda entry: _type(entry.goal_signature))
    signatures = [entry.goal_signature for entry in owned]
    largest = max(Counter(map(_type, signatures)).values(), default=0)
    moved = signatures[largest:] + signatures[:largest]
    return [
        _filed(entry, other)
        for entry, other in zip(owned, moved, strict=True)
        if _type(entry.goal_signature) != _type(other)
    ]


def _type(signature: str) -> str:
    return signature.partition(":")[0]


def _filed(entry: Entry, signature: str) -> Entry:
    return entry.model_copy(update={"goal_signature": signature})


def _exchanged(counts: Mapping[str, int], wrong: Mapping[str, str]) -> dict[str, int]:
    return {wrong.get(kind, kind): count for kind, count in counts.items()}


def _corrupted(entries: Sequence[Entry], chance: random.Random) -> list[Entry]:
    """Make every entry wrong: exchange tools and places, successes and failures.

    Half of the snippets, drawn at random, become failures of their last action; the others send the
    agent to the wrong kind of place. Failures become successes. A schema's preconditions and
    effects are exchanged.
    """
    wrong = _wrong_kinds(entries, chance)
    steps = sorted({entry.sub_goal_type for entry in entries if isinstance(entry, Success)})
    return [parse_entry(_turned(entry, wrong, steps, chance)) for entry in entries]


def _planted(entries: Sequence[Entry], chance: random.Random) -> list[Entry]:
    return [*entries, *contradictions(entries, _corrupted(entries, chance), chance)]


def _turned(
    entry: Entry, wrong: Mapping[str, str], steps: Sequence[str], chance: random.Random
) -> dict[str, Any]:
    data = entry.model_dump(mode="json")
    if isinstance(entry, Schema):
        swapped = {"preconditions": data["effects"], "effects": data["preconditions"]}
        kinds = {name: _exchanged(counts, wrong) for name, counts in entry.kinds.items()}
        return {**data, **swapped, "kinds": kinds}
    if isinstance(entry, Finds):
        return {**data, "place": wrong.get(entry.place, entry.place)}
    same = {
        name: data[name] for name in ("id", "retrieval_weight", "goal_signature", "state_signature")
    }
    if not isinstance(entry, Success):
        return {
            **same,
            "type": "success",
            "sub_goal_type": chance.choice(steps) if steps else entry.failed_action.split()[0],
            "actions": [entry.failed_action],
            "lifted": [entry.lifted] if entry.lifted else [],
            "success_count": entry.occurrence_count,
        }
    if chance.random() < 0.5:
        return {
            **same,
            "type": "failure",
            "failed_action": entry.actions[-1],
            "lifted": entry.lifted[-1] if entry.lifted else "",
            "failure_message": "refused",
            "corrective_rule": "it was refused every time",
            "occurrence_count": entry.success_count,
        }
    advice = {name: [replace_names(action, wrong) for action in data[name]]
              for name in ("actions", "lifted")}  # fmt: skip
    return data | advice


def _wrong_kinds(entries: Sequence[Entry], chance: random.Random) -> dict[str, str]:
    """Map every kind of place or tool in the memory to another one, each used once."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        if isinstance(entry, Finds):
            groups["place"].add(entry.place)
        elif isinstance(entry, Schema):
            for parameter, kinds in entry.kinds.items():
                groups[parameter] |= set(kinds)
        elif isinstance(entry, Success):
            groups["place"].update(_ANY_OF_A_KIND.findall(" ".join(entry.lifted)))
    wrong: dict[str, str] = {}
    for parameter in sorted(groups, key=lambda name: (name != "place", name)):
        wrong |= _ring(groups[parameter] - set(wrong), chance)
    return wrong


def _ring(kinds: set[str], chance: random.Random) -> dict[str, str]:
    """Map each kind to another one, each used once; a single kind is left out."""
    ring = sorted(kinds)
    chance.shuffle(ring)
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True)) if len(ring) > 1 else {}


def controlled_notes(notes: Sequence[Note], control: Control, seed: int = 0) -> list[Note]:
    """Apply a control to the notes; ``filler`` is applied only when they are printed.

    ``corrupted`` and ``conflict`` are errors: free text cannot be made wrong by a program.
    """
    if control in ("corrupted", "conflict"):
        raise RpmsError(
            f"memory_control '{control}' works with memory_method 'rpms' only; choose another "
            "control or that method"
        )
    if control == "empty":
        return []
    if control not in ("shuffled", "irrelevant"):
        return list(notes)
    chance = random.Random(seed)
    places = [(note.goal, note.goal_type) for note in notes]
    chance.shuffle(places)
    moved = [
        note.model_copy(update={"goal": goal, "goal_type": kind})
        for note, (goal, kind) in zip(notes, places, strict=True)
    ]
    if control == "shuffled":
        return moved
    pairs = zip(notes, moved, strict=True)
    return [new for old, new in pairs if old.goal_type != new.goal_type]


def filler(text: str, neutral: str) -> str:
    """Replace the text by neutral words, in lines of exactly the same length."""
    words = cycle(neutral.split())
    return "\n".join(_filled(len(line), words) for line in text.split("\n"))


def _filled(length: int, words: Iterator[str]) -> str:
    line = ""
    while len(line) < length:
        line = f"{line} {next(words)}" if line else next(words)
    if len(line) > length:  # no word is cut in two: dots fill the rest
        line = line[: length + 1].rpartition(" ")[0]
    return line.ljust(length, ".")
