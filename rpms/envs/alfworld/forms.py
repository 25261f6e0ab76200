"""PDDL as nested lists: the brackets of a text, with the line each of them opened on.

Comments, case and the question mark are treated as fast-downward's reader treats them, because
the names that come out of it are printed in the games.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias


class PddlError(ValueError):
    """A text that is no PDDL, or uses a construct that this engine does not know."""


class Form(list["Node"]):
    """What stands between two brackets; ``line`` is where the first one is."""

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        """An empty form that opened on this line."""
        super().__init__()
        self.line = line

    @property
    def head(self) -> str:
        """The word a form begins with, empty if it begins with none."""
        return self[0] if self and isinstance(self[0], str) else ""

    def words(self, start: int = 0) -> tuple[str, ...]:
        """The elements from ``start`` on, which must all be single words."""
        found = tuple(item for item in self[start:] if isinstance(item, str))
        if len(found) != len(self) - start:
            raise PddlError(
                f"line {self.line}: ({self.head} ...) holds brackets where names belong"
            )
        return found


Node: TypeAlias = str | Form


def read_form(text: str) -> Form:
    """The one form that a PDDL file consists of.

    Raises:
        PddlError: brackets that do not match, or letters that PDDL does not have.
    """
    root = Form(0)
    stack = [root]
    for number, token in _tokens(text):
        if token == "(":
            form = Form(number)
            stack[-1].append(form)
            stack.append(form)
        elif token == ")":
            stack.pop()
            if not stack:
                raise PddlError(f"line {number}: a closing bracket too many")
        else:
            stack[-1].append(token)
    if len(stack) > 1:
        raise PddlError(f"line {stack[-1].line}: a bracket that is never closed")
    if len(root) != 1 or not isinstance(root[0], Form):
        raise PddlError("not one bracketed text")
    return root[0]


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        code = line.split(";", 1)[0]
        if not code.isascii():
            raise PddlError(f"line {number}: a name that is not plain ASCII")
        spaced = code.replace("(", " ( ").replace(")", " ) ").replace("?", " ?")
        for token in spaced.lower().split():
            if not token.isprintable():
                raise PddlError(f"line {number}: a name that is not plain ASCII")
            yield number, token
