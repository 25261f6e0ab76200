"""What a run folder holds, each thing declared once: the manifest, an episode's line, a step.

These declarations write the files, read and check them, and name the columns of tables. A file can
be edited by hand or damaged in one digit: whatever it says, nothing that is computed from it runs
out of bounds. What a later version adds is not our business, and what an earlier one did not write
has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from rpms.vocabulary.context import OLD_GUARDS, REMOVED, RENAMED, RunContext
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
        raise ValueError("no time that a run can have been played at")
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""As ``datetime.isoformat`` writes it; empty where nobody noted it."""


class JobKey(NamedTuple):
    """What names an episode within a run: its arm, its task, which repeat, which trial."""

    condition: str
    task: str
    repeat: int = 1
    trial: int = 1


class Extensible(BaseModel):
    """Part of a manifest, which is written again when a run goes on: nothing in it gets lost."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class PlannedTask(Extensible):
    """One task of the run, whether it has been played yet or not."""

    id: str
    index: Whole
    type: str = ""
    goal: str = ""
    name: str = ""
    """What the benchmark calls the task, where that is finer than its goal type."""


class Hashes(Extensible):
    """Checksums of the knowledge that was used."""

    rules: str = ""
    prompts: str = ""
    memory: dict[str, str] = {}
    rules_of: dict[str, str] = {}


class Memory(Extensible):
    """Where a memory that was used comes from; nobody knows for one without a header."""

    sources: list[str] = []
    learned_by: list[str] = []
    entries: Count = 0


class Spending(Extensible):
    """What one session paid for; replies from the cache are not in it."""

    tokens: Count = 0
    usd: Real | None = None


class Session(Extensible):
    """One call of ``rpms eval`` on the folder; a killed one could not say what it spent."""

    started: Moment = ""
    commit: str = ""
    spent: Spending | None = None


class Manifest(Extensible):
    """What was run: enough to say what a figure is a figure of."""

    format: Literal[1]
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
    tasks: list[PlannedTask]
    swapped: dict[str, dict[str, dict[str, str]]] = {}
    hashes: Hashes = Hashes()
    memories: dict[str, Memory] = {}
    versions: dict[str, str] = {}
    settings: dict[str, Plain] = {}
    recorded: bool = False
    """Of an agent of one's own (``rpms.middleware``): nobody planned which tasks it plays."""
    workers: Count | None = None
    concurrency: Count | None = None
    ray: str | None = None
    sessions: list[Session] = []

    @property
    def commits(self) -> str:
        """Every commit that played a part of the run, the first of them first."""
        commits = [self.commit, *(session.commit for session in self.sessions)]
        return ", ".join(dict.fromkeys(filter(None, commits)))

    @field_validator("conditions", mode="after")
    @classmethod
    def _fitting(cls, conditions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Each setting of its kind. Runs of earlier versions call settings and guards otherwise.

        A setting that is gone is left out where it had the value that every run now has.
        """
        usual = RunContext().plain
        conditions = {
            label: {
                RENAMED.get(name, name): value
                for name, value in context.items()
                if name not in REMOVED or value != REMOVED[name].value
            }
            for label, context in conditions.items()
        }
        for label, context in conditions.items():
            for name, value in context.items():
                kinds = (
                    (int, float) if isinstance(usual.get(name), float) else type(usual.get(name))
                )
                if name in usual and not isinstance(value, kinds):
                    raise ValueError(f"{label}: {name}={value!r} is not possible")
        return {
            label: {**context, "guard": OLD_GUARDS[guard], "max_retries": 1}
            if (guard := context.get("guard", "off")) in OLD_GUARDS
            else context
            for label, context in conditions.items()
        }

    @field_validator("settings", mode="after")
    @classmethod
    def _often(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for name in ("trials", "repeats"):
            TypeAdapter(Times).validate_python(settings.get(name, 1))
        return settings


class Episode(BaseModel):
    """One finished episode, less its texts: what it was, how it ended and what it cost.

    Counts of its steps are made from the step log when they are asked for (``step_analysis.py``);
    those that earlier versions wrote are passed over. The fields are in the order of the line.
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
    error_place: ErrorPlace | None = None  # only of errors in the user's own code
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
        """What names it within its run."""
        return JobKey(self.condition, self.task, self.repeat, self.trial)

    @property
    def is_error(self) -> bool:
        """The model or the simulator broke down: nothing can be said about the agent."""
        return self.failure_mode in ERRORS

    @property
    def floored(self) -> float:
        """The score with negatives at 0, as ScienceWorld results are usually given."""
        return max(0.0, self.score)


class EpisodeLine(Episode):
    """A whole line, texts included.

    One that is to be written is put together without checks: a game or a model may say what no
    check lets pass, and its episode was played all the same.
    """

    env: str
    split: str
    first_observation: str
    history: list[RecordedTurn]
    cross_trial_memory: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _rename_keys(cls, line: Any) -> Any:
        if not isinstance(line, dict) or "carried" not in line:  # its name in earlier versions
            return line
        return {
            "cross_trial_memory" if name == "carried" else name: value
            for name, value in line.items()
        }

    def data(self) -> dict[str, Any]:
        """What is written: what was set, in the order of the fields."""
        return {n: getattr(self, n) for n in type(self).model_fields if n in self.model_fields_set}

    def record(self) -> EpisodeRecord:
        """What a memory method learns from."""
        names = EpisodeRecord.__annotations__
        return cast(EpisodeRecord, {n: value for n, value in self.data().items() if n in names})


# Logs hold more than is relied upon, and later versions add to them.
_MORE = ConfigDict(extra="allow")


class StepRecall(TypedDict):
    """Of a memory that was recalled (``vocabulary/recall.py``), what every version wrote."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    entry: dict[str, Any]
    score: Real
    dropped_by: str
    reason: str
    warning: str
    rule: str


class StepDecision(TypedDict):
    """Of a proposal and its outcome (``vocabulary/turn.py``), what every version wrote."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    proposal: str
    verdict: str
    rule: str
    reason: str


class StepSubGoal(TypedDict):
    """Where the goal stood."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    name: str
    progress: Whole


class StepBelief(TypedDict):
    """Of a belief (``vocabulary/belief.py``), what tables show."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    location: str | None
    holding: list[str]


class StepUsage(TypedDict):
    """Tokens of the model call."""

    prompt_tokens: Count
    cached_tokens: Count
    output_tokens: Count


class StepSituation(TypedDict):
    """A line of the prompt about this very moment."""

    id: str
    text: str


class Step(TypedDict):
    """Everything that led to one decision, and what came of it.

    A dictionary, because that is what the stages pass on and a log is read by its keys; what is
    not required was not written by every version, or the episode broke off before it.
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
    knowledge_tokens: NotRequired[Count]
    dropped_turns: NotRequired[Count]
    decisions: NotRequired[list[StepDecision]]
    shortlist: NotRequired[list[Any]]
    state_lines: NotRequired[list[str]]


class Log(TypedDict):
    """A step log: each distinct text of the prompts once, and the steps that point to them."""

    __pydantic_config__ = _MORE  # type: ignore[misc]

    messages: list[str]
    steps: list[Step]


_LOG: TypeAdapter[Log] = TypeAdapter(Log)


def check_log(log: Mapping[str, Any]) -> None:
    """Refuse (ValueError) what is no step log, or points to a text that is not there."""
    checked = _LOG.validate_python(log)
    places = [place for step in checked["steps"] for _, place in step.get("prompt", [])]
    if max(places, default=-1) >= len(checked["messages"]):
        raise ValueError("a prompt points to a text that is not in the log")


def columns(of: type) -> list[str]:
    """The fields that are one figure or word each, as a table has them."""

    def is_nested(kind: Any) -> bool:
        return is_typeddict(kind) or get_origin(kind) in (dict, list)

    kinds = {name: (kind, *get_args(kind)) for name, kind in get_type_hints(of).items()}
    return [name for name in kinds if not any(map(is_nested, kinds[name]))]
