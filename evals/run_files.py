"""Reading a run folder: the manifest, the finished episodes and their step logs.

Tables and pages are made from these files alone, so that a run can be judged on another machine,
without the games or the model that made it. A run may still be going on, or have been killed:
what is there is read, a line torn by a kill is passed over, anything else that does not fit is
refused with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from rpms.evals.run_layout import EPISODES, MANIFEST, JobKey, step_log_file
from rpms.nodes.context import OLD_GUARDS
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS, FailureMode


class _Data(BaseModel):
    """Fields that a later version adds are not our business."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


class PlannedTask(_Data):
    """One task of the run, whether it has been played yet or not."""

    id: str
    index: int
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
    entries: int = 0


class Spending(_Data):
    """What one session paid for; replies from the cache are not in it."""

    tokens: int = 0
    usd: float | None = None


class Session(_Data):
    """One call of ``rpms eval`` on the folder; a killed one could not say what it spent."""

    started: str = ""
    commit: str = ""
    spent: Spending | None = None


class Manifest(_Data):
    """What was run: enough to say what a figure is a figure of."""

    format: Literal[1]
    created: str
    finished: str | None = None
    env: str
    split: str
    wording: str = ""
    commit: str
    model: str
    model_label: str
    base_url: str = ""
    conditions: dict[str, dict[str, Any]]
    tasks: list[PlannedTask]
    hashes: Hashes = Hashes()
    memories: dict[str, Memory] = {}
    swapped: dict[str, dict[str, dict[str, str]]] = {}
    versions: dict[str, str] = {}
    settings: dict[str, Any] = {}
    workers: int | None = None
    concurrency: int | None = None
    ray: str | None = None
    sessions: list[Session] = []

    @field_validator("conditions", mode="after")
    @classmethod
    def _guards_by_their_new_names(
        cls, conditions: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Runs of earlier versions have other names, and asked again once."""
        return {label: _renamed(context) for label, context in conditions.items()}


def _renamed(context: dict[str, Any]) -> dict[str, Any]:
    guard = context.get("guard", "off")
    if guard not in OLD_GUARDS:
        return context
    return {**context, "guard": OLD_GUARDS[guard], "reasks": 1}


class Episode(_Data):
    """One finished episode, less its texts."""

    condition: str
    task: str
    repeat: int = 1
    trial: int = 1
    index: int
    type: str
    goal: str
    success: bool
    score: float
    steps: int
    invalid_actions: int
    format_errors: int
    failure_mode: FailureMode | None
    error: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    knowledge_tokens: float = 0.0
    dropped_turns: int = 0
    cost_usd: float | None = None
    model_calls: int = 0
    cache_hits: int = 0
    drift_steps: int = 0
    checked_steps: int = 0
    recalled: int = 0
    dropped_scf: int = 0
    dropped_arbitration: int = 0
    dropped_budget: int = 0
    warned: int = 0
    proposals: int = 0
    asked_again: int = 0
    replaced: int = 0
    fell_back: int = 0
    insisted: int = 0
    vetoes: dict[str, int] = {}
    after_veto: dict[str, list[int]] = {}
    obeyed: dict[str, list[int]] = {}
    obeyed_by_step: dict[str, list[int]] = {}
    foretold: dict[str, list[int]] = {}
    refused: dict[str, int] | None = None  # not counted in runs of earlier versions
    lost_by: str = ""
    memory_sources: dict[str, list[int]] = {}
    started: str = ""
    seconds: float = 0.0

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
    """A run folder in memory: of every episode the latest line."""

    folder: Path
    manifest: Manifest
    episodes: Mapping[JobKey, Episode]
    torn: bool = False

    @property
    def conditions(self) -> list[str]:
        """Labels in the order they were asked for."""
        return list(self.manifest.conditions)

    @property
    def trials(self) -> int:
        """How often a task may be tried."""
        return int(self.manifest.settings.get("trials", 1))

    @property
    def repeats(self) -> int:
        """How often everything is played."""
        return int(self.manifest.settings.get("repeats", 1))

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


def read_run(folder: Path) -> Run:
    """The manifest and every finished episode of a run folder."""
    manifest = _read_manifest(folder / MANIFEST)
    file = folder / EPISODES
    lines = file.read_bytes().split(b"\n") if file.is_file() else []
    tasks = {task.id for task in manifest.tasks}
    episodes: dict[JobKey, Episode] = {}
    for number, line in enumerate(lines[:-1], start=1):
        if not line.strip():
            continue
        try:
            episode = Episode.model_validate_json(line)
        except ValidationError as error:
            raise RpmsError(f"{file}:{number}: {_first(error)}") from error
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
    return Run(folder, manifest, episodes, torn=bool(lines and lines[-1]))


def _read_manifest(file: Path) -> Manifest:
    if not file.is_file():
        raise RpmsError(f"no {MANIFEST} in {file.parent}; give a folder that 'rpms eval' wrote")
    try:
        return Manifest.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise RpmsError(f"{file}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])
