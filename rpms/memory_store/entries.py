"""The types of memory: the paper's four with the fields of its appendix, finds, and notes.

An entry keeps the recorded actions and, in ``lifted``, the same actions with roles for names, which
transfer to other scenes. A handwritten entry may leave ``lifted`` out. Other memory methods keep
notes, a text each.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _StrictEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Entry(_StrictEntry):
    id: str = Field(min_length=1)
    retrieval_weight: float = Field(default=1.0, gt=0)


class _Recorded(_Entry):
    """Base of the entries that keep the goal and the state they were recorded in.

    ``manual`` is true if rules helped to make the entry: they explained the rejection, or removed
    detours.
    """

    goal_signature: str = Field(min_length=1)
    state_signature: str = Field(min_length=1)
    manual: bool = False


class Success(_Recorded):
    """A success snippet: the actions from a change of the hand to one reached sub-goal.

    ``won`` is true if the episode was won in the end, ``solves`` if the last action won it.
    """

    type: Literal["success"]
    sub_goal_type: str
    precondition: dict[str, Any] = {}
    actions: list[str] = Field(min_length=1)
    lifted: list[str] = []
    outcome: dict[str, Any] = {}
    won: bool = False
    solves: bool = False
    success_count: int = Field(default=1, ge=1)


class Failure(_Recorded):
    """A failure lesson: a rejected action and the precondition it violated.

    ``violated`` holds the precondition over the parameters of the action; ``corrective_rule`` says
    it in words.
    """

    type: Literal["failure"]
    failed_action: str
    lifted: str = ""
    violated: list[str] = []
    failure_type: str = "precondition_not_met"
    failure_message: str
    corrective_rule: str
    occurrence_count: int = Field(default=1, ge=1)


class Use(_StrictEntry):
    """One use of an action: the literals before it, its success, and the literals after it."""

    before: dict[str, bool]
    worked: bool
    after: list[str] = []
    count: int = Field(default=1, ge=1)


class Schema(_Entry):
    """A verified schema: the preconditions and effects of an action, derived from its uses.

    ``kinds`` counts the kinds of each parameter's values in successful uses. ``words`` counts the
    values themselves, for parameters that name no thing. A handwritten schema may have no uses; its
    preconditions, effects and confidence are then taken as written.
    """

    type: Literal["schema"]
    action_template: str
    action_type: str
    preconditions: list[str] = []
    effects: list[str] = []
    uses: list[Use] = []
    kinds: dict[str, dict[str, int]] = {}
    words: dict[str, dict[str, int]] = {}
    success_count: int = Field(ge=0)
    failure_count: int = Field(ge=0)
    confidence: float = Field(ge=0, le=1)


class CriticalFailure(_Recorded):
    """An action that ended an episode with the worst score; weighs double in retrieval."""

    type: Literal["critical_failure"]
    failed_action: str
    lifted: str = ""
    failure_message: str
    corrective_rule: str
    occurrence_count: int = Field(default=1, ge=1)
    retrieval_weight: float = Field(default=2.0, gt=0)


class Finds(_Entry):
    """The objects found in one kind of place: how many places were searched, and their objects."""

    type: Literal["found"]
    place: str
    looked: int = Field(ge=1)
    objects: dict[str, int] = {}


class Note(_StrictEntry):
    """One text of a memory method.

    Attributes:
        id: unique within the file.
        kind: the method's word for it: insight, workflow, trajectory.
        text: as the prompt prints it.
        goal: the task sentence it was learned from; empty if it is about all tasks.
        goal_type: the type of that task.
        votes: how often it was judged right, if the method counts that.
        actions: the commands it advises; None if they have to be read from its text.
        state_signature: the state it was recorded in, if it is about one.
    """

    id: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    text: str = Field(min_length=1)
    goal: str = ""
    goal_type: str = ""
    votes: int = 0
    actions: list[str] | None = None
    state_signature: str | None = None


Entry = Success | Failure | Schema | CriticalFailure | Finds
ADAPTER: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="type")])
NOTES: TypeAdapter[Note] = TypeAdapter(Note)


def parse_entry(data: object) -> Entry:
    """Validate one entry; raises pydantic's ValidationError."""
    return ADAPTER.validate_python(data)
