"""Words for terms and their values, in prompts and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from rpms.rules.scalars import ABSENT, INVALID, NO_ENTRY, UNKNOWN
from rpms.rules.terms import CONTEXT, ITEM, NOW, Term, parse_term
from rpms.rules.values import FUNCTIONS, WINDOW, Scope, is_function, value_of

LONGEST = 60
"""The most characters of a value that a refusal prints."""


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
    shown = value if isinstance(value, Decimal | str | int | float | datetime) else repr(value)
    shown = repr(shown) if isinstance(shown, str) and not shown.strip().isprintable() else shown
    return f"{words} is {str(shown)[:LONGEST] or 'empty'}"
