"""A run folder in formats that other tools read: one JSON document for each episode.

Everything goes to files and nothing is sent anywhere. Episodes are read, written and forgotten
one by one, so that a run of any size needs the memory of one episode. ATIF (Agent Trajectory
Interchange Format, from Harbor) is written as v1.7, the first version that has all the fields used
here; readers of later versions accept it. https://harborframework.com/docs/trajectory-format
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.conditions import find_label
from rpms.evals.records import Episode
from rpms.evals.run_folder import Run, read_log
from rpms.evals.step_analysis import in_prompt, shown_rules
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import whole_file
from rpms.vocabulary.turn import Message

AGENT = "rpms"
TOOL = "act"
"""What other formats take for a tool: playing one action in the world."""


class Played(NamedTuple):
    """A finished episode, with a log of at least one step."""

    run: Run
    episode: Episode
    log: dict[str, Any]

    @property
    def name(self) -> str:
        """Tells it apart from every other episode of the run, as a file name."""
        file = self.run.log_file(self.episode).relative_to(self.run.folder)
        return "-".join([*file.parts[1:-1], file.name.removesuffix(".json.gz")])

    @property
    def began(self) -> datetime:
        """When the episode began; the run's own beginning where that was not noted."""
        began = datetime.fromisoformat(self.episode.started or self.run.manifest.created)
        return began if began.tzinfo else began.replace(tzinfo=UTC)


def prompt_of(log: Mapping[str, Any], step: Mapping[str, Any]) -> list[Message]:
    """A step's prompt; empty where the episode broke off before it."""
    texts = log["messages"]
    return [Message(role=role, content=texts[place]) for role, place in step.get("prompt", [])]


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


def trajectory(played: Played, prompts: bool = False) -> dict[str, Any]:
    """The whole episode: instructions, task, and a step for each reply of the model.

    ``prompts`` adds every prompt as it was sent, which is most of the bytes.
    """
    run, episode, _ = played
    manifest, settings = run.manifest, run.settings(episode.condition)
    # The version that played, not that of who exports; and the id is one over all runs.
    version, name = manifest.commit_at(episode.started), f"{manifest.created}/{played.name}"
    about = ("task", "type", "condition", "goal", "success", "score", "failure_mode", "error",
             "invalid_actions")  # fmt: skip
    return {
        "schema_version": SCHEMA,
        "session_id": name,
        "trajectory_id": name,
        "agent": {
            "name": AGENT,
            "version": version,
            "model_name": run.model(episode.condition),
            "tool_definitions": [ACT],
            "extra": {name: settings[name] for name in SETTINGS if name in settings},
        },
        "steps": [
            {"step_id": number, **step}
            for number, step in enumerate(_steps(played, prompts), start=1)
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
        "extra": {
            "env": manifest.env,
            "split": manifest.split,
            **{field: getattr(episode, field) for field in about},
            "commit": version,
            "model_label": manifest.model_label,
        },
    }


def _steps(played: Played, prompts: bool) -> Iterator[dict[str, Any]]:
    """What the model was told first, then what it did.

    The knowledge blocks change from prompt to prompt; a step's extras name what was in them. Only
    how long a call took is on record: times are as if calls had followed without a pause.
    """
    log, time = played.log, played.began
    first = log["steps"][0]
    for message in prompt_of(log, first):
        if message["role"] == "system":
            yield {"timestamp": time.isoformat(), "source": "system", "message": message["content"]}
    task = f"{first['observation']}\n\n{played.episode.goal}"
    yield {"timestamp": time.isoformat(), "source": "user", "message": task}
    settings = played.run.settings(played.episode.condition)
    for step in log["steps"]:
        extra = _extra(step, settings)
        if prompts:
            extra["prompt"] = prompt_of(log, step)
        yield {"timestamp": time.isoformat(), **_turn(step), "extra": extra}
        time += timedelta(seconds=step["seconds"])


def _turn(step: Mapping[str, Any]) -> dict[str, Any]:
    usage = step["usage"]
    turn: dict[str, Any] = {
        "source": "agent",
        "message": step["reply"],
        "metrics": _present(
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["output_tokens"],
            cached_tokens=usage["cached_tokens"],
            cost_usd=step.get("cost_usd"),
        ),
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


def _extra(step: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "step": step["step"],
        "sub_goal": step["sub_goal"],
        "belief": step["belief"],
        "rules": sorted(shown_rules(step)),
        "memories": [recall["entry"].get("id", "") for recall in in_prompt(step, settings)],
        "proposal": step.get("proposal", step["action"]),
        "decisions": step.get("decisions", []),
        "judged": step.get("judged", []),
        "lacked": step.get("lacked", ""),
    }


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
    labels = known_conditions(run, conditions)
    episodes = logged_episodes(run, labels)
    if out.suffix:
        written = _write_lines(out, (trajectory(played, prompts) for played in episodes))
    else:
        written = sum(
            _write_lines(out / f"{played.name}.json", [trajectory(played, prompts)])
            for played in episodes
        )
    chosen = sum(episode.condition in labels for episode in run.episodes.values())
    return Exported(written, chosen - written)


def known_conditions(run: Run, typed: Collection[str]) -> Collection[str]:
    """The labels that were meant, all by default; refused where the run has none of that name."""
    conditions = [find_label(label, run.conditions) for label in typed]
    if unknown := set(conditions) - set(run.conditions):
        raise RpmsError(
            f"no condition '{min(unknown)}' in {run.folder}; it has {', '.join(run.conditions)}"
        )
    return conditions or run.conditions


def logged_episodes(run: Run, labels: Collection[str]) -> Iterator[Played]:
    """The episodes of some conditions, one at a time: those that have a log with a step in it."""
    for episode in run.episodes.values():
        log = read_log(run.log_file(episode)) if episode.condition in labels else None
        if log and log["steps"]:
            yield Played(run, episode, log)


def _write_lines(file: Path, documents: Iterable[dict[str, Any]]) -> int:
    """Whole or not at all; how many there were."""
    count = 0
    with whole_file(file) as lines:
        for document in documents:
            lines.write(packed(document))
            count += 1
    return count


def packed(document: Mapping[str, Any]) -> bytes:
    """Plain ASCII: some readers take a line separator inside a text for a line's end."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"
