"""Plants: entries that contradict the manual in known places, to see what arbitration is worth.

A plant stands beside the sound memory, under the goal and in the state of the entry it was made
from, and its id tells its kind to whoever counts what became of it:

- ``rule``: advice from where another rule held. Another action's tool, what is handled put into
  the tool first (the paper's apple in the fridge), what is brought handled only after it was put
  away, a walk to what is no place. No manual allows it, whatever else holds.
- ``corrupted``: the spoiling of the control of that name, as far as its words change. A plain
  refusal is not told as a success here: what was refused then may well be right now.
- ``goal``: sound advice for a sub-goal that goals of this type do not have.

What is wrong is read off the memory itself: no manual is asked.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from rpms.memory_store.entries import CriticalFailure, Entry, Finds, Schema, Success
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.recall import BLANK

PLANTS = ("rule", "corrupted", "goal")
_MARK = "planted"
_TOOL = re.compile(r"\{object\}.*\{a ([^{}]+)\}")
_BROUGHT = re.compile(r"\{object\}.*\{destination\}")


def plant_kind(name: str) -> str:
    """The kind of plant that an entry is by its id; empty for one that was really learned."""
    mark, _, rest = name.partition("_")
    return rest.partition("_")[0] if mark == _MARK else ""


def plants(
    entries: Sequence[Entry], spoiled: Sequence[Entry], chance: random.Random
) -> Iterator[Entry]:
    """Plants of every kind for each snippet, as far as there are, and fatal actions as successes.

    ``spoiled`` are the same entries as the control ``corrupted`` has them. Which of several plants
    of a kind it is to be, is a matter of chance.
    """
    lore = _Lore(entries)
    for entry, wrong in zip(entries, spoiled, strict=True):
        if isinstance(entry, CriticalFailure):
            yield wrong.model_copy(update={"id": f"{_MARK}_corrupted_{entry.id}"})
        if not isinstance(entry, Success) or not entry.lifted:
            continue
        # Another way may lead to the same: what it comes to in the end must be another thing.
        differs = not isinstance(wrong, Success) or wrong.lifted[-1] != entry.lifted[-1]
        choices: tuple[Sequence[Entry], ...] = (
            [*_retold(entry, lore)], [wrong] if differs else [], lore.foreign[_type(entry)],
        )  # fmt: skip
        for kind, plants_of_kind in zip(PLANTS, choices, strict=True):
            if plants_of_kind:
                place = {"id": f"{_MARK}_{kind}_{entry.id}", "goal_signature": entry.goal_signature}
                yield chance.choice(plants_of_kind).model_copy(update=place)


class _Lore:
    """What a memory tells of its world.

    Attributes:
        tools: an action's wording without names -> the kinds of things it is done with.
        putting: how something is brought to its destination, with roles.
        forms: what each action looks like.
        places: kinds of places.
        foreign: for a type of goal, snippets for sub-goals that it does not have.
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
        # Actions without a schema that says something: what a snippet ends with, about one thing.
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
        """What an action is about, if that is one thing."""
        names = next((m.groups() for form in self.forms if (m := form.fullmatch(action))), ())
        return str(names[0]) if len(names) == 1 else ""


def _retold(entry: Success, lore: _Lore) -> Iterator[Success]:
    """The advice told so that it breaks a rule: in roles, and in the names it was recorded with."""
    names = _role_names(entry)
    for lifted in (*_wrong_tools(entry, lore), *_late(entry), *_walks_to_things(entry, lore)):
        text = "\n".join(lifted)
        for role in set(BLANK.findall(text)):
            # A home that did not need a tool of this kind is told to have had one.
            name = names.get(role) or (f"{role[2:]} 1" if role.startswith("a ") else "{?}")
            text = text.replace(f"{{{role}}}", name)
        if "{?}" not in text:
            yield entry.model_copy(update={"lifted": lifted, "actions": text.split("\n")})


def _wrong_tools(entry: Success, lore: _Lore) -> Iterator[list[str]]:
    """With the tool of another action, or put into the right one first."""
    *way, last = entry.lifted
    if tool := _TOOL.search(last):
        own, role = lore.tools[BLANK.sub("", last)], f"{{a {tool[1]}}}"
        for other in sorted(set().union(*lore.tools.values()) - own):
            yield [action.replace(role, f"{{a {other}}}") for action in entry.lifted]
        if lore.putting:
            yield [*way, lore.putting.replace("{destination}", role), last]


def _late(entry: Success) -> Iterator[list[str]]:
    """Brought where it belongs first, and only then taken, or changed."""
    start = len(entry.lifted) if _BROUGHT.search(entry.lifted[-1]) else 0
    while start and "{destination}" in entry.lifted[start - 1]:
        start -= 1
    if any("{object}" in action for action in entry.lifted[:start]):
        yield [*entry.lifted[start:], *entry.lifted[:start]]


def _walks_to_things(entry: Success, lore: _Lore) -> Iterator[list[str]]:
    """The place of the first walk and the thing that the last action is about, exchanged."""
    place, thing = lore.argument(entry.lifted[0]), lore.argument(entry.lifted[-1])
    role_names = {f"{{{role}}}": name for role, name in _role_names(entry).items()}
    kinds = [kind_of(role_names.get(name, name)) for name in (place, thing)]
    if thing and kinds[0] in lore.places and kinds[1] not in lore.places:
        other = {place: thing, thing: place}
        either = re.compile("|".join(map(re.escape, sorted(other, key=len, reverse=True))))
        yield [either.sub(lambda name: other[name[0]], action) for action in entry.lifted]


def _role_names(entry: Success) -> dict[str, str]:
    """Who played each role where the entry comes from.

    From the last action back: the roles tell of walks that were not needed there.
    """
    role_names: dict[str, str] = {}
    actions = [*entry.actions]
    for template in reversed(entry.lifted):
        if actions and (names := _pattern(template).fullmatch(actions[-1])):
            actions.pop()
            role_names |= dict(zip(BLANK.findall(template), names.groups(), strict=True))
    return role_names


def _pattern(template: str) -> re.Pattern[str]:
    """What an action looks like: a name for every role."""
    return re.compile("(.+)".join(map(re.escape, BLANK.split(template)[::2])))


def _type(entry: Success) -> str:
    return entry.goal_signature.partition(":")[0]
