"""What a memory says of a condition: words for what was observed, none of them the manual's."""

from __future__ import annotations

from collections.abc import Mapping

from rpms.rules.predicates import ARGUMENT, Predicate, World, parse_predicate

# By predicate; ``{how}`` is where "not" or "still" goes. Where "not" would not do, the contrary has
# a form of its own. What a world calls its own stands in its Tier 3, under wording: recalled.
WORDS = {
    "at": "{how}at {0}",
    "place": "{0} is {how}one of the places here",
    "holding": "{how}holding {0}",
    "hand_empty": "{how}empty-handed",
    "open": "{0} {how}stands open",
    "not open": "{0} does {how}not stand open",
    "closed": "{0} is {how}shut",
    "accessible": "{0} is {how}not shut",
    "not accessible": "{0} is {how}shut",
    "unclosed": "{0} is {how}not shut",
    "not unclosed": "{0} is {how}shut",
    "in": "{0} is {how}in or on {1}",
    "here": "{0} is {how}in sight",
    "visible": "{0} is {how}in sight",
    "kind": "{0} {how}counts as a {1}",
    "not kind": "{0} is {how}no {1}",
    "can_contain": "{0} {how}takes {1}",
    "not can_contain": "{0} does {how}not take {1}",
    "state": "{0} has {how}become {1}",
    "adjacent": "an open way {how}leads from here to {0}",
    "not adjacent": "{how}no open way leads from here to {0}",
    "activated": "{0} is {how}running",
    "combined": "{0} {how}holds two things or more",
    "not combined": "{0} {how}holds fewer than two things",
    "changed": "{0} has {how}changed",
    "looked_around": "{how}having had a look around",
    "here_closed": "the place here is {how}shut",
}
# What no moment changes: it was never so, where other conditions may yet come to hold.
_LASTING = {"place", "kind", "can_contain"}
UNEXPLAINED = "it was refused for a reason that could not be seen"
NOT_UNDERSTOOD = "'{0}' was not understood"
FATAL = "it ended the task with score {0:.0f}: be sure the task wants it"


def reason(text: str, names: Mapping[str, str], world: World) -> str:
    """Why an action was refused for want of a condition."""
    predicate = parse_predicate(text)
    if predicate.name in _LASTING or predicate.name in world.affordances:
        return _say(predicate._replace(positive=not predicate.positive), names, world)
    return f"only when {_say(predicate, names, world)}"


def in_words(text: str, names: Mapping[str, str], world: World, *, still: bool = False) -> str:
    """A condition with names filled in, as someone would say it who saw it."""
    return _say(parse_predicate(text), names, world, "still " if still else "")


def _say(predicate: Predicate, names: Mapping[str, str], world: World, how: str = "") -> str:
    forms = {**WORDS, **world.wording.recalled}
    arguments = [names.get(argument, argument) for argument in predicate.arguments]
    positive, name = predicate.positive, predicate.name
    if not positive and f"not {name}" in forms:
        return forms[f"not {name}"].format(*arguments, how=how)
    if name in forms:
        return forms[name].format(*arguments, how=how if positive else f"{how}not ")
    if name in world.predicates:
        bound = dict(zip((ARGUMENT,), arguments, strict=False))
        every, some = (" and ", " or ") if positive else (" or ", " and ")
        choices = [map(parse_predicate, choice) for choice in world.predicates[name]]
        return some.join(
            every.join(
                _say(part._replace(positive=part.positive == positive), bound, world, how)
                for part in choice
            )
            for choice in choices
        )
    counts = f"{how}counts" if positive else f"does {how}not count"
    return f"{' with '.join(arguments) or 'this'} {counts} as {name.replace('_', ' ')}"
