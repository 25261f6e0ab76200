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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

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

    Which of several that would do is a matter of chance.

    ``spoiled`` are the same entries as the control ``corrupted`` has them.
    """
    lore = _Lore.of(entries)
    for entry, wrong in zip(entries, spoiled, strict=True):
        if isinstance(entry, CriticalFailure):
            yield _marked(wrong, "corrupted")
        if not isinstance(entry, Success) or not entry.lifted:
            continue
        kinds: dict[str, list[Entry]] = {
            "rule": [*_told(entry, _against_rules(entry, lore))],
            "corrupted": [wrong] if _differs(entry, wrong) else [],
            "goal": lore.foreign(entry),
        }
        for kind in PLANTS:
            if kinds[kind]:
                yield _marked(chance.choice(kinds[kind]), kind, entry)


def _marked(plant: Entry, kind: str, source: Success | None = None) -> Entry:
    """Under the goal, and as often seen, as the sound entry that it stands beside."""
    name = source.id if source else plant.id
    changes = {"id": f"{_MARK}_{kind}_{name}"}
    if source:
        changes["goal_signature"] = source.goal_signature
    return plant.model_copy(update=changes)


def _told(entry: Success, ways: Iterable[list[str]]) -> Iterator[Success]:
    """Other advice in the words of an entry: in roles, and in names as it was recorded with."""
    names = _players(entry)
    for lifted in ways:
        roles = {role for action in lifted for role in BLANK.findall(action)}
        # A home that did not need a tool of this kind is told to have had one.
        filled = {r: names.get(r) or f"{r[2:]} 1" for r in roles if r in names or r[:2] == "a "}
        if filled.keys() == roles:
            actions = [_fill(action, filled) for action in lifted]
            yield entry.model_copy(update={"lifted": lifted, "actions": actions})


def _differs(entry: Success, wrong: Entry) -> bool:
    """Whether it comes to another thing in the end; another way may lead to the same."""
    return not isinstance(wrong, Success) or wrong.lifted[-1] != entry.lifted[-1]


class _Lore(NamedTuple):
    """What a memory tells of its world.

    Attributes:
        tools: an action's wording without names -> the one kind of thing it is done with.
        putting: how something is brought to its destination, with roles.
        forms: what each action looks like.
        places: kinds of places.
        snippets: the sound ones, by sub-goal.
        steps: the sub-goals of each type of goal.
    """

    tools: Mapping[str, str]
    putting: str
    forms: Sequence[re.Pattern[str]]
    places: frozenset[str]
    snippets: Mapping[str, Sequence[Success]]
    steps: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> _Lore:
        tools, snippets, steps = defaultdict(set), defaultdict(list), defaultdict(set)
        putting = ""
        for entry in entries:
            if not isinstance(entry, Success) or not entry.lifted:
                continue
            snippets[entry.sub_goal_type].append(entry)
            steps[_type(entry)].add(entry.sub_goal_type)
            for action in entry.lifted:
                if tool := _TOOL.search(action):
                    tools[BLANK.sub("", action)].add(tool[1])
                elif _BROUGHT.search(action):
                    putting = putting or action
        schemas = [entry.action_template for entry in entries if isinstance(entry, Schema)]
        return cls(
            {action: kinds.pop() for action, kinds in sorted(tools.items()) if len(kinds) == 1},
            putting,
            [_pattern(text) for text in sorted(schemas, key=len, reverse=True)],
            frozenset(entry.place for entry in entries if isinstance(entry, Finds)),
            snippets,
            {kind: frozenset(names) for kind, names in steps.items()},
        )

    def foreign(self, entry: Success) -> list[Entry]:
        """Snippets for sub-goals that goals of this entry's type do not have."""
        own = self.steps[_type(entry)]
        return [other for step, others in self.snippets.items() if step not in own
                for other in others]  # fmt: skip

    def argument(self, action: str) -> str:
        """What an action is about, if that is one thing."""
        names = next((m.groups() for form in self.forms if (m := form.fullmatch(action))), ())
        return str(names[0]) if len(names) == 1 else ""


def _against_rules(entry: Success, lore: _Lore) -> Iterator[list[str]]:
    """The ways in which this advice can be told so that it breaks a rule."""
    lifted, last = entry.lifted, entry.lifted[-1]
    if tool := lore.tools.get(BLANK.sub("", last)):
        for other in sorted({*lore.tools.values()} - {tool}):
            yield [action.replace(f"{{a {tool}}}", f"{{a {other}}}") for action in lifted]
        if lore.putting:
            yield [*lifted[:-1], lore.putting.replace("{destination}", f"{{a {tool}}}"), last]
    if _BROUGHT.search(last):
        bringing = len(lifted)
        while bringing and "{destination}" in lifted[bringing - 1]:
            bringing -= 1
        if any("{object}" in action for action in lifted[:bringing]):
            yield [*lifted[bringing:], *lifted[:bringing]]
    walk, thing = lore.argument(lifted[0]), lore.argument(last)
    players = _players(entry)
    kinds = [kind_of(players.get(name.strip("{}"), name)) for name in (walk, thing)]
    if thing and kinds[0] in lore.places and kinds[1] not in lore.places:
        wrong = {walk: thing, thing: walk}
        either = re.compile("|".join(map(re.escape, sorted(wrong, key=len, reverse=True))))
        yield [either.sub(lambda name: wrong[name[0]], action) for action in lifted]


def _players(entry: Success) -> dict[str, str]:
    """Who played each role where the entry comes from.

    From the last action back: the roles tell of walks that were not needed there.
    """
    players: dict[str, str] = {}
    actions = [*entry.actions]
    for template in reversed(entry.lifted):
        roles = BLANK.findall(template)
        if actions and (names := _pattern(template).fullmatch(actions[-1])):
            actions.pop()
            players |= dict(zip(roles, names.groups(), strict=True))
    return players


def _fill(template: str, players: Mapping[str, str]) -> str:
    return BLANK.sub(lambda role: players[role[1]], template)


def _pattern(template: str) -> re.Pattern[str]:
    """What an action looks like: a name for every role."""
    words = BLANK.split(template)[::2]
    return re.compile("(.+)".join(map(re.escape, words)))


def _type(entry: Success) -> str:
    return entry.goal_signature.partition(":")[0]
