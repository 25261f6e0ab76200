"""One episode as the exporters see it: its line, its step log, and what both belong to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rpms.evals.run_files import Episode, Run

AGENT = "rpms"
TOOL = "act"
"""What other formats take for a tool: playing one action in the world."""


@dataclass(frozen=True)
class Played:
    """A finished episode with its log.

    Attributes:
        run: the run it belongs to.
        episode: its line.
        log: its step log, with at least one step.
        prompts: whether whole prompts are wanted.
    """

    run: Run
    episode: Episode
    log: dict[str, Any]
    prompts: bool = False

    @property
    def name(self) -> str:
        """Tells it apart from every other episode of the run, as a file name."""
        file = self.run.log_file(self.episode).relative_to(self.run.folder)
        return "-".join([*file.parts[1:-1], file.name.removesuffix(".json.gz")])

    @property
    def id(self) -> str:
        """Tells it apart from the episodes of other runs, too."""
        return f"{self.run.manifest.created}/{self.name}"

    @property
    def version(self) -> str:
        """The version of the agent that played: its commit, not that of who exports."""
        return self.run.manifest.commit_at(self.episode.started)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of the log."""
        found: list[dict[str, Any]] = self.log["steps"]
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """What was on, and how the model was called."""
        return self.run.manifest.conditions[self.episode.condition]

    @property
    def model(self) -> str:
        """The model as the run names it."""
        return str(self.settings.get("model", self.run.manifest.model))

    @property
    def about(self) -> dict[str, Any]:
        """What the episode was and how it ended, for formats that keep extras."""
        manifest, one = self.run.manifest, self.episode
        return {
            "env": manifest.env, "split": manifest.split, "task": one.task, "type": one.type,
            "condition": one.condition, "goal": one.goal, "success": one.success,
            "score": one.score, "failure_mode": one.failure_mode, "error": one.error,
            "invalid_actions": one.invalid_actions, "commit": self.version,
            "model_label": manifest.model_label,
        }  # fmt: skip

    def messages(self, step: dict[str, Any]) -> list[tuple[str, str]]:
        """A step's prompt as (role, text); empty where the episode broke off before it."""
        texts = self.log["messages"]
        return [(role, texts[place]) for role, place in step.get("prompt", [])]

    def began(self) -> datetime:
        """When the episode began; the run's own beginning where that was not noted."""
        told = datetime.fromisoformat(self.episode.started or self.run.manifest.created)
        return told if told.tzinfo else told.replace(tzinfo=UTC)

    def times(self) -> list[datetime]:
        """When each step's call began, as if the calls had followed each other without a pause.

        Only how long a call took is on record; what the agent and the world took is not.
        """
        found, now = [], self.began()
        for step in self.steps:
            found.append(now)
            now += timedelta(seconds=step["seconds"])
        return found
