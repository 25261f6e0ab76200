"""The vocabulary of conditions: each is declared once, with all that is asked of it.

``predicates`` declares those over a belief, ``comparisons`` those over values, and ``conditions``
those of a procedure. A world adds its own as data: affordances, composed predicates, terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

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
