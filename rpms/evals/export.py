"""A run folder in formats that other tools read: one JSON document for each episode.

Everything goes to files and nothing is sent anywhere. Episodes are read, written and forgotten
one by one, so that a run of any size needs the memory of one episode. ATIF (Agent Trajectory
Interchange Format, from Harbor) is written as v1.7, the first version that has all the fields used
here; readers of later versions accept it. https://harborframework.com/docs/trajectory-format
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.conditions import find_label
from rpms.evals.records import Episode
from rpms.evals.rule_compliance import in_prompt, shown_rules
from rpms.evals.run_folder import Run, read_log
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import whole_file

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
    def settings(self) -> Mapping[str, Any]:
        """What was on, and how the model was called."""
        return self.run.settings(self.episode.condition)

    @property
    def model(self) -> str:
        """The model as the run names it."""
        return self.run.model(self.episode.condition)

    @property
    def about(self) -> dict[str, Any]:
        """What the episode was and how it ended, for formats that keep extras."""
        manifest, episode = self.run.manifest, self.episode
        return {
            "env": manifest.env, "split": manifest.split,
            "task": episode.task, "type": episode.type,
            "condition": episode.condition, "goal": episode.goal, "success": episode.success,
            "score": episode.score, "failure_mode": episode.failure_mode, "error": episode.error,
            "invalid_actions": episode.invalid_actions, "commit": self.version,
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
        times, now = [], self.began()
        for step in self.steps:
            times.append(now)
            now += timedelta(seconds=step["seconds"])
        return times


SCHEMA = "ATIF-v1.7"
SETTINGS = ("rules", "memory", "scf", "arbitration", "guard", "layout", "temperature", "seed")
ACT: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": "Play one action in the world.",
        "parameters": {
            "type": "object",
            "properties": {"action": {"type": "string"}},
            "required": ["action"],
        },
    },
}


def trajectory(played: Played) -> dict[str, Any]:
    """The whole episode: instructions, task, and a step for each reply of the model."""
    episode = played.episode
    return {
        "schema_version": SCHEMA,
        "session_id": played.id,
        "trajectory_id": played.id,
        "agent": {
            "name": AGENT,
            "version": played.version,
            "model_name": played.model,
            "tool_definitions": [ACT],
            "extra": {name: played.settings[name] for name in SETTINGS if name in played.settings},
        },
        "steps": [
            {"step_id": number, **step} for number, step in enumerate(_steps(played), start=1)
        ],
        "final_metrics": _present(
            total_prompt_tokens=episode.prompt_tokens,
            total_completion_tokens=episode.output_tokens,
            total_cached_tokens=episode.cached_tokens,
            total_cost_usd=episode.cost_usd,
            total_steps=episode.steps,
        ),
        "notes": "total_steps counts the actions played; the steps listed also hold the "
        "instructions and the task, and a reply that was never played.",
        "extra": played.about,
    }


def _steps(played: Played) -> list[dict[str, Any]]:
    """What the model was told first, then what it did.

    The knowledge blocks change from prompt to prompt; a step's extras name what was in them.
    """
    began, first = played.began().isoformat(), played.steps[0]
    system = [text for role, text in played.messages(first) if role == "system"]
    steps = [{"timestamp": began, "source": "system", "message": text} for text in system]
    task = f"{first['observation']}\n\n{played.episode.goal}"
    steps.append({"timestamp": began, "source": "user", "message": task})
    times = played.times()
    return [*steps, *(_turn(played, step, time.isoformat()) for step, time in zip(
        played.steps, times, strict=True))]  # fmt: skip


def _turn(played: Played, step: dict[str, Any], time: str) -> dict[str, Any]:
    usage = step["usage"]
    turn: dict[str, Any] = {
        "timestamp": time,
        "source": "agent",
        "message": step["reply"],
        "metrics": _present(
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["output_tokens"],
            cached_tokens=usage["cached_tokens"],
            cost_usd=step.get("cost_usd"),
        ),
        "extra": _extra(played, step),
    }
    if step["thought"]:
        turn["reasoning_content"] = step["thought"]
    if step["action"]:
        call = f"call_{step['step']}"
        turn["tool_calls"] = [
            {"tool_call_id": call, "function_name": TOOL, "arguments": {"action": step["action"]}}
        ]
        result = {"source_call_id": call, "content": step["result"]}
        turn["observation"] = {"results": [{**result, "extra": {"refused": step["failed"]}}]}
    elif step["result"]:
        turn["observation"] = {"results": [{"content": step["result"]}]}
    # Of a step that asked again the log has the last call alone: how many there were stays open.
    if step["reply"] and len(step.get("decisions", [])) < 2:
        turn["llm_call_count"] = 1
    return turn


def _extra(played: Played, step: dict[str, Any]) -> dict[str, Any]:
    extra = {
        "step": step["step"],
        "sub_goal": step["sub_goal"],
        "belief": step["belief"],
        "rules": sorted(shown_rules(step)),
        "memories": [r["entry"].get("id", "") for r in in_prompt(step, played.settings)],
        "proposal": step.get("proposal", step["action"]),
        "decisions": step.get("decisions", []),
        "judged": step.get("judged", []),
        "lacked": step.get("lacked", ""),
    }
    if played.prompts:
        extra["prompt"] = [{"role": role, "content": text} for role, text in played.messages(step)]
    return extra


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


ATIF, CHAT = "atif", "chat"
"""A document for each episode; and lines to learn from, of won episodes only: ``export_chat``."""


class Exported(NamedTuple):
    """What was written, and how many episodes have no step log that can be read."""

    episodes: int
    without_log: int


def export_run(
    run: Run, format: str, out: Path, conditions: Collection[str] = (), prompts: bool = False
) -> Exported:
    """Write the episodes of a run: JSON lines, or a folder where ``out`` has no suffix.

    ``conditions`` names those to write, all by default; ``prompts`` adds every prompt as it was
    sent, which is most of the bytes.
    """
    if format != ATIF:
        raise RpmsError(f"unknown format '{format}'; choose from {ATIF}, {CHAT}")
    episodes = Counted(run, known_conditions(run, conditions) or run.conditions, prompts)
    if out.suffix:
        _write_lines(out, map(trajectory, episodes))
    else:
        for played in episodes:
            _write_lines(out / f"{played.name}.json", [trajectory(played)])
    return Exported(episodes.episodes, episodes.without_log)


def known_conditions(run: Run, typed: Collection[str]) -> Collection[str]:
    """The labels that were meant; refused where the run has none of that name."""
    conditions = [find_label(label, run.conditions) for label in typed]
    if unknown := set(conditions) - set(run.conditions):
        raise RpmsError(
            f"no condition '{min(unknown)}' in {run.folder}; it has {', '.join(run.conditions)}"
        )
    return conditions


class Counted:
    """The episodes of some conditions with their logs, one at a time, counted on the way."""

    def __init__(self, run: Run, conditions: Collection[str], prompts: bool) -> None:
        """Nothing is read yet."""
        self.run, self.conditions, self.prompts = run, conditions, prompts
        self.episodes = self.without_log = 0

    def __iter__(self) -> Iterator[Played]:
        """Those that have a log with a step in it."""
        for episode in self.run.episodes.values():
            if episode.condition not in self.conditions:
                continue
            log = read_log(self.run.log_file(episode))
            if log and log["steps"]:
                self.episodes += 1
                yield Played(self.run, episode, log, self.prompts)
            else:
                self.without_log += 1


def _write_lines(file: Path, documents: Iterable[dict[str, Any]]) -> None:
    """Whole or not at all."""
    with whole_file(file) as lines:
        for document in documents:
            # Plain ASCII: some readers take a line separator inside a text for a line's end.
            lines.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
