"""Reading a run folder: the manifest, the finished episodes and their step logs.

Tables and pages are made from these files alone, so that a run can be judged on another machine,
without the games or the model that made it. A run may still be going on, or have been killed:
what is there is read, a line torn by a kill is passed over, and so are damaged lines, which are
counted. A manifest that does not fit is refused with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from rpms.evals.bounded import Amount, Count, Moment, Plain, Real, Times, Whole
from rpms.evals.log_files import is_damaged
from rpms.evals.run_layout import EPISODES, MANIFEST, JobKey, step_log_file
from rpms.nodes.context import OLD_GUARDS, RunContext
from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, read_bytes
from rpms.vocabulary.turn import ERRORS, FailureMode, repeated_refusals


class _Data(BaseModel):
    """Fields that a later version adds are not our business."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


class PlannedTask(_Data):
    """One task of the run, whether it has been played yet or not."""

    id: str
    index: Whole
    type: str = ""
    goal: str = ""


class Hashes(_Data):
    """Checksums of the knowledge that was used."""

    rules: str = ""
    prompts: str = ""
    memory: dict[str, str] = {}
    rules_of: dict[str, str] = {}


class Memory(_Data):
    """Where a memory that was used comes from; nobody knows for one without a header."""

    sources: list[str] = []
    learned_by: list[str] = []
    entries: Count = 0


class Spending(_Data):
    """What one session paid for; replies from the cache are not in it."""

    tokens: Count = 0
    usd: Real | None = None


class Session(_Data):
    """One call of ``rpms eval`` on the folder; a killed one could not say what it spent."""

    started: Moment = ""
    commit: str = ""
    spent: Spending | None = None


class Manifest(_Data):
    """What was run: enough to say what a figure is a figure of."""

    format: Literal[1]
    created: Moment
    finished: Moment | None = None
    env: str
    split: str
    wording: str = ""
    commit: str
    model: str
    model_label: str
    base_url: str = ""
    conditions: dict[str, dict[str, Plain]] = Field(min_length=1)
    tasks: list[PlannedTask]
    hashes: Hashes = Hashes()
    memories: dict[str, Memory] = {}
    swapped: dict[str, dict[str, dict[str, str]]] = {}
    versions: dict[str, str] = {}
    settings: dict[str, Plain] = {}
    workers: Count | None = None
    concurrency: Count | None = None
    ray: str | None = None
    sessions: list[Session] = []

    @property
    def commits(self) -> str:
        """Every commit that played a part of the run, the first of them first."""
        found = [self.commit, *(session.commit for session in self.sessions)]
        return ", ".join(dict.fromkeys(filter(None, found)))

    def commit_at(self, moment: str) -> str:
        """The commit of the session that was playing then."""
        begun = [s.commit for s in self.sessions if s.commit and "" < s.started <= moment]
        return begun[-1] if begun else self.commit

    @field_validator("conditions", mode="after")
    @classmethod
    def _fitting(cls, conditions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Each setting of its kind. Runs of earlier versions call guards otherwise."""
        usual = RunContext().plain
        for label, context in conditions.items():
            for name, value in context.items():
                kinds = (
                    (int, float) if isinstance(usual.get(name), float) else type(usual.get(name))
                )
                if name in usual and not isinstance(value, kinds):
                    raise ValueError(f"{label}: {name}={value!r} is not possible")
        return {label: _renamed(context) for label, context in conditions.items()}

    @field_validator("settings", mode="after")
    @classmethod
    def _often(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for name in ("trials", "repeats"):
            TypeAdapter(Times).validate_python(settings.get(name, 1))
        return settings


def _renamed(context: dict[str, Any]) -> dict[str, Any]:
    guard = context.get("guard", "off")
    if guard not in OLD_GUARDS:
        return context
    return {**context, "guard": OLD_GUARDS[guard], "reasks": 1}


class Episode(_Data):
    """One finished episode, less its texts."""

    condition: str
    task: str
    repeat: Times = 1
    trial: Times = 1
    index: Whole
    type: str
    goal: str
    success: bool
    score: Real
    steps: Count
    invalid_actions: Count
    format_errors: Count
    repeated: Count = 0
    failure_mode: FailureMode | None
    error: str = ""
    error_place: ErrorPlace | None = None  # only of errors in the user's own code
    prompt_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    spent_prompt_tokens: Count = 0
    spent_output_tokens: Count = 0
    knowledge_tokens: Amount = 0.0
    dropped_turns: Count = 0
    cost_usd: Real | None = None
    model_calls: Count = 0
    cache_hits: Count = 0
    capped_replies: Count = 0
    drift_steps: Count = 0
    checked_steps: Count = 0
    recalled: Count = 0
    dropped_scf: Count = 0
    dropped_arbitration: Count = 0
    dropped_budget: Count = 0
    warned: Count = 0
    proposals: Count = 0
    asked_again: Count = 0
    replaced: Count = 0
    fell_back: Count = 0
    insisted: Count = 0
    vetoes: dict[str, Count] = {}
    after_veto: dict[str, list[Count]] = {}
    obeyed: dict[str, list[Count]] = {}
    obeyed_by_step: dict[str, list[Count]] = {}
    foretold: dict[str, list[Count]] = {}
    refused: dict[str, Count] | None = None  # not counted in runs of earlier versions
    lost_by: str = ""
    memory_sources: dict[str, list[Count]] = {}
    started: Moment = ""
    seconds: Amount = 0.0

    @model_validator(mode="before")
    @classmethod
    def _counts_repeats(cls, line: Any) -> Any:
        """Counted as it is read, so that runs of earlier versions have it too."""
        if not isinstance(line, dict) or not isinstance(line.get("history"), list):
            return line
        return {**line, "repeated": repeated_refusals(line["history"])}

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


@dataclass(frozen=True)
class Run:
    """A run folder in memory: of every episode the latest line.

    ``torn`` says that the last line has no end; ``damaged`` names the lines that tell of no
    episode, which are left out.
    """

    folder: Path
    manifest: Manifest
    episodes: Mapping[JobKey, Episode]
    torn: bool = False
    damaged: tuple[int, ...] = ()

    @property
    def conditions(self) -> list[str]:
        """Labels in the order they were asked for."""
        return list(self.manifest.conditions)

    @property
    def trials(self) -> int:
        """How often a task may be tried."""
        return int(self.manifest.settings.get("trials") or 1)

    @property
    def repeats(self) -> int:
        """How often everything is played."""
        return int(self.manifest.settings.get("repeats") or 1)

    @property
    def planned(self) -> int:
        """How many episodes a complete run has, a task's trials taken as one."""
        return len(self.manifest.conditions) * len(self.manifest.tasks) * self.repeats

    @cached_property
    def done(self) -> int:
        """How many of those are there: won, or tried as often as they may be."""
        return sum(
            self._last(condition, task.id, repeat) is not None
            for condition in self.conditions
            for task in self.manifest.tasks
            for repeat in range(1, self.repeats + 1)
        )

    @property
    def complete(self) -> bool:
        """Whether every episode is there."""
        return self.done >= self.planned

    def played(self, condition: str, repeat: int = 1) -> list[Episode]:
        """A condition's finished tasks by their last trial, errors included, in their order."""
        found = (self._last(condition, task.id, repeat) for task in self.manifest.tasks)
        return [episode for episode in found if episode]

    def _last(self, condition: str, task: str, repeat: int) -> Episode | None:
        """The episode that settles a task; None while another trial is to come."""
        for trial in range(self.trials, 0, -1):
            found = self.episodes.get(JobKey(condition, task, repeat, trial))
            if found:
                return found if found.success or found.is_error or trial == self.trials else None
        return None

    def judged(self, condition: str) -> list[Episode]:
        """Those that say something about the agent: no model and no infrastructure errors."""
        return [episode for episode in self.played(condition) if not episode.is_error]

    def log_file(self, episode: Episode) -> Path:
        """Where the full steps of an episode lie."""
        return step_log_file(self.folder, *episode.key)

    @cached_property
    def damaged_logs(self) -> set[JobKey]:
        """Episodes whose step log is there and cannot be read."""
        return {e.key for e in self.episodes.values() if is_damaged(self.log_file(e))}


def read_run(folder: Path) -> Run:
    """The manifest and every finished episode of a run folder."""
    manifest = _read_manifest(folder / MANIFEST)
    file = folder / EPISODES
    lines = read_bytes(file).split(b"\n") if file.exists() else []
    tasks = {task.id for task in manifest.tasks}
    episodes: dict[JobKey, Episode] = {}
    damaged: list[int] = []
    for number, line in enumerate(lines[:-1], start=1):
        if not line.strip():
            continue
        try:
            episode = Episode.model_validate_json(line)
        except ValidationError:
            damaged.append(number)
            continue
        if episode.condition not in manifest.conditions or episode.task not in tasks:
            raise RpmsError(
                f"{file}:{number}: condition '{episode.condition}', task '{episode.task}' is not "
                f"in {MANIFEST}; the two files belong to different runs"
            )
        episodes[episode.key] = episode
    # Episodes end in any order; whoever lists them finds tasks and conditions in the plan's order.
    places = {label: number for number, label in enumerate(manifest.conditions)}
    ordered = sorted(episodes.values(), key=lambda e: (e.index, places[e.condition], e.key[2:]))
    episodes = {episode.key: episode for episode in ordered}
    # A line without its end was being written when the run was killed; the runner cuts it off.
    return Run(folder, manifest, episodes, bool(lines and lines[-1]), tuple(damaged))


def _read_manifest(file: Path) -> Manifest:
    if not is_file(file):
        raise RpmsError(f"no {MANIFEST} in {file.parent}; give a folder that 'rpms eval' wrote")
    try:
        return Manifest.model_validate_json(read_bytes(file))
    except ValidationError as error:
        raise RpmsError(f"{file}: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """What pydantic found first, and where."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])
