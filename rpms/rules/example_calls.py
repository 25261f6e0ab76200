"""The schema of example calls, which say what a rule allows and refuses."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    StringConstraints,
    model_validator,
)

from rpms.rules.predicates import parse_predicate
from rpms.rules.scalars import as_moment
from rpms.rules.terms import parse_term
from rpms.vocabulary.spelling import Strict

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Condition = Annotated[str, AfterValidator(lambda text: parse_predicate(text) and text)]
"""A predicate, as text."""
TermText = Annotated[str, AfterValidator(lambda text: parse_term(text) and text)]


class _StrictExample(Strict, BaseModel):
    pass


class ExampleCall(_StrictExample):
    """A tool call in an example; every key that is no field is an argument of the tool."""

    tool: str = ""
    arguments: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        """``{tool: refund, usd: 5}`` for ``{tool: refund, arguments: {usd: 5}}``."""
        if not isinstance(data, dict) or "arguments" in data:
            return data
        return {
            **{name: value for name, value in data.items() if name in cls.model_fields},
            "arguments": {k: v for k, v in data.items() if k not in cls.model_fields},
        }


def _as_moment_text(value: object) -> object:
    """A time as text, also if YAML has parsed it."""
    text = value.isoformat() if isinstance(value, date) else value
    if text and as_moment(text) is None:
        raise ValueError(f"'{text}' is no time such as 2025-02-25 or 2025-02-25T15:00:00")
    return text


MomentText = Annotated[str, BeforeValidator(_as_moment_text)]


class PastAnswer(ExampleCall):
    """A call that was carried out, and its answer: text, or data that becomes JSON."""

    tool: Text
    answer: Any = ""
    at: MomentText = ""


class Example(ExampleCall):
    """A call that a rule allows or refuses, whatever other rules say, and what happened before it.

    ``tool`` can be omitted if the rule is about one tool. ``after`` has earlier calls with their
    answers, ``facts`` further effects that hold, ``goal`` the words of the user, and ``now`` the
    time. ``context`` is the runtime context, such as the user's role.
    """

    after: list[PastAnswer] = []
    facts: list[Condition] = []
    goal: str = ""
    now: MomentText = ""
    context: dict[str, Any] = {}
