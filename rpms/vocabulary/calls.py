"""A tool call as data: the tool's name and the model's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

LONGEST = 60
"""The longest text of one argument that is printed, in characters."""


class Call(NamedTuple):
    """One call of a tool."""

    tool: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        """The call on one line: ``refund(order_id='O1', usd=5)``."""
        arguments = (f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{_short(self.tool, quoted=False)}({', '.join(arguments)})"


def _short(value: object, quoted: bool = True) -> str:
    text = repr(value) if quoted or not str(value).isprintable() else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
