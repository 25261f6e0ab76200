"""The kinds of memory: the paper's four, with the fields of its appendix, finds, and notes.

Beside the recorded example an entry keeps what it says with roles for names (``lifted``), which is
what another home can use. An entry written by hand may leave that out. Notes are what other methods
keep: a text each.
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
    """Entries that remember the goal and the state they were recorded in.

    ``manual`` says that the rules helped to make it: they explained the refusal, or told the way
    from its detours.
    """

    goal_signature: str = Field(min_length=1)
    state_signature: str = Field(min_length=1)
    manual: bool = False


class Success(_Recorded):
    """A success snippet: the actions from a state of the hand to one reached sub-goal.

    ``won`` says that the episode was won in the end, ``solves`` that the last of them won it.
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
    """A failure lesson: what was refused, and the condition that it lacked.

    ``violated`` names that condition over the parameters of the action; ``corrective_rule`` says
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
    """One way an action was used: what held before, whether it worked, what held after."""

    before: dict[str, bool]
    worked: bool
    after: list[str] = []
    count: int = Field(default=1, ge=1)


class Schema(_Entry):
    """A verified schema: what an action needed and did, told by its uses alone.

    ``kinds`` counts what the parameters stood for when it worked, ``words`` likewise what was
    given for those that stand for no thing. Preconditions, effects and confidence follow from the
    uses where there are any.
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
    """What was found in one kind of place: how many were looked into, and how many held what."""

    type: Literal["found"]
    place: str
    looked: int = Field(ge=1)
    objects: dict[str, int] = {}


class Note(_StrictEntry):
    """One text and where it belongs.

    Attributes:
        id: unique within the file.
        kind: what its method calls it: insight, workflow, trajectory.
        text: as the prompt prints it.
        goal: the task sentence it was learned from; empty if it is about all tasks.
        goal_type: the type of that task.
        votes: how often it was held to be right, where the method counts that.
        actions: the commands it advises; None if they have to be read from its text.
        state_signature: the state it was recorded in, where it is about one.
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
