"""An episode as an ATIF trajectory (Agent Trajectory Interchange Format, from Harbor).

Written against ATIF v1.7, the first version that has all the fields used here; readers of later
versions accept it. https://harborframework.com/docs/trajectory-format
"""

from __future__ import annotations

from typing import Any

from rpms.evals.export.played import AGENT, TOOL, Played
from rpms.evals.refusals import in_prompt, shown_rules

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
    one = played.episode
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
            total_prompt_tokens=one.prompt_tokens,
            total_completion_tokens=one.output_tokens,
            total_cached_tokens=one.cached_tokens,
            total_cost_usd=one.cost_usd,
            total_steps=one.steps,
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
    found = [{"timestamp": began, "source": "system", "message": text} for text in system]
    task = f"{first['observation']}\n\n{played.episode.goal}"
    found.append({"timestamp": began, "source": "user", "message": task})
    times = played.times()
    return [*found, *(_turn(played, step, time.isoformat()) for step, time in zip(
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
