"""The four kinds of memory, with the fields of the paper's appendix."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    retrieval_weight: float = Field(default=1.0, gt=0)


class _Recorded(_Entry):
    """Entries that remember the goal and the state they were recorded in."""

    goal_signature: str = Field(min_length=1)
    state_signature: str = Field(min_length=1)


class Success(_Recorded):
    """A success snippet: the actions that reached one sub-goal."""

    type: Literal["success"]
    sub_goal_type: str
    precondition: dict[str, Any] = {}
    actions: list[str] = Field(min_length=1)
    outcome: dict[str, Any] = {}
    success_count: int = Field(default=1, ge=1)


class Failure(_Recorded):
    """A failure lesson: what was refused, and the rule that explains it."""

    type: Literal["failure"]
    failed_action: str
    failure_type: str = "precondition_not_met"
    failure_message: str
    corrective_rule: str
    occurrence_count: int = Field(default=1, ge=1)


class Schema(_Entry):
    """A verified schema: an action template with confirmed preconditions and effects."""

    type: Literal["schema"]
    action_template: str
    action_type: str
    preconditions: list[str]
    effects: list[str]
    success_count: int = Field(ge=0)
    failure_count: int = Field(ge=0)
    confidence: float = Field(ge=0, le=1)


class CriticalFailure(_Recorded):
    """An action that ended an episode with the worst score; weighs double in retrieval."""

    type: Literal["critical_failure"]
    failed_action: str
    failure_message: str
    corrective_rule: str
    occurrence_count: int = Field(default=1, ge=1)
    retrieval_weight: float = Field(default=2.0, gt=0)


Entry = Success | Failure | Schema | CriticalFailure
ADAPTER: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="type")])


def parse_entry(data: object) -> Entry:
    """Validate one entry; raises pydantic's ValidationError."""
    return ADAPTER.validate_python(data)
