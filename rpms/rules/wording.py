"""Words predicates: as statements, as needs, and as what holds instead of an unmet need.

Prompts, vetoes and refusals print these texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rpms.rules.comparisons import WORDS
from rpms.rules.predicates import (
    Predicate,
    StaticFacts,
    choices_of,
    evaluate,
    parse_predicate,
    places_around,
    scope_of,
    things_of,
)
from rpms.rules.scalars import Special
from rpms.rules.term_wording import spoken, value_clause
from rpms.rules.terms import ITEM, parse_term
from rpms.rules.values import items_of
from rpms.vocabulary.belief import Belief, empty_belief, kind_of
from rpms.vocabulary.naming import bare_name, find_name
from rpms.vocabulary.output import with_article

# Each predicate as a statement about the present state; a negated form where "not" is not enough. A
# world may add its own. A need is derived from the same statement (``need``), so that no need is
# printed in the form of a fact.
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
    "begins": "{0} is {1} from now on",
    "looked_around": "you are informed about what is here",
    "here_closed": "the place where you are is closed",
}
UNSHOWN = "no answer has shown that yet"
"""Printed for an unmet need of evidence when nothing is known."""
MOST_ITEMS = 3
"""A refusal states the values of this many items of a list."""
_VERB = re.compile(r"\b(is|are)\b(?P<no> not)?|\byou (?P<do>do not )?hold\b")
# Separates the clauses of a compound statement: each clause has its own verb.
_JOINT = re.compile(r"(; |, | or | and )")


def statement(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """A predicate as a statement, with the names filled in: ``X is closed``."""
    if predicate.name in WORDS:
        words = _compared(predicate, bindings, facts)
        return words if predicate.positive else _denied(words)
    names = [_name(argument, bindings, facts) for argument in predicate.arguments]
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
    """Word a comparison by its terms, not their values: ``<usd> is at most the total of O1``."""
    scope = scope_of(empty_belief(), facts, bindings)
    if predicate.name == "any":
        listed, *conditions = predicate.arguments
        inner = {**bindings, ITEM: ITEM}
        parts = (statement(parse_predicate(text), inner, facts) for text in conditions)
        return WORDS["any"].format(spoken(listed, scope), " and ".join(parts))
    first, *others = (spoken(term, scope) for term in predicate.arguments)
    more = [", ".join(others)] if predicate.name == "one_of" else others
    return WORDS[predicate.name].format(first, *more)


def _name(argument: str, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """The name that an argument stands for; a term with fields or functions in words."""
    if argument in bindings:
        value = bindings[argument]
        return value if isinstance(value, str) else argument
    if "(" in argument or parse_term(argument).path:
        return spoken(argument, scope_of(empty_belief(), facts, bindings))
    return argument


def _denied(words: str) -> str:
    """Negate a statement; a compound one is negated as a whole."""
    verb = _VERB.search(words)
    if verb is None or verb["no"] or verb["do"] or _JOINT.search(words, verb.end()):
        return f"it is not so that {words}"
    if verb[1]:
        return f"{words[: verb.end()]} not{words[verb.end() :]}"
    return f"{words[: verb.start()]}you do not hold{words[verb.end() :]}"


def need(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """Word a need, to follow "needs": ``drawer 1 to be closed``."""
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
    """State what holds instead of an unmet need; empty if that adds nothing.

    All of it comes from the belief: the location, the hand, doors, last sightings. A predicate that
    the world words itself gets no sentence of ours, which might not fit: "you hold a lock".
    """
    if predicate.name in WORDS:
        if predicate.name == "any":
            return _items_instead(predicate, belief, facts, bindings)
        scope = scope_of(belief, facts, bindings)
        parts = (value_clause(term, scope) for term in predicate.arguments)
        return " and ".join(dict.fromkeys(filter(None, parts)))
    if predicate.name in facts.predicates:
        return _choices_instead(predicate, belief, facts, bindings)
    custom = {predicate.name, f"not {predicate.name}"} & facts.wording.phrases.keys()
    if custom and predicate.name in ("at", "holding", "hand_empty"):
        return ""
    names = [str(bindings.get(name, name)) for name in predicate.arguments]
    key = f"{'' if predicate.positive else 'not '}{predicate.name}"
    location, holding = belief["location"], ", ".join(belief["holding"])
    hand = f"you hold {holding}" if holding else "you hold nothing"
    container = find_name(names[0], belief["containers"]) if names else None
    door = belief["containers"].get(container or "", "")
    if key in ("at", "here") and location is None:
        return "you are at none of the places yet"
    if key == "at":
        return f"you are at {location}"
    if key == "not at":
        return f"you are at {names[0]} already"
    if key in ("holding", "hand_empty"):
        return hand
    if key in ("open", "closed", "accessible", "unclosed"):
        return f"{names[0]} is {door}" if door else f"{names[0]} has no door"
    if key == "here":
        last_place = belief["last_seen"].get(names[0])
        return f"{names[0]} was last seen at {last_place}" if last_place else hand
    if key == "in":
        if names[0] in belief["holding"]:
            return f"you hold {names[0]}"
        last_place = belief["last_seen"].get(names[0])
        if last_place and facts.unmoved:
            return statement(Predicate(True, "in", (names[0], last_place)), {}, facts)
        if last_place:
            return f"{names[0]} was last seen at {last_place}"
        return f"it was not there when {names[1]} was searched"
    if key == "can_contain":
        place, thing = (with_article(kind_of(name)) for name in names)
        return f"{place} does not take {thing}"
    if key == "adjacent" and location is not None:
        if names[0] in facts.connected.get(location, ()):
            return f"the way from {location} to {names[0]} is closed"
        return f"no way leads from {location} to {names[0]}"
    if key in ("activated", "not activated"):
        return f"{names[0]} is {'off' if predicate.positive else 'on'}"
    if key == "visible":
        closed = (place for place in places_around(belief, bare_name(names[0]))
                  if belief["containers"].get(place) == "closed")  # fmt: skip
        return next((f"it is in {place}, which is closed" for place in closed), "")
    if key in ("state", "seen", "not state", "not seen"):
        instead = _fact_instead(belief, facts, names[0], names[1])
        return instead or (UNSHOWN if key == "seen" else "")
    return ""


def _choices_instead(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, str]
) -> str:
    """State what holds instead of each choice of a composed predicate, if all ask for evidence.

    For other predicates the hand and the location would be repeated for each choice. Of a list, the
    first item that the predicate does not hold of is stated.
    """
    things = things_of(predicate, belief, facts, bindings)
    if isinstance(things, Special):
        return value_clause(predicate.arguments[0], scope_of(belief, facts, bindings))
    choices, one = choices_of(predicate, facts), predicate._replace(arguments=())
    if any(p.name != "seen" and p.name not in {*WORDS, *facts.predicates}
           for choice in choices for p in choice):  # fmt: skip
        return ""
    inner = next((thing for thing in things if evaluate(one, belief, facts, thing) is not True), {})
    parts: list[str] = []
    for choice in choices:
        truths = {part: evaluate(part, belief, facts, inner) for part in choice}
        if predicate.positive:
            unmet = [part for part, truth in truths.items() if not truth]
            unmet.sort(key=lambda part: truths[part] is None)  # a contradiction before a gap
            parts += [contrary(part, belief, facts, inner) for part in unmet[:1]]
        elif False not in truths.values():
            parts += [contrary(part, belief, facts, inner) for part in choice]
    if UNSHOWN in parts:
        return UNSHOWN
    return _joined(parts) if all(parts) else ""


# A clause about a value that no answer has shown; others may have an "and" of their own.
_AROUND_UNSHOWN = re.compile(r" and (?=no answer has shown )|(?<= yet) and ")


def _joined(parts: Iterable[str]) -> str:
    """Join clauses, each missing value once."""
    clauses = (clause for part in parts for clause in _AROUND_UNSHOWN.split(part))
    return " and ".join(dict.fromkeys(filter(None, clauses)))


def _items_instead(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, str]
) -> str:
    """State the values of each item that a condition looks at."""
    listed, *conditions = predicate.arguments
    scope = scope_of(belief, facts, bindings)
    items = items_of(parse_term(listed), scope)
    if isinstance(items, Special) or not items:
        return value_clause(listed, scope)
    parts: list[str] = []
    for item in items[:MOST_ITEMS]:
        inner = scope.of_item(item).bindings
        for condition in map(parse_predicate, conditions):
            if evaluate(condition, belief, facts, inner) is not True:
                parts.append(contrary(condition, belief, facts, inner))
                break
    return _joined(parts)


def _fact_instead(belief: Belief, facts: StaticFacts, thing: str, state: str) -> str:
    """Word the facts on record that exclude a state of a thing, or the state itself."""
    record = belief["flags"].get(thing, "")
    recorded = record.split(", ") if record else []
    rivals = {fact for family in facts.alternatives if state in family for fact in family}
    relevant = [
        fact for fact in recorded if fact == state or fact in rivals or not facts.alternatives
    ]
    predicates = (Predicate(True, "state", (thing, fact)) for fact in relevant)
    return " and ".join(statement(fact, {}, facts) for fact in predicates)


def fact_sentence(predicate: Predicate, names: Sequence[str], facts: StaticFacts) -> str:
    """The world's own sentence about a state; empty if it has none."""
    if predicate.name not in ("state", "seen"):
        return ""
    sentence = facts.wording.facts.get(f"{'' if predicate.positive else 'not '}{names[1]}", "")
    return sentence.format(*names)
