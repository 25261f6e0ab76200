"""The schema of a run folder's files: the manifest, the line of an episode, a step.

The same declarations write the files, check them when they are read, and name the columns of
tables. Files can be edited by hand or damaged, so every number has bounds. Unknown fields are
ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from rpms.vocabulary.context import RunContext
from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.limits import MOST_TIMES
from rpms.vocabulary.turn import ERRORS, EpisodeRecord, FailureMode, RecordedTurn

Count = Annotated[int, Field(ge=0, le=10**15)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Real = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""Seconds, dollars, or an average of counts."""
Times = Annotated[int, Field(ge=1, le=MOST_TIMES)]
Plain = bool | Whole | Real | str | None
"""A setting."""


def _moment(text: str) -> str:
    if text and not 1970 <= datetime.fromisoformat(text).year < 9000:
        raise ValueError("no valid time of a run")
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""As ``datetime.isoformat`` writes it; empty if it was not recorded."""


class JobKey(NamedTuple):
    """Identifies an episode within a run."""

    condition: str
    task: str
    repeat: int = 1
    trial: int = 1


class Extensible(BaseModel):
    """Part of a manifest. A resumed run writes it again and keeps unknown fields."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class PlannedTask(Extensible):
    """One task of the run, finished or not."""

    id: str
    index: Whole
    type: str = ""
    goal: str = ""
    name: str = ""
    """The benchmark's name of the task, if that is finer than its goal type."""


class Hashes(Extensible):
    """Checksums of rules, prompts and memories."""

    rules: str = ""
    prompts: str = ""
    memory: dict[str, str] = {}
    rules_of: dict[str, str] = {}


class Memory(Extensible):
    """The origin of a memory; empty for a memory without a header."""

    sources: list[str] = []
    learned_by: list[str] = []
    rounds: Count = 0
    entries: Count = 0


class Spending(Extensible):
    """The cost of one session, without replies from the cache."""

    tokens: Count = 0
    usd: Real | None = None


class Session(Extensible):
    """One call of ``rpms eval`` on the folder; ``spent`` is missing if it was killed."""

    started: Moment = ""
    commit: str = ""
    spent: Spending | None = None


def _check_format(value: Any) -> Any:
    if value == 1:
        text = "an older version wrote this run; the last one that reads it is commit 89f16c44"
        raise PydanticCustomError("old_format", text)
    return value


class Manifest(Extensible):
    """Everything that determines the results of a run."""

    format: Annotated[Literal[2], BeforeValidator(_check_format)]
    created: Moment
    finished: Moment | None = None
    env: str
    split: str
    split_types: list[str] = []
    wording: str = ""
    commit: str
    model: str
    model_label: str
    base_url: str = ""
    conditions: dict[str, dict[str, Plain]] = Field(min_length=1)
    compare: list[tuple[str, str]] = []
    """The pairs of arms that the report tests, the one to compare with first."""
    tasks: list[PlannedTask]
    swapped: dict[str, dict[str, dict[str, str]]] = {}
    hashes: Hashes = Hashes()
    memories: dict[str, Memory] = {}
    versions: dict[str, str] = {}
    settings: dict[str, Plain] = {}
    recorded: bool = False
    """The run of a custom agent (``rpms.Recorder``), which has no plan."""
    demo: bool = False
    """The run of ``rpms demo``, which the next one replaces."""
    sessions: list[Session] = []

    @property
    def commits(self) -> str:
        """The commits of all sessions, in order."""
        commits = [self.commit, *(session.commit for session in self.sessions)]
        return ", ".join(dict.fromkeys(filter(None, commits)))

    @field_validator("conditions", mode="after")
    @classmethod
    def _check_conditions(cls, conditions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Check the type of each setting."""
        defaults = RunContext().plain
        for label, context in conditions.items():
            for name, value in context.items():
                kinds = (
                    (int, float)
                    if isinstance(defaults.get(name), float)
                    else type(defaults.get(name))
                )
                if name in defaults and not isinstance(value, kinds):
                    raise ValueError(f"{label}: {name}={value!r} has the wrong type")
        return conditions

    @field_validator("settings", mode="after")
    @classmethod
    def _check_counts(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for name in ("trials", "repeats"):
            TypeAdapter(Times).validate_python(settings.get(name, 1))
        return settings


class Episode(BaseModel):
    """One finished episode without its texts: task, outcome and cost.

    Counts of its steps are computed from the step log (``step_analysis.py``). The fields are in the
    order of the line.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())

    condition: str
    repeat: Times = 1
    trial: Times = 1
    env: str = ""
    split: str = ""
    task: str
    index: Whole
    type: str
    goal: str
    signature: str = ""
    success: bool
    score: Real
    failure_mode: FailureMode | None
    error: str = ""
    error_place: ErrorPlace | None = None  # only for errors in custom code
    steps: Count
    prompt_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    model_calls: Count = 0
    cache_hits: Count = 0
    capped_replies: Count = 0
    spent_prompt_tokens: Count = 0
    spent_cached_tokens: Count = 0
    spent_output_tokens: Count = 0
    cost_usd: Real | None = None
    seconds: Amount = 0.0
    env_seconds: Amount = 0.0
    model_seconds: Amount = 0.0
    started: Moment = ""

    @property
    def key(self) -> JobKey:
        return JobKey(self.condition, self.task, self.repeat, self.trial)

    @property
    def is_error(self) -> bool:
        """The model or the simulator failed, so the episode does not count."""
        return self.failure_mode in ERRORS

    @property
    def floored(self) -> float:
        """The score, with negative scores as 0; ScienceWorld results usually report it so."""
        return max(0.0, self.score)


class EpisodeLine(Episode):
    """The full line of an episode, texts included.

    A line to be written is constructed without validation: an episode with any text of a game or a
    model must be recorded.
    """

    env: str
    split: str
    first_observation: str
    history: list[RecordedTurn]
    cross_trial_memory: dict[str, Any] = {}

    def data(self) -> dict[str, Any]:
        """The fields that were set, in their order."""
        return {n: getattr(self, n) for n in type(self).model_fields if n in self.model_fields_set}

    def record(self) -> EpisodeRecord:
        """The part that memory methods learn from."""
        names = EpisodeRecord.__annotations__
        return cast(EpisodeRecord, {n: value for n, value in self.data().items() if n in names})


# Logs have more fields than are checked here, and later versions add to them.
_MORE = ConfigDict(extra="allow")


class StepRecall(TypedDict):
    """A recalled memory (``vocabulary/recall.py``)."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    entry: dict[str, Any]
    score: Real
    dropped_by: str
    reason: str
    warning: str
    rule: str


class StepDecision(TypedDict):
    """The guard's decision (``vocabulary/turn.py``)."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    proposal: str
    verdict: str
    rule: str
    reason: str


class StepSubGoal(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    name: str
    progress: Whole


class StepBelief(TypedDict):
    """A belief (``vocabulary/belief.py``): the fields that tables show."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    location: str | None
    holding: list[str]


class StepUsage(TypedDict):
    """Tokens of the model call."""

    prompt_tokens: Count
    cached_tokens: Count
    output_tokens: Count


class StepSituation(TypedDict):
    """A line of the prompt about the current situation."""

    id: str
    text: str


class Step(TypedDict):
    """Everything that led to one action, and its result.

    Fields that are not required are missing if the episode was interrupted before them.
    """

    __pydantic_config__ = _MORE  # type: ignore[misc]

    step: Count
    observation: str
    belief: StepBelief
    sub_goal: StepSubGoal
    truth: NotRequired[dict[str, Any]]
    belief_errors: list[str]
    reply: str
    thought: str
    action: str
    result: str
    failed: bool
    replayed: NotRequired[bool]
    usage: StepUsage
    seconds: Amount
    cost_usd: NotRequired[Amount | None]
    proposal: NotRequired[str]
    judged: NotRequired[list[tuple[str, str]]]
    rules: NotRequired[dict[str, list[str | StepSituation]]]
    recalls: NotRequired[list[StepRecall]]
    truncated: NotRequired[dict[str, Count]]
    prompt: NotRequired[list[tuple[str, Count]]]
    vetoes: NotRequired[list[tuple[str, Count]]]
    knowledge_tokens: NotRequired[Count]
    dropped_turns: NotRequired[Count]
    decisions: NotRequired[list[StepDecision]]
    shortlist: NotRequired[list[Any]]
    state_lines: NotRequired[list[str]]


class Log(TypedDict):
    """A step log: each distinct text of the prompts once, and the steps that refer to them."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    messages: list[str]
    steps: list[Step]


_LOG: TypeAdapter[Log] = TypeAdapter(Log)


def check_log(log: Mapping[str, Any]) -> None:
    """Raise ValueError for an invalid step log or a reference to a missing text."""
    checked = _LOG.validate_python(log)
    prompts = ([*step.get("prompt", []), *step.get("vetoes", [])] for step in checked["steps"])
    numbers = [number for prompt in prompts for _, number in prompt]
    if max(numbers, default=-1) >= len(checked["messages"]):
        raise ValueError("a prompt refers to a text that is not in the log")


def columns(of: type) -> list[str]:
    """The fields with a single value each, which are columns of a table."""

    def is_nested(kind: Any) -> bool:
        return is_typeddict(kind) or get_origin(kind) in (dict, list)

    kinds = {name: (kind, *get_args(kind)) for name, kind in get_type_hints(of).items()}
    return [name for name in kinds if not any(map(is_nested, kinds[name]))]
