"""Belief predicates: the words in which preconditions and effects are written.

Evaluation is three-valued. ``None`` means that the belief does not tell: arbitration treats
that as a possible conflict (soft), never as a violation (hard).

The functions here speak of the belief's own fields and of no world. What a world calls its things,
and predicates that it puts together for itself, come with its Tier 3 as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from pydantic import BaseModel

from rpms.rules import values
from rpms.rules.values import Tools, parse_term, split_arguments
from rpms.vocabulary.belief import Belief, empty_belief, kind_of
from rpms.vocabulary.naming import Truth, bare_name, find_name, is_a, same_thing, words_of
from rpms.vocabulary.output import with_article
from rpms.vocabulary.spelling import Strict

# What the choices of a world's own predicate call its argument.
ARGUMENT = "thing"


class Predicate(NamedTuple):
    """A parsed predicate: ``not at(place)`` -> (False, "at", ("place",))."""

    positive: bool
    name: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        """As it is written in the YAML."""
        arguments = f"({', '.join(self.arguments)})" if self.arguments else ""
        return f"{'' if self.positive else 'not '}{self.name}{arguments}"

    def about(self, names: Mapping[str, str]) -> Predicate:
        """The same about the very things that parameters stand for."""
        return self._replace(arguments=tuple(names.get(a, a) for a in self.arguments))


class Wording(Strict, BaseModel):
    """What a world calls its things, where the predicates need to know.

    ``anything`` lists words that may stand for anything, ``truncated`` what may be carried from the
    start although no text has said so, ``also_called`` other names that the
    environment takes for a kind of thing, ``passages`` what opens and closes but
    holds nothing, and ``passages_to`` what the passage to a place (``{0}``) is called. ``phrases``
    has statements for predicates that this world says in its own words, each with "is" or "are"
    ("{0} is next door"): the need ("{0} to be next door") is made from it. ``facts`` has such a
    statement for each state that is no adjective: ``sim missing`` -> ``the SIM card is missing``,
    with ``{0}`` for the thing; one for its contrary begins with "not".
    """

    anything: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    also_called: dict[str, list[str]] = {}
    passages: frozenset[str] = frozenset()
    passages_to: list[str] = []
    phrases: dict[str, str] = {}
    facts: dict[str, str] = {}


class StaticFacts(NamedTuple):
    """Static knowledge that predicates may use besides the belief."""

    affordances: Mapping[str, frozenset[str]]
    contains: Mapping[str, frozenset[str]]
    built_together: Sequence[frozenset[str]] = ()
    connected: Mapping[str, frozenset[str]] = {}
    predicates: Mapping[str, Sequence[Sequence[str]]] = {}
    wording: Wording = Wording()
    ruled_out: Mapping[str, frozenset[str]] = {}
    cannot_contain: Mapping[str, frozenset[str]] = {}
    alternatives: Sequence[frozenset[str]] = ()
    unmoved: bool = False
    tools: Tools = Tools({})


_FORM = re.compile(r"^(not )?(\w+)(?:\((.*)\))?$", re.DOTALL)


@cache
def parse_predicate(text: str) -> Predicate:
    """Read a predicate; raises ValueError when the text is not one."""
    form = _FORM.match(text.strip())
    try:
        arguments = split_arguments(form[3] or "") if form else []
        terms = [*map(parse_term, arguments)]
    except ValueError:
        form = None
    if not form or not all(term.head for term in terms):
        raise ValueError(
            f"'{text}' is not a predicate such as 'at(place)' or 'not holding(object)'"
        )
    return Predicate(form[1] is None, form[2], tuple(arguments))


def is_predicate(text: str) -> bool:
    """Whether a text has the form of a predicate; what people write by hand may be words."""
    return _FORM.match(text.strip()) is not None


def unify(effect: Predicate, fact: Predicate, parameters: Collection[str]) -> dict[str, str] | None:
    """The names under which an effect of an action is a fact; None if it never is.

    By this step every plan is regressed, from what is needed to an action that brings it about.
    """
    if (effect.positive, effect.name) != (fact.positive, fact.name):
        return None
    names: dict[str, str] = {}
    for argument, value in zip(effect.arguments, fact.arguments, strict=True):
        if argument not in parameters:
            if argument != value:
                return None
        elif names.setdefault(argument, value) != value:
            return None
    return names


def fact_sentence(predicate: Predicate, names: Sequence[str], facts: StaticFacts) -> str:
    """What a world says of a state in a sentence of its own; empty where it has none."""
    if predicate.name not in ("state", "seen"):
        return ""
    sentence = facts.wording.facts.get(f"{'' if predicate.positive else 'not '}{names[1]}", "")
    return sentence.format(*names)


def around(belief: Belief, thing: str) -> Iterator[str]:
    """What a thing was last seen in, and what that is in, from the inside out."""
    passed = {thing}
    while (place := belief["last_seen"].get(thing)) is not None and place not in passed:
        passed.add(place)
        yield place
        thing = place


def _at(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    """Another place may stand at this very spot; only a look around rules that out."""
    here = belief["location"]
    if place == here or place in belief["reachable"]:
        return True
    if here is None or here in belief["spots"]:
        return False
    together = {kind_of(here), kind_of(place)}
    return None if any(together <= unit for unit in facts.built_together) else False


def _door(belief: Belief, facts: StaticFacts, place: str, door: str) -> Truth:
    """Once its contents were seen without a door being mentioned, a place has none.

    Unless they can be seen through it: a glass jar shows what it holds with the lid on.
    """
    if place in belief["containers"]:
        return belief["containers"][place] == door
    if is_a(place, facts.affordances.get("see_through", frozenset())):
        return None
    return False if place in belief["searched"] else None


def _accessible(belief: Belief, _: StaticFacts, place: str) -> Truth:
    if place in belief["containers"]:
        return belief["containers"][place] == "open"
    return True if place in belief["searched"] else None


def _in(belief: Belief, facts: StaticFacts, thing: str, place: str) -> Truth:
    if belief["last_seen"].get(thing) == place or place in belief["also_at"].get(thing, []):
        return True
    if facts.unmoved and thing in belief["last_seen"]:
        return False
    return False if place in belief["searched"] or thing in belief["holding"] else None


def _delivered(belief: Belief, _: StaticFacts, thing: str, place: str) -> Truth:
    """It lies there, and no other place of that kind holds one of its like: this is the place."""
    alike = {
        where
        for other, where in belief["last_seen"].items()
        if kind_of(other) == kind_of(thing) and kind_of(where) == kind_of(place)
    }
    return belief["last_seen"].get(thing) == place and alike == {place}


def _here(belief: Belief, facts: StaticFacts, thing: str) -> Truth:
    """In view at this spot. A thing never seen may still be somewhere around here."""
    place = belief["last_seen"].get(thing)
    if place is not None:
        return _at(belief, facts, place)
    return False if thing in belief["holding"] or belief["location"] is None else None


def _place(belief: Belief, _: StaticFacts, place: str) -> Truth:
    return place in belief["places"]


def _can_contain(_: Belief, facts: StaticFacts, place: str, thing: str) -> Truth:
    """A table of both sides leaves open what is on neither."""
    if kind_of(thing) in facts.contains.get(kind_of(place), frozenset()):
        return True
    denied = kind_of(thing) in facts.cannot_contain.get(kind_of(place), frozenset())
    return None if facts.cannot_contain and not denied else False


def _affords(facts: StaticFacts, name: str, thing: str) -> Truth:
    """Whether a thing is of a kind with this property; likewise."""
    truth = is_a(thing, facts.affordances[name])
    if truth is False and name in facts.ruled_out:
        return None if is_a(thing, facts.ruled_out[name]) is False else False
    return truth


def _state(belief: Belief, facts: StaticFacts, thing: str, state: str) -> Truth:
    """A thing may have several facts on record; one rules out those that exclude it, or all."""
    known = {*belief["flags"].get(thing, "").split(", ")} - {""}
    if state in known:
        return True
    if not facts.alternatives:
        return False if known else None
    return (
        False if any(state in family and family & known for family in facts.alternatives) else None
    )


def _visible(belief: Belief, facts: StaticFacts, thing: str) -> Truth:
    """In view or carried. Denied only if the view is known and nothing in it resembles the name.

    What lies in a closed container cannot be acted upon. What an open one holds is unknown until
    it was looked into.
    """
    known = [*belief["visible"], *belief["holding"]]
    also = facts.wording.also_called
    known += [other for name in known for other in also.get(kind_of(name), ())]
    if any(same_thing(thing, name) for name in known):
        return True
    here = belief["location"]
    if here is not None and bare_name(thing) == here:
        return True
    for place in around(belief, bare_name(thing)):
        if place == here:
            return True
        if belief["containers"].get(place) == "closed":
            return False
    if here is None or not belief["visible"] or bare_name(thing) in facts.wording.truncated:
        return None
    words = words_of([thing])
    if words & facts.wording.anything or words & words_of([*known, *belief["containers"]]):
        return None
    unseen = any(
        door == "open" and name not in belief["searched"] and not is_a(name, facts.wording.passages)
        for name, door in belief["containers"].items()
    )
    return None if unseen else False


def _adjacent(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    """Next to here on the map, and the way between not known to be closed."""
    here = belief["location"]
    if here is None or not {here, place} <= facts.connected.keys():
        return None
    ways = (belief["containers"].get(form.format(place)) for form in facts.wording.passages_to)
    return place in facts.connected[here] and "closed" not in ways


def _unclosed(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    """Most things have no door: what was seen without a closed one counts as open."""
    name = find_name(place, belief["containers"])
    if name is not None:
        return belief["containers"][name] == "open"
    if is_a(place, facts.affordances.get("see_through", frozenset())):
        return None
    return True if _visible(belief, facts, place) else None


def _activated(belief: Belief, _: StaticFacts, device: str) -> Truth:
    name = find_name(device, belief["flags"])
    known = belief["flags"][name].split(", ") if name is not None else []
    return next((_SWITCHED[state] for state in known if state in _SWITCHED), None)


_SWITCHED = {
    "activated": True, "on": True, "turned on": True,
    "deactivated": False, "off": False, "turned off": False,
}  # fmt: skip


def _combined(belief: Belief, _: StaticFacts, place: str) -> Truth:
    """Two things known to be in it can be mixed; whether they are all it takes is not known."""
    return True if list(belief["last_seen"].values()).count(bare_name(place)) > 1 else None


# name -> (number of arguments, evaluation). Affordances are predicates of their own name.
PREDICATES: dict[str, tuple[int, Callable[..., Truth]]] = {
    "at": (1, _at),
    "place": (1, _place),
    "holding": (1, lambda b, _, thing: thing in b["holding"]),
    "hand_empty": (0, lambda b, _: not b["holding"]),
    "open": (1, lambda b, w, place: _door(b, w, place, "open")),
    "closed": (1, lambda b, w, place: _door(b, w, place, "closed")),
    "accessible": (1, _accessible),
    "in": (2, _in),
    "here": (1, _here),
    "kind": (2, lambda b, _, thing, kind: kind_of(thing) == kind),
    "can_contain": (2, _can_contain),
    "state": (2, _state),
    # For what may be done only on evidence: what was not seen counts as not so.
    "seen": (2, lambda b, w, thing, state: _state(b, w, thing, state) is True),
    "delivered": (2, _delivered),
    "visible": (1, _visible),
    "adjacent": (1, _adjacent),
    "unclosed": (1, _unclosed),
    "activated": (1, _activated),
    "combined": (1, _combined),
    # An effect only: what exactly became of a thing, the next look tells.
    "changed": (1, lambda b, _, thing: None),
    "looked_around": (0, lambda b, _: bool(b["visible"])),
    "here_closed": (0, lambda b, _: b["containers"].get(b["location"] or "") == "closed"),
    # An effect only: a field of what answers said of a thing has another value now.
    "becomes": (2, lambda b, _, field, value: None),
}  # fmt: skip

# Conditions that only `situations` may use; the manual supplies their truth.
SITUATIONAL = {"last_failed"}


def evaluate(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> Truth:
    """Truth of a predicate; arguments that are no parameter stand for themselves.

    Of a list it holds if it holds of every item. What names nothing, such as an argument that was
    not given, meets no need, not even a negated one.
    """
    truth = _evaluate(predicate, belief, facts, bindings)
    return False if truth is values.INVALID else truth  # type: ignore[return-value]


def may_hold(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Whether nothing rules it out: of a value of the wrong type, nothing is."""
    return _evaluate(predicate, belief, facts, bindings) is not False


def _evaluate(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> Truth | values.Special:
    if predicate.name in values.WORDS:
        scope = values.Scope(belief, facts.tools, bindings)
        truth = values.compare(predicate.name, predicate.arguments, scope)
        return truth if predicate.positive or not isinstance(truth, bool) else not truth
    arguments = [bindings.get(name, name) for name in predicate.arguments]
    if all(isinstance(argument, str) for argument in arguments):
        return _of_names(predicate, belief, facts, arguments)
    choices = [argument_names(argument) for argument in arguments]
    if not all(choices):
        return values.INVALID
    truths = [_of_names(predicate, belief, facts, names) for names in product(*choices)]
    return False if False in truths else None if None in truths else True


def is_undecided(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Whether nothing known decides it: an answer may still show it."""
    if predicate.name == "seen":
        asked = predicate._replace(name="state")
        return predicate.positive and evaluate(asked, belief, facts, bindings) is None
    if choices := facts.predicates.get(predicate.name):
        names = [bindings.get(name, name) for name in predicate.arguments]
        inner = dict(zip((ARGUMENT,), names, strict=False))
        parts = [[parse_predicate(text) for text in choice] for choice in choices]
        return any(
            all(evaluate(p, belief, facts, inner) or is_undecided(p, belief, facts, inner) for p in each)
            for each in parts
        )
    return evaluate(predicate, belief, facts, bindings) is None


def argument_names(value: Any) -> list[str]:
    """The names that an argument has; none where it is nothing that could be one."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float):
        return [str(value)] if values.as_number(value) is not None else []
    if isinstance(value, list | tuple):
        names = [argument_names(item) for item in value]
        return [name for each in names for name in each] if all(names) else []
    return []


def _of_names(
    predicate: Predicate, belief: Belief, facts: StaticFacts, names: Sequence[str]
) -> Truth:
    if predicate.name in facts.affordances:
        truth = _affords(facts, predicate.name, names[0])
    elif predicate.name in facts.predicates:
        truth = _composed(facts.predicates[predicate.name], belief, facts, names)
    else:
        truth = PREDICATES[predicate.name][1](belief, facts, *names)
    return truth if truth is None or predicate.positive else not truth


def is_evidence(predicate: Predicate, facts: StaticFacts) -> bool:
    """Whether only an answer can show it: what no answer has told then counts as not so."""
    if predicate.name == "seen" or predicate.name in values.WORDS:
        return True
    choices = facts.predicates.get(predicate.name, ())
    parts = [parse_predicate(text) for choice in choices for text in choice]
    return bool(parts) and all(is_evidence(part, facts) for part in parts)


def _composed(
    choices: Sequence[Sequence[str]], belief: Belief, facts: StaticFacts, arguments: Sequence[str]
) -> Truth:
    """All of one of the choices holds; undecided where an undecided part could make it so."""
    bindings = dict(zip((ARGUMENT,), arguments, strict=False))
    truth: Truth = False
    for choice in choices:
        truths = [evaluate(parse_predicate(text), belief, facts, bindings) for text in choice]
        if all(truths):
            return True
        if False not in truths:
            truth = None
    return truth


# Each predicate as a statement about the present state, and negated where a plain "not" would not
# do; a world may have its own. What an action *needs* is derived from the same statement
# (``need``), so that a need can never be printed in the form of a fact.
STATEMENTS: dict[str, str] = {
    "at": "you are at {0}",
    "not at": "you are somewhere else than {0}",
    "place": "{0} is a place here",
    "holding": "you hold {0}",
    "not holding": "you do not hold {0}",
    "hand_empty": "your hand is empty",
    "not hand_empty": "your hand is full",
    "open": "{0} is open",
    "closed": "{0} is closed",
    "accessible": "{0} is open (if it has a door)",
    "not accessible": "{0} is closed",
    "in": "{0} is in/on {1}",
    "here": "{0} is where you are",
    "kind": "{0} is {1}",
    "can_contain": "{0} is able to hold {1}",
    "state": "{0} is {1}",
    "seen": "{0} is known to be {1}",
    "delivered": "{0} is in its final place, {1}",
    "visible": "{0} is in view",
    "adjacent": "{0} is next to here and not closed",
    "unclosed": "{0} is not closed",
    "not unclosed": "{0} is closed",
    "activated": "{0} is on",
    "not activated": "{0} is off",
    "combined": "all parts are in {0}",
    "changed": "{0} is changed",
    "becomes": "{0} is {1} now",
    "looked_around": "you are informed about what is here",
    "here_closed": "the place where you are is closed",
}
UNSHOWN = "no answer has shown that yet"
"""What is so instead of a need for evidence, where nothing is known."""
_VERB = re.compile(r"\b(is|are)\b(?P<no> not)?|\byou (?P<do>do not )?hold\b")
# Between the clauses of a statement put together from several: each has a verb of its own.
_JOINT = re.compile(r"(; |, | or | and )")


def statement(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """A predicate as a statement, with names filled in where they are known: ``X is closed``."""
    if predicate.name in values.WORDS:
        words = _compared(predicate, bindings, facts)
        return words if predicate.positive else _denied(words)
    names = [bindings.get(name, name) for name in predicate.arguments]
    if sentence := fact_sentence(predicate, names, facts):
        return sentence
    statements = {**STATEMENTS, **facts.wording.phrases}
    if not predicate.positive and (denied := statements.get(f"not {predicate.name}")):
        return denied.format(*names)
    adjective = predicate.name.replace("_", " ")
    plain = f"{{0}} is {adjective}" if names else f"this is {adjective}"
    if predicate.name == "kind":
        names = [names[0], with_article(names[1])]
    words = statements.get(predicate.name, plain).format(*names)
    return words if predicate.positive else _denied(words)


def _compared(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """A comparison names its terms, not their values: ``<usd> is at most the total of O1``."""
    scope = values.Scope(empty_belief(), facts.tools, bindings)
    first, *others = (values.spoken(term, scope) for term in predicate.arguments)
    more = [", ".join(others)] if predicate.name == "one_of" else others
    return values.WORDS[predicate.name].format(first, *more)


def _denied(words: str) -> str:
    """The contrary of a statement; one of several clauses is denied as a whole."""
    verb = _VERB.search(words)
    if verb is None or verb["no"] or verb["do"] or _JOINT.search(words, verb.end()):
        return f"it is not so that {words}"
    if verb[1]:
        return f"{words[: verb.end()]} not{words[verb.end() :]}"
    return f"{words[: verb.start()]}you do not hold{words[verb.end() :]}"


def need(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """What an action needs, to stand behind "needs": ``drawer 1 to be closed``."""
    words = statement(predicate, bindings, facts)
    if _VERB.search(words) is None:
        return f"it to be so that {words}"
    if words.startswith("it is not so that"):
        return _needed(words)
    return "".join(map(_needed, _JOINT.split(words)))


def _needed(clause: str) -> str:
    """``X is closed`` -> ``X to be closed``; words without a verb stay as they are."""
    verb = _VERB.search(clause)
    if verb is None:
        return clause
    before, after = clause[: verb.start()], clause[verb.end() :]
    if verb[1]:
        return f"{before}{'not ' if verb['no'] else ''}to be{after}"
    return f"{before}you {'not ' if verb['do'] else ''}to hold{after}"


def contrary(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, str]
) -> str:
    """What is so instead, where a need is known to be unmet; empty where that adds nothing.

    Everything said here is in the belief: where the agent is, what it holds, doors, last sightings.
    Of what a world words itself our words would be strange to it: a lock that a service "holds".
    """
    if predicate.name in values.WORDS:
        scope = values.Scope(belief, facts.tools, bindings)
        parts = (values.what_is(term, scope) for term in predicate.arguments)
        return " and ".join(dict.fromkeys(filter(None, parts)))
    own = {predicate.name, f"not {predicate.name}"} & facts.wording.phrases.keys()
    if own and predicate.name in ("at", "holding", "hand_empty"):
        return ""
    names = [str(bindings.get(name, name)) for name in predicate.arguments]
    key = f"{'' if predicate.positive else 'not '}{predicate.name}"
    here, holding = belief["location"], ", ".join(belief["holding"])
    hand = f"you hold {holding}" if holding else "you hold nothing"
    known = find_name(names[0], belief["containers"]) if names else None
    door = belief["containers"].get(known or "", "")
    if key in ("at", "here") and here is None:
        return "you are at none of the places yet"
    if key == "at":
        return f"you are at {here}"
    if key == "not at":
        return f"you are at {names[0]} already"
    if key in ("holding", "hand_empty"):
        return hand
    if key in ("open", "closed", "accessible", "unclosed"):
        return f"{names[0]} is {door}" if door else f"{names[0]} has no door"
    if key == "here":
        seen = belief["last_seen"].get(names[0])
        return f"{names[0]} was last seen at {seen}" if seen else hand
    if key == "in":
        if names[0] in belief["holding"]:
            return f"you hold {names[0]}"
        seen = belief["last_seen"].get(names[0])
        if seen and facts.unmoved:
            return statement(Predicate(True, "in", (names[0], seen)), {}, facts)
        if seen:
            return f"{names[0]} was last seen at {seen}"
        return f"it was not there when {names[1]} was searched"
    if key == "can_contain":
        place, thing = (with_article(kind_of(name)) for name in names)
        return f"{place} does not take {thing}"
    if key == "adjacent" and here is not None:
        if names[0] in facts.connected.get(here, ()):
            return f"the way from {here} to {names[0]} is closed"
        return f"no way leads from {here} to {names[0]}"
    if key in ("activated", "not activated"):
        return f"{names[0]} is {'off' if predicate.positive else 'on'}"
    if key == "visible":
        closed = (place for place in around(belief, bare_name(names[0]))
                  if belief["containers"].get(place) == "closed")  # fmt: skip
        return next((f"it is in {place}, which is closed" for place in closed), "")
    if key in ("state", "seen", "not state", "not seen"):
        instead = _fact_instead(belief, facts, names[0], names[1])
        return instead or (UNSHOWN if key == "seen" else "")
    if key in facts.predicates:
        return _choices_instead(belief, facts, facts.predicates[key], names)
    return ""


def _choices_instead(
    belief: Belief, facts: StaticFacts, choices: Sequence[Sequence[str]], names: Sequence[str]
) -> str:
    """What is so in the place of each choice of a world's own predicate, if it asks for evidence.

    Of others, what the agent holds and where it is would be told once for each choice.
    """
    bindings, parts = dict(zip((ARGUMENT,), names, strict=False)), list[str]()
    for choice in choices:
        predicates = [parse_predicate(text) for text in choice]
        if any(predicate.name != "seen" for predicate in predicates):
            return ""
        lacking = (p for p in predicates if evaluate(p, belief, facts, bindings) is False)
        parts += [contrary(p, belief, facts, bindings) for p in [*lacking][:1]]
    if UNSHOWN in parts:
        return UNSHOWN
    return " and ".join(dict.fromkeys(parts)) if all(parts) else ""


def _fact_instead(belief: Belief, facts: StaticFacts, thing: str, state: str) -> str:
    """What is on record of a thing in the place of a state: what excludes it, or the state."""
    record = belief["flags"].get(thing, "")
    known = record.split(", ") if record else []
    rivals = {fact for family in facts.alternatives if state in family for fact in family}
    told = [fact for fact in known if fact == state or fact in rivals or not facts.alternatives]
    found = (Predicate(True, "state", (thing, fact)) for fact in told)
    return " and ".join(statement(fact, {}, facts) for fact in found)
