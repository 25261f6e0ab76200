"""What does this condition mean? This page answers it, in this order.

1. ``parse_predicate`` reads it: a name, its arguments, and whether it is negated.
2. ``CONDITIONS`` has the declaration of its name. ``things`` declares the conditions over a belief,
   ``comparisons`` those over values and ``conditions`` those of a procedure; a world adds its own
   as data: affordances, composed predicates, terms.
3. ``evaluate`` says whether it holds: of values by their terms, of a composed predicate by its
   choices, of a thing by its affordances or by the belief.
4. If the belief does not decide, it is ``None``. Arbitration treats that as a possible conflict
   (soft), never as a violation (hard). ``is_evidence`` says which conditions count as false until
   an answer shows them, and ``is_undecided`` whether an answer still may.

The functions know no particular world. ``wording`` puts conditions into words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from rpms.rules.scalars import INVALID, UNKNOWN, Special, as_number
from rpms.rules.terms import parse_term, split_arguments
from rpms.rules.values import EXACT, Scope, Texts, Tools, conjunction_of, value_of
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import Truth, is_a
from rpms.vocabulary.spelling import Strict

# The name of the argument in the choices of a composed predicate.
ARGUMENT = "thing"


class Predicate(NamedTuple):
    """A parsed predicate: ``not at(place)`` -> (False, "at", ("place",))."""

    positive: bool
    name: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        """The form in the YAML."""
        arguments = f"({', '.join(self.arguments)})" if self.arguments else ""
        return f"{'' if self.positive else 'not '}{self.name}{arguments}"

    def bind(self, names: Mapping[str, str]) -> Predicate:
        """Replace parameters by the names that they stand for."""
        return self._replace(arguments=tuple(names.get(a, a) for a in self.arguments))


class Wording(Strict, BaseModel):
    """A world's names and phrases that the predicates need.

    ``anything`` lists words that may stand for anything. ``truncated`` lists things that may be
    carried from the start although no text mentions them. ``also_called`` has other names that the
    environment accepts for a kind of thing. ``passages`` open and close but hold nothing;
    ``passages_to`` are the names of the passage to a place (``{0}``). ``phrases`` has the world's
    own statements for predicates, each with "is" or "are" ("{0} is next door"), from which the need
    ("{0} to be next door") is made. ``facts`` has such a statement for each state that is no
    adjective: ``sim missing`` -> ``the SIM card is missing``, with ``{0}`` for the thing; the key
    of its negation begins with "not".
    """

    anything: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    also_called: dict[str, list[str]] = {}
    passages: frozenset[str] = frozenset()
    passages_to: list[str] = []
    phrases: dict[str, str] = {}
    facts: dict[str, str] = {}


class StaticFacts(NamedTuple):
    """Static knowledge of a world that predicates use besides the belief."""

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
    """Return whether a text has the form of a predicate; people may also write plain words."""
    return _FORM.match(text.strip()) is not None


def unify(effect: Predicate, fact: Predicate, parameters: Collection[str]) -> dict[str, str] | None:
    """The parameter values under which an action's effect is the fact; None if there are none.

    Plans are regressed by this step: from a need to an action that achieves it.
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


Reads = Literal["things", "values", "decision"]


class Condition(NamedTuple):
    """A condition.

    Attributes:
        name: its name in the YAML.
        arity: the number of arguments; None for two or more.
        evaluate: over things: belief, static facts and the names; over values: the terms and their
            scope; of a procedure: the decision point and the names.
        statement: how it reads, with "is" or "are" and blanks for the arguments.
        denied: how its negation reads, where "not" is not enough.
        instead: what holds instead of an unmet need, as words or as predicates.
        reads: what it is evaluated over.
        effect: it is an effect only: of fields of records, or of a thing as a whole.
        takes: the type of each argument; the last one is also that of all that follow.
        whole: it is about a list as a whole; any other condition is about single values.
        quantifies: its first argument is a list, and conditions on each ``item`` follow.
        about_condition: its last argument is the name of another condition.
    """

    name: str
    arity: int | None
    evaluate: Callable[..., Any]
    statement: str = ""
    denied: str = ""
    instead: Callable[..., Any] | None = None
    reads: Reads = "things"
    effect: Literal["", "field", "thing"] = ""
    takes: tuple[str, ...] = ("value",)
    whole: bool = False
    quantifies: bool = False
    about_condition: bool = False


CONDITIONS: dict[str, Condition] = {}


def declare(*conditions: Condition) -> None:
    """Add conditions to the vocabulary."""
    for condition in conditions:
        assert condition.name not in CONDITIONS, condition.name
        CONDITIONS[condition.name] = condition


def reading(*kinds: Reads) -> Iterator[Condition]:
    """The conditions that read one of these."""
    return (each for each in CONDITIONS.values() if each.reads in kinds)


def reads_values(name: str) -> bool:
    return name in CONDITIONS and CONDITIONS[name].reads == "values"


def is_effect(name: str, *kinds: str) -> bool:
    return name in CONDITIONS and CONDITIONS[name].effect in (kinds or ("field", "thing"))


# Conditions that only `situations` may use, with their arity; the manual supplies their truth.
SITUATIONAL = {"last_failed": 0}


def evaluate(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> Truth:
    """Evaluate a predicate; an argument that is no parameter stands for itself.

    A value that names nothing, such as a missing argument, and a list, of which it does not say
    which items count, meet no need, not even a negated one.
    """
    if not (reads_values(predicate.name) or predicate.name in facts.predicates):
        truth = _of_things(predicate, belief, facts, bindings)
        return False if truth is INVALID else truth  # type: ignore[return-value]
    texts = Texts()
    truth = _evaluate(predicate, belief, facts, bindings, texts)
    if truth is True and texts.matter:  # of two readings the one counts that allows less
        truth = _evaluate(predicate, belief, facts, bindings, Texts(loose=True))
    return False if truth is INVALID else truth  # type: ignore[return-value]


def may_hold(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Return whether nothing rules it out; a value of the wrong type rules out nothing."""
    texts = Texts()
    truth = _evaluate(predicate, belief, facts, bindings, texts)
    if truth is False and texts.matter:
        truth = _evaluate(predicate, belief, facts, bindings, Texts(loose=True))
    return truth is not False


def scope_of(
    belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any], texts: Texts = EXACT
) -> Scope:
    """The scope of the terms in a condition."""

    def holds(text: str, bindings: Mapping[str, Any]) -> Truth | Special:
        return _evaluate(parse_predicate(text), belief, facts, bindings, texts)

    return Scope(belief, facts.tools, bindings, holds, texts)


def _evaluate(
    predicate: Predicate,
    belief: Belief,
    facts: StaticFacts,
    bindings: Mapping[str, Any],
    texts: Texts = EXACT,
) -> Truth | Special:
    if reads_values(predicate.name):
        scope = scope_of(belief, facts, bindings, texts)
        truth = CONDITIONS[predicate.name].evaluate(predicate.arguments, scope)
        return truth if predicate.positive or not isinstance(truth, bool) else not truth
    if predicate.name in facts.predicates:
        return _composed(predicate, belief, facts, bindings, texts)
    return _of_things(predicate, belief, facts, bindings)


def _of_things(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> Truth | Special:
    arguments = [bindings.get(name, name) for name in predicate.arguments]
    if all(isinstance(argument, str) for argument in arguments):
        return _of_names(predicate, belief, facts, arguments)
    names = [argument_names(argument) for argument in arguments]
    if any(isinstance(argument, list | tuple) for argument in arguments) or not all(names):
        return INVALID
    return _of_names(predicate, belief, facts, [name for each in names for name in each])


def is_undecided(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Return whether nothing known decides the predicate, so that an answer may still show it."""
    if predicate.name == "seen":
        state = predicate._replace(name="state")
        return predicate.positive and evaluate(state, belief, facts, bindings) is None
    if predicate.name in facts.predicates:
        inner = inner_bindings(predicate, belief, facts, bindings)
        if isinstance(inner, Special):
            return inner is UNKNOWN
        if not predicate.positive:
            return evaluate(predicate, belief, facts, bindings) is None
        return _may_be_shown(predicate, belief, facts, inner)
    return evaluate(predicate, belief, facts, bindings) is None


def _may_be_shown(
    predicate: Predicate, belief: Belief, facts: StaticFacts, inner: Mapping[str, Any]
) -> bool:
    """Return whether one choice of a composed predicate holds, or answers may complete it."""
    return any(
        all(
            evaluate(part, belief, facts, inner) or is_undecided(part, belief, facts, inner)
            for part in choice
        )
        for choice in choices_of(predicate, facts)
    )


def argument_names(value: Any) -> list[str]:
    """The names in an argument's value; none if the value cannot be a name."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float):
        return [str(value)] if as_number(value) is not None else []
    if isinstance(value, list | tuple):
        names = [argument_names(item) for item in value]
        return [name for each in names for name in each] if all(names) else []
    return []


def affords(facts: StaticFacts, name: str, thing: str) -> Truth:
    """Return whether a thing is of a kind with this property; undecided like containment."""
    truth = is_a(thing, facts.affordances[name])
    if truth is False and name in facts.ruled_out:
        return None if is_a(thing, facts.ruled_out[name]) is False else False
    return truth


def _of_names(
    predicate: Predicate, belief: Belief, facts: StaticFacts, names: Sequence[str]
) -> Truth:
    if predicate.name in facts.affordances:
        truth = affords(facts, predicate.name, names[0])
    else:
        truth = CONDITIONS[predicate.name].evaluate(belief, facts, *names)
    return truth if truth is None or predicate.positive else not truth


def is_evidence(predicate: Predicate, facts: StaticFacts) -> bool:
    """Return whether only an answer can show the predicate; without one it counts as false."""
    if predicate.name == "seen" or reads_values(predicate.name):
        return True
    choices = facts.predicates.get(predicate.name, ())
    parts = [parse_predicate(text) for choice in choices for text in choice]
    return bool(parts) and all(is_evidence(part, facts) for part in parts)


def choices_of(predicate: Predicate, facts: StaticFacts) -> list[list[Predicate]]:
    """The choices of a composed predicate; it holds if all parts of one of them do."""
    choices = facts.predicates[predicate.name]
    return [[parse_predicate(text) for text in choice] for choice in choices]


def inner_bindings(
    predicate: Predicate,
    belief: Belief,
    facts: StaticFacts,
    bindings: Mapping[str, Any],
    texts: Texts = EXACT,
) -> Mapping[str, Any] | Special:
    """What the choices of a composed predicate are evaluated with.

    They see the arguments of the call, and the thing under its own name.
    """
    if not predicate.arguments:
        return bindings
    value = value_of(parse_term(predicate.arguments[0]), scope_of(belief, facts, bindings, texts))
    if isinstance(value, Special):
        return value
    if isinstance(value, Mapping):
        return {**bindings, ARGUMENT: value}
    names = [] if isinstance(value, list | tuple) else argument_names(value)
    return {**bindings, ARGUMENT: names[0]} if names else INVALID


def _composed(
    predicate: Predicate,
    belief: Belief,
    facts: StaticFacts,
    bindings: Mapping[str, Any],
    texts: Texts,
) -> Truth | Special:
    """True if one choice holds; undecided if undecided parts could complete one.

    An invalid part makes its choice invalid, so that its negation is not met either.
    """
    inner = inner_bindings(predicate, belief, facts, bindings, texts)
    if isinstance(inner, Special):
        return None if inner is UNKNOWN else INVALID
    found = [
        conjunction_of([_evaluate(part, belief, facts, inner, texts) for part in choice])
        for choice in choices_of(predicate, facts)
    ]
    order: tuple[Truth | Special, ...] = (True, INVALID, None)
    truth = next((each for each in order if each in found), False)
    return truth if predicate.positive or not isinstance(truth, bool) else not truth
