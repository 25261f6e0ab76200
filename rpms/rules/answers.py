"""Updates the belief from a tool's answer.

A world may read its answers itself (``read_answer``). Otherwise the manual reads them: a call that
was carried out has its rule's effects, and every JSON object in an answer that names a thing
(``records``), or that the rule says is about one (``shows``), becomes the record of that thing.

Evidence has a source: only the tools of the manual, without those whose answers come from
``outside``. What a thing's own look-up has shown, another tool's answer does not change.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from rpms.rules import Manual
from rpms.rules.calls import bind, carry_out, note_call
from rpms.rules.predicates import argument_names
from rpms.rules.scalars import UNKNOWN
from rpms.rules.values import record_name
from rpms.vocabulary.belief import Belief, copy_belief
from rpms.vocabulary.calls import Call
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import RecordedTurn, Turn

LOG = logging.getLogger("rpms.guard")
Records = dict[str, dict[str, Any]]
Identities = Sequence[str | list[str]]
"""Fields that identify a thing, alone or several together."""


class GuardedWorld(Protocol):
    """The interface that the guard needs of a world; ``rpms.ToolWorld`` has defaults for all."""

    name: str

    @property
    def rules(self) -> Path:
        """The folder with domain.yaml and environment.yaml."""

    def first_belief(self, observation: str) -> Belief:
        """The belief after the user's first message."""

    def parse_goal(self, sentence: str) -> GoalSpec:
        """The goal that a message of the user states."""

    def failed(self, observation: str) -> bool:
        """Return whether an answer says that the call was rejected."""

    def read_answer(self, belief: Belief, call: Call, answer: str) -> Belief | None:
        """The belief after an answer; None leaves it to the manual."""


class TextWorld(GuardedWorld, Protocol):
    """A world whose actions may also be texts."""

    def update_belief(self, belief: Belief, action: str, observation: str) -> Belief:
        """The belief after an action and its observation."""


def belief_after(
    world: TextWorld, manual: Manual, belief: Belief, turn: Turn | RecordedTurn
) -> Belief:
    """The belief after a recorded turn, whose action is a tool call or a text."""
    observation = turn["observation"]
    if "call" not in turn:
        return world.update_belief(belief, turn["action"], observation)
    if turn["failed"] and not world.failed(observation):
        return belief  # the tool raised an exception: its text says nothing about the world
    return after_answer(manual, world, belief, Call(**turn["call"]), observation)


def after_answer(
    manual: Manual, world: GuardedWorld, belief: Belief, call: Call, answer: str
) -> Belief:
    """The belief after a call was carried out and answered."""
    succeeded = not world.failed(answer)
    read = world.read_answer(belief, call, answer)
    after = copy_belief(belief if read is None else read)
    if read is not None:
        if call.tool in manual.by_name:
            note_call(call, after, failed=not succeeded)
        return after
    content = _content(answer)
    if succeeded:
        carry_out(manual, call, after, _value(answer, content))
    elif call.tool in manual.by_name:
        note_call(call, after, failed=True)
    for thing, fields in _records(manual, call, content, belief).items():
        _note_record(after, call, thing, fields)
    return after


def _note_record(belief: Belief, call: Call, thing: str, fields: Mapping[str, Any]) -> None:
    """Add the fields to a thing's record; those that its own look-up has shown stay.

    A tool that is called with the name of a thing is a look-up of it.
    """
    record = belief["records"].setdefault(thing, {})
    owned = belief["owned"].setdefault(thing, [])
    names = [name for value in call.arguments.values() for name in argument_names(value)]
    is_own = thing in names or thing == record_name(names)
    if is_own:
        owned += [field for field in fields if field not in owned]
    for field, value in fields.items():
        if field in owned and not is_own and record.get(field, value) != value:
            LOG.warning(
                "%s says that the %s of %s is %r; its own look-up said %r, which counts",
                call.tool, field, thing, value, record[field],
            )  # fmt: skip
        else:
            record[field] = value


def _value(answer: str, content: Any) -> Any:
    """What effects read as ``answer``: the data, else the text; an empty answer says nothing."""
    text = answer.strip()
    return content if content is not None else UNKNOWN if text in ("", "null") else text


def _content(answer: str) -> Any:
    """The data of an answer in JSON; None for any other text."""
    with suppress(ValueError, RecursionError):
        return json.loads(answer)
    return None


def _records(manual: Manual, call: Call, content: Any, belief: Belief) -> Records:
    """The fields that an answer gives for each thing."""
    records: Records = {}
    rule = manual.by_name.get(call.tool)
    if rule is None or rule.answers == "outside":
        return records
    if rule.shows and isinstance(content, dict):
        for name in argument_names(bind(rule, call, belief)[rule.shows]):
            records[name] = dict(content)
    identities = manual.environment.records if rule.records is None else rule.records
    for name, fields in _objects(content, identities, call.arguments).items():
        records[name] = {**fields, **records.get(name, {})}
    return records


def _names_in(part: Any, identities: Identities, call: Mapping[str, Any]) -> list[str]:
    """The names of the things that an object is about, by the first identity that it has.

    Of several fields that identify a thing together, the call may give those that are missing.
    """
    for identity in identities if isinstance(part, dict) else ():
        if isinstance(identity, str):
            if identity in part:
                return argument_names(part[identity])
        elif part.get(identity[0]) is not None:
            values = [part.get(f) if part.get(f) is not None else call.get(f) for f in identity]
            if all(isinstance(value, str | int) for value in values):
                return [record_name(values)]
    return []


def _objects(content: Any, identities: Identities, call: Mapping[str, Any]) -> Records:
    """The objects of an answer that name what they are about.

    The outer one of two about the same thing counts: an inner one may repeat what a user wrote.
    Where two of the same depth differ in a field, that field is left out.
    """
    records: Records = {}
    level = [content]
    while level:
        found: Records = {}
        differing: set[tuple[str, str]] = set()
        for part in level:
            for name in _names_in(part, identities, call):
                fields = found.setdefault(name, {})
                differing |= {
                    (name, k) for k in fields.keys() & part.keys() if fields[k] != part[k]
                }
                fields |= part
        for name, key in differing:
            del found[name][key]
        records = {
            name: {**found.get(name, {}), **records.get(name, {})} for name in {**records, **found}
        }
        objects = [part.values() for part in level if isinstance(part, dict)]
        lists = [part for part in level if isinstance(part, list)]
        level = [part for parts in (*objects, *lists) for part in parts]
    return records
