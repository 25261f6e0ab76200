"""Terms: what a condition on a tool call compares, as text and parsed.

- ``usd``: an argument of the call, by its name in the rule;
- ``order.total``: a field of the record of the thing that ``order`` names. Fields of lists give
  lists: ``order.items.price``;
- ``refund``, ``refund.usd``, ``refund(order).usd``, ``refund(order=thing).usd``: earlier calls of a
  tool that were carried out, an argument of each, and only those with this ``order``;
- a function of other terms, such as ``total(...)`` or ``record(order.customer_id).name``;
- a table of the manual; ``now``; a number, a date or a word stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

NOW, ITEM, ANSWER, CONTEXT = "now", "item", "answer", "context"
"""The time; the item that a condition within a term is about; in an effect, the tool's answer; the
runtime context of the agent, such as who is logged in."""
_NAME = re.compile(r"[^\W\d]\w*")
_CALL = re.compile(r"(\w+)\((.*)\)((?:\.\w+)*)", re.DOTALL)
_LABEL = re.compile(r"([^\W\d]\w*)\s*=\s*(.+)", re.DOTALL)


class Term(NamedTuple):
    """A parsed term: ``refund(order).usd`` -> ("refund", (order,), ("usd",)).

    ``label`` is the name of an argument that is written with one: ``entry(items, id=item_id)``.
    """

    head: str
    inner: tuple[Term, ...] = ()
    path: tuple[str, ...] = ()
    label: str = ""
    text: str = ""


@lru_cache(maxsize=4096)
def parse_term(text: str) -> Term:
    """Read a term; raises ValueError where parentheses do not match."""
    text = text.strip()
    if "(" not in text:
        head, *path = text.split(".")
        if path and _NAME.fullmatch(head) and all(map(_NAME.fullmatch, path)):
            return Term(head, (), tuple(path), text=text)
        return Term(text, text=text)
    if text.startswith("not "):  # a condition within a term
        return Term("not", (parse_term(text[4:]),), text=text)
    form = _CALL.fullmatch(text)
    if not form:
        raise ValueError(f"'{text}' is not a term such as 'order.total' or 'count(items)'")
    inner = tuple(map(_parse_inner, split_arguments(form[2])))
    return Term(form[1], inner, tuple(filter(None, form[3].split("."))), text=text)


def _parse_inner(text: str) -> Term:
    if label := _LABEL.fullmatch(text):
        return parse_term(label[2])._replace(label=label[1])
    return parse_term(text)


def split_arguments(text: str) -> list[str]:
    """The parts between commas; commas within parentheses do not split."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            raise ValueError(f"a parenthesis too many in '{text}'")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise ValueError(f"a parenthesis is not closed in '{text}'")
    return [part.strip() for part in parts if part.strip()]


def all_terms(term: Term) -> Iterator[Term]:
    """A term and every term within it."""
    yield term
    for inner in term.inner:
        yield from all_terms(inner)
