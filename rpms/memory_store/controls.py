"""Controls: the same memory with one property destroyed at a time, to see which of them helps.

A memory that helps must beat each of them: no entries (``empty``), entries filed under wrong goals
(``shuffled``), only entries of other goal types (``irrelevant``), wrong advice (``corrupted``), and
neutral text of the same length (``filler``, applied when the block is printed). Controls are pure
and seeded: the same memory and seed give the same control in every process.

``conflict`` keeps the memory and adds advice that contradicts the manual, to measure the worth of
arbitration. A contradiction has the goal and the state of the entry that it was made from. Its id
begins with ``planted_`` and its kind:

- ``rule``: advice that every manual forbids. It uses another action's tool, puts the object in the
  tool first (the paper's apple in the fridge), handles the object only after putting it away, or
  walks to something that is no place.
- ``corrupted``: the entry as the control ``corrupted`` has it, if that changes its last action.
  Failure lessons are left out: an action that was rejected then may be right now.
- ``goal``: sound advice for a sub-goal that goals of this type do not have.

Contradictions are made from the memory alone, without the manual.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, get_args

from rpms.memory_store.entries import (
    CriticalFailure,
    Entry,
    Finds,
    Note,
    Schema,
    Success,
    parse_entry,
)
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.context import Control as Control
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.naming import replace_names
from rpms.vocabulary.recall import BLANK

CONTROLS: tuple[Control, ...] = get_args(Control)
_ANY_OF_A_KIND = re.compile(r"\{a ([^{}]+)\}")
CONTRADICTIONS = ("rule", "corrupted", "goal")
_MARK = "planted"
_TOOL = re.compile(r"\{object\}.*\{a ([^{}]+)\}")
_BROUGHT = re.compile(r"\{object\}.*\{destination\}")


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
    return [*entries, *_contradictions(entries, chance)]


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


def contradiction_kind(name: str) -> str:
    """Return the kind of a planted entry by its id; empty for a learned one."""
    mark, _, rest = name.partition("_")
    return rest.partition("_")[0] if mark == _MARK else ""


def _contradictions(entries: Sequence[Entry], chance: random.Random) -> Iterator[Entry]:
    """Yield one contradiction of each kind for each snippet, and critical failures as successes.

    If a kind has several possible contradictions, one is drawn at random.
    """
    summary = _MemorySummary(entries)
    for entry, wrong in zip(entries, _corrupted(entries, chance), strict=True):
        if isinstance(entry, CriticalFailure):
            yield wrong.model_copy(update={"id": f"{_MARK}_corrupted_{entry.id}"})
        if not isinstance(entry, Success) or not entry.lifted:
            continue
        # Another path may lead to the same result, so the last action must differ.
        differs = not isinstance(wrong, Success) or wrong.lifted[-1] != entry.lifted[-1]
        foreign = summary.foreign[_type(entry.goal_signature)]
        choices: tuple[Sequence[Entry], ...] = (
            [*_retold(entry, summary)], [wrong] if differs else [], foreign,
        )  # fmt: skip
        for kind, choices_of_kind in zip(CONTRADICTIONS, choices, strict=True):
            if choices_of_kind:
                place = {"id": f"{_MARK}_{kind}_{entry.id}", "goal_signature": entry.goal_signature}
                yield chance.choice(choices_of_kind).model_copy(update=place)


class _MemorySummary:
    """Facts about the environment that can be read from a memory.

    Attributes:
        tools: an action's wording without names -> the kinds of its tools.
        putting: the action that brings an object to its destination, with roles.
        forms: a pattern for each action.
        places: kinds of places.
        foreign: for each goal type, snippets for sub-goals that it does not have.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        snippets = [entry for entry in entries if isinstance(entry, Success) and entry.lifted]
        actions = sorted({action for entry in snippets for action in entry.lifted})
        self.tools: defaultdict[str, set[str]] = defaultdict(set)
        for action in actions:
            if tool := _TOOL.search(action):
                self.tools[BLANK.sub("", action)].add(tool[1])
        self.putting = next(filter(_BROUGHT.search, actions), "")
        templates = [entry.action_template for entry in entries if isinstance(entry, Schema)]
        # For actions without a schema: the last action of a snippet, if it names one thing.
        for entry in snippets:
            for thing in filter(None, map(str, entry.outcome.values())):
                head, _, tail = entry.actions[-1].partition(f" {thing}")
                if head and not tail and f"{head} {thing}" == entry.actions[-1]:
                    templates.append(f"{head} {{object}}")
        templates = list(dict.fromkeys(templates))
        self.forms = [_pattern(text) for text in sorted(templates, key=len, reverse=True)]
        self.places = {entry.place for entry in entries if isinstance(entry, Finds)}
        steps = {(_type(entry.goal_signature), entry.sub_goal_type) for entry in snippets}
        self.foreign = {
            kind: [other for other in snippets if (kind, other.sub_goal_type) not in steps]
            for kind in {_type(entry.goal_signature) for entry in snippets}
        }

    def argument(self, action: str) -> str:
        """Return the argument of an action that has exactly one."""
        names = next((m.groups() for form in self.forms if (m := form.fullmatch(action))), ())
        return str(names[0]) if len(names) == 1 else ""


def _retold(entry: Success, summary: _MemorySummary) -> Iterator[Success]:
    """Yield the advice changed so that it breaks a rule, in its roles and in its names."""
    names = _role_names(entry)
    for steps in (*_wrong_tools(entry, summary), *_late(entry), *_walks_to_things(entry, summary)):
        text = "\n".join(steps)
        for role in set(BLANK.findall(text)):
            # The recorded scene may have had no tool of this kind: a name is made up.
            name = names.get(role) or (f"{role[2:]} 1" if role.startswith("a ") else "{?}")
            text = text.replace(f"{{{role}}}", name)
        if "{?}" not in text:
            yield entry.model_copy(update={"lifted": steps, "actions": text.split("\n")})


def _wrong_tools(entry: Success, summary: _MemorySummary) -> Iterator[list[str]]:
    """Yield the steps with another action's tool, or with the object put into the right one."""
    *way, last = entry.lifted
    if tool := _TOOL.search(last):
        own_tools, role = summary.tools[BLANK.sub("", last)], f"{{a {tool[1]}}}"
        for other in sorted(set().union(*summary.tools.values()) - own_tools):
            yield [action.replace(role, f"{{a {other}}}") for action in entry.lifted]
        if summary.putting:
            yield [*way, summary.putting.replace("{destination}", role), last]


def _late(entry: Success) -> Iterator[list[str]]:
    """Yield the steps with the delivery moved to the front."""
    start = len(entry.lifted) if _BROUGHT.search(entry.lifted[-1]) else 0
    while start and "{destination}" in entry.lifted[start - 1]:
        start -= 1
    if any("{object}" in action for action in entry.lifted[:start]):
        yield [*entry.lifted[start:], *entry.lifted[:start]]


def _walks_to_things(entry: Success, summary: _MemorySummary) -> Iterator[list[str]]:
    """Yield the steps with the first place and the last action's object exchanged."""
    place, thing = summary.argument(entry.lifted[0]), summary.argument(entry.lifted[-1])
    role_names = {f"{{{role}}}": name for role, name in _role_names(entry).items()}
    kinds = [kind_of(role_names.get(name, name)) for name in (place, thing)]
    if thing and kinds[0] in summary.places and kinds[1] not in summary.places:
        other = {place: thing, thing: place}
        either = re.compile("|".join(map(re.escape, sorted(other, key=len, reverse=True))))
        yield [either.sub(lambda name: other[name[0]], action) for action in entry.lifted]


def _role_names(entry: Success) -> dict[str, str]:
    """Return the name of each role in the recorded scene.

    Actions are matched from the last one back, because the roles contain walks that the recorded
    episode did not need.
    """
    role_names: dict[str, str] = {}
    actions = [*entry.actions]
    for template in reversed(entry.lifted):
        if actions and (names := _pattern(template).fullmatch(actions[-1])):
            actions.pop()
            role_names |= dict(zip(BLANK.findall(template), names.groups(), strict=True))
    return role_names


def _pattern(template: str) -> re.Pattern[str]:
    """Return a pattern that matches the template with any name for each role."""
    return re.compile("(.+)".join(map(re.escape, BLANK.split(template)[::2])))
