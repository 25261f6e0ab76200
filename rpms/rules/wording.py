"""Words conditions and terms: as statements, as needs, and as what holds instead of an unmet need.

Prompts, vetoes and refusals print these texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from itertools import chain

from rpms.rules.predicates import (
    CONDITIONS,
    Condition,
    Predicate,
    StaticFacts,
    choices_of,
    evaluate,
    inner_bindings,
    parse_predicate,
    reads_values,
    scope_of,
)
from rpms.rules.scalars import ABSENT, INVALID, NO_ENTRY, UNKNOWN, Special, as_word
from rpms.rules.terms import CONTEXT, ITEM, NOW, Term, parse_term
from rpms.rules.things import UNSHOWN
from rpms.rules.values import FUNCTIONS, WINDOW, Scope, is_function, items_of, value_of
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.output import with_article

LONGEST = 60
"""The most characters of a value that a refusal prints."""
MOST_ITEMS = 3
"""A refusal states the values of this many items of a list."""
_VERB = re.compile(r"\b(is|are)\b(?P<no> not)?|\byou (?P<do>do not )?hold\b")
_UNWORDED = Condition("", 0, lambda *_: None)
# Separates the clauses of a compound statement: each clause has its own verb.
_JOINT = re.compile(r"(; |, | or | and )")


def statement(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """A predicate as a statement, with the names filled in: ``X is closed``."""
    if reads_values(predicate.name):
        words = _compared(predicate, bindings, facts)
        return words if predicate.positive else _denied(words)
    names = [_name(argument, bindings, facts) for argument in predicate.arguments]
    if predicate.name in ("state", "seen"):  # the world's own sentence about a state
        key = f"{'' if predicate.positive else 'not '}{names[1]}"
        if sentence := facts.wording.facts.get(key):
            return sentence.format(*names)
    declared, phrases = CONDITIONS.get(predicate.name, _UNWORDED), facts.wording.phrases
    denied = phrases.get(f"not {predicate.name}", declared.denied)
    if not predicate.positive and denied:
        return denied.format(*names)
    adjective = predicate.name.replace("_", " ")
    plain = f"{{0}} is {adjective}" if names else f"this is {adjective}"
    if predicate.name == "kind":
        names = [names[0], with_article(names[1])]
    words = phrases.get(predicate.name, declared.statement or plain).format(*names)
    return words if predicate.positive else _denied(words)


def _compared(predicate: Predicate, bindings: Mapping[str, str], facts: StaticFacts) -> str:
    """Word a comparison by its terms, not their values: ``<usd> is at most the total of O1``."""
    scope = scope_of(empty_belief(), facts, bindings)
    condition = CONDITIONS[predicate.name]
    if condition.quantifies:
        listed, *conditions = predicate.arguments
        inner = {**bindings, ITEM: ITEM}
        parts = (statement(parse_predicate(text), inner, facts) for text in conditions)
        return condition.statement.format(spoken(listed, scope), " and ".join(parts))
    first, *others = (spoken(term, scope) for term in predicate.arguments)
    more = [", ".join(others)] if predicate.name == "one_of" else others
    return condition.statement.format(first, *more)


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

    All of it comes from the belief. Each condition over things declares what holds instead of it;
    of the others, the values of their terms or of their parts are stated.
    """
    clauses = _instead(predicate, belief, facts, bindings)
    return " and ".join(dict.fromkeys(filter(None, clauses)))


def _instead(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, str]
) -> list[str]:
    """What holds instead, a clause for each fact."""
    if reads_values(predicate.name):
        if CONDITIONS[predicate.name].quantifies:
            return _items_instead(predicate, belief, facts, bindings)
        scope = scope_of(belief, facts, bindings)
        if bare := _of_a_list(predicate, scope):
            return [bare]
        return [value_clause(term, scope) for term in predicate.arguments]
    if predicate.name in facts.predicates:
        return _choices_instead(predicate, belief, facts, bindings)
    names = tuple(str(bindings.get(name, name)) for name in predicate.arguments)
    instead = CONDITIONS.get(predicate.name, _UNWORDED).instead
    words = instead(predicate._replace(arguments=names), belief, facts) if instead else ""
    return [words] if isinstance(words, str) else [statement(fact, {}, facts) for fact in words]


def _of_a_list(predicate: Predicate, scope: Scope) -> str:
    """Why a bare condition on a list is not met, and what to write; empty for any other."""
    declared = CONDITIONS.get(predicate.name, _UNWORDED)
    if declared.whole or declared.quantifies:
        return ""
    values = predicate.arguments[:1] if predicate.name == "one_of" else predicate.arguments
    for number, text in enumerate(values):
        term = parse_term(text)
        for length in range(len(term.path) + 1):
            parts = term._replace(path=term.path[:length])
            if isinstance(value_of(parts, scope), list | tuple):
                whole, right_form = of_items(predicate, number, length)
                return f"{whole} is a list, and the rule must say of which items: {right_form}"
    return ""


def of_items(predicate: Predicate, number: int, length: int) -> tuple[str, str]:
    """The list in an argument, up to so many of its fields, and the condition of its items."""
    text, path = predicate.arguments[number], parse_term(predicate.arguments[number]).path[length:]
    whole = text[: len(text) - sum(len(field) + 1 for field in path)]
    arguments = list(predicate.arguments)
    arguments[number] = ".".join((ITEM, *path))
    inner = predicate._replace(positive=True, arguments=tuple(arguments))
    quantity = "all" if predicate.positive else "none"
    return whole, f"{quantity}({whole}, {inner})"


def _choices_instead(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, str]
) -> list[str]:
    """State what holds instead of each choice of a composed predicate, if all ask for evidence.

    For other predicates the hand and the location would be repeated for each choice.
    """
    inner = inner_bindings(predicate, belief, facts, bindings)
    if isinstance(inner, Special):
        scope = scope_of(belief, facts, bindings)
        return [_of_a_list(predicate, scope) or value_clause(predicate.arguments[0], scope)]
    choices = choices_of(predicate, facts)
    if any(p.name != "seen" and not reads_values(p.name) and p.name not in facts.predicates
           for choice in choices for p in choice):  # fmt: skip
        return []
    parts: list[list[str]] = []
    for choice in choices:
        truths = {part: evaluate(part, belief, facts, inner) for part in choice}
        if predicate.positive:
            unmet = [part for part, truth in truths.items() if not truth]
            unmet.sort(key=lambda part: truths[part] is None)  # a contradiction before a gap
            parts += [_instead(part, belief, facts, inner) for part in unmet[:1]]
        elif False not in truths.values():
            parts += [_instead(part, belief, facts, inner) for part in choice]
    if [UNSHOWN] in parts:
        return [UNSHOWN]
    return [*chain(*parts)] if all(map(any, parts)) else []


def _items_instead(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, str]
) -> list[str]:
    """State the values of each item that a condition looks at."""
    listed, *conditions = predicate.arguments
    scope = scope_of(belief, facts, bindings)
    items = items_of(parse_term(listed), scope)
    if isinstance(items, Special) or not items:
        return [value_clause(listed, scope)]
    parts: list[str] = []
    for item in items[:MOST_ITEMS]:
        inner = scope.of_item(item).bindings
        for condition in map(parse_predicate, conditions):
            if evaluate(condition, belief, facts, inner) is not (predicate.name != "none"):
                parts += _instead(condition, belief, facts, inner)
                break
    return parts


def spoken(text: str, scope: Scope) -> str:
    """A term in words: ``the total of O1``, ``the number of earlier refund calls``."""
    return _spoken(parse_term(text), scope)


def _spoken(term: Term, scope: Scope, bare: bool = False) -> str:
    if is_function(term):
        return _of_fields(term, _spoken_function(term, scope))
    if term.head in scope.tools.arguments and term.head not in scope.bindings:
        same = " and ".join(inner.label or inner.head for inner in term.inner)
        calls = f"earlier {term.head} calls{f' with this {same}' if same else ''}"
        return f"the {' '.join(term.path)} of {calls}" if term.path else calls
    if term.head not in scope.bindings:
        defined = term.head in scope.tools.definitions
        return _of_fields(term, f"the {term.head.replace('_', ' ')}" if defined else term.head)
    value = scope.bindings[term.head]
    if term.head == CONTEXT:
        return _of_fields(term, "the runtime context")
    if not term.path:  # in a prompt, without values, it is a blank
        blank = not bare and isinstance(value, str) and value == f"<{term.head}>"
        return f"<{term.head}>" if blank else term.head
    return _of_fields(term, _owner(value, term))


def _owner(value: object, term: Term) -> str:
    """The name of what a field belongs to; an object is called by its first text."""
    if isinstance(value, Mapping):
        others = (text for field, text in value.items() if field not in term.path)
        return next((t for t in others if isinstance(t, str) and t.strip()), term.head)
    return str(value) if isinstance(value, str | int) else term.head


def _spoken_function(term: Term, scope: Scope) -> str:
    parts = [_spoken(each, scope, bare=True) for each in term.inner if each.label != WINDOW]
    for window in (each for each in term.inner if each.label == WINDOW):
        parts[-1] += f" of the last {window.text} hours"
    if term.head == "entry" and len(parts) == 2:
        return f"the entry {_short(term.inner[1], scope) or parts[1]} of {parts[0]}"
    if term.head == "record":
        return ", ".join(
            _short(i, scope) or words for i, words in zip(term.inner, parts, strict=True)
        )
    if term.head == "matching":
        return f"those of {parts[0]} with {' and '.join(i.text for i in term.inner[1:])}"
    if term.head == "collect":
        inner = _spoken(term.inner[1], scope.of_item(ITEM), bare=True)
        return f"{inner} for each {ITEM} of {parts[0]}"
    return FUNCTIONS[term.head].phrase.format(" and ".join(parts))


def _short(term: Term, scope: Scope) -> str:
    """The value of a term that is a name; empty if it is none."""
    value = value_of(term, scope)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _of_fields(term: Term, owner: str) -> str:
    return f"the {' '.join(term.path)} of {owner}" if term.path else owner


def value_clause(text: str, scope: Scope) -> str:
    """A term's value as a clause; empty for a literal."""
    term = parse_term(text)
    names = {*scope.bindings, *scope.tools.arguments, *scope.tools.definitions}
    fixed = not (term.path or term.inner or term.head in names)
    if fixed and term.head != NOW:
        return ""
    value, words = value_of(term, scope), spoken(text, scope).replace("<", "").replace(">", "")
    if value is UNKNOWN:
        return f"no answer has shown {words} yet"
    if value is ABSENT:
        return f"{words} was not given"
    if value is INVALID:
        return f"{words} cannot be read"
    if value is NO_ENTRY:
        return f"there is not {words}"
    if isinstance(value, Mapping):
        return f"{words} has {', '.join(map(str, value))[:LONGEST]}"
    value = as_word(value) if value is None or isinstance(value, bool) else value
    shown = value if isinstance(value, Decimal | str | int | float | datetime) else repr(value)
    shown = repr(shown) if isinstance(shown, str) and not shown.strip().isprintable() else shown
    return f"{words} is {str(shown)[:LONGEST] or 'empty'}"
