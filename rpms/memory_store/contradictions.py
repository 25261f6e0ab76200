"""Entries that contradict the manual, planted in a memory to measure the worth of arbitration.

A contradiction is added to the sound memory with the goal and the state of the entry it was made
from. Its id begins with ``planted_`` and its kind:

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
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rpms.memory_store.entries import CriticalFailure, Entry, Finds, Schema, Success
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.recall import BLANK

CONTRADICTIONS = ("rule", "corrupted", "goal")
_MARK = "planted"
_TOOL = re.compile(r"\{object\}.*\{a ([^{}]+)\}")
_BROUGHT = re.compile(r"\{object\}.*\{destination\}")


def contradiction_kind(name: str) -> str:
    """Return the kind of a planted entry by its id; empty for a learned one."""
    mark, _, rest = name.partition("_")
    return rest.partition("_")[0] if mark == _MARK else ""


def contradictions(
    entries: Sequence[Entry], spoiled: Sequence[Entry], chance: random.Random
) -> Iterator[Entry]:
    """Yield one contradiction of each kind for each snippet, and critical failures as successes.

    ``spoiled`` holds the same entries as the control ``corrupted`` has them. If a kind has several
    possible contradictions, one is drawn at random.
    """
    summary = _MemorySummary(entries)
    for entry, wrong in zip(entries, spoiled, strict=True):
        if isinstance(entry, CriticalFailure):
            yield wrong.model_copy(update={"id": f"{_MARK}_corrupted_{entry.id}"})
        if not isinstance(entry, Success) or not entry.lifted:
            continue
        # Another path may lead to the same result, so the last action must differ.
        differs = not isinstance(wrong, Success) or wrong.lifted[-1] != entry.lifted[-1]
        choices: tuple[Sequence[Entry], ...] = (
            [*_retold(entry, summary)], [wrong] if differs else [], summary.foreign[_type(entry)],
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
        steps = {(_type(entry), entry.sub_goal_type) for entry in snippets}
        self.foreign = {
            kind: [other for other in snippets if (kind, other.sub_goal_type) not in steps]
            for kind in {_type(entry) for entry in snippets}
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


def _type(entry: Success) -> str:
    return entry.goal_signature.partition(":")[0]
