"""The entries of the paper's appendix, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.memory_store import parse_entry, write_snapshot

PAPER: list[dict[str, Any]] = [
    {
        "id": "success_000008",
        "type": "success",
        "goal_signature": "pick_heat_then_place_in_recep:mug:hot:cabinet",
        "state_signature": "holding=none",
        "sub_goal_type": "transformed",
        "precondition": {"holding": None, "action_type": "heat", "tool_location": "microwave 1"},
        "actions": [
            "open fridge 1", "go to countertop 1", "take mug 2 from countertop 1",
            "go to microwave 1", "open microwave 1", "heat mug 2 with microwave 1",
        ],
        "outcome": {"heat": "mug 2"},
        "success_count": 1,
    },
    {
        "id": "failure_000090",
        "type": "failure",
        "goal_signature": "pick_heat_then_place_in_recep:potato:hot:fridge",
        "state_signature": "holding=none|open=fridge 1,microwave 1",
        "failed_action": "take potato 1 from countertop 3",
        "failure_type": "precondition_not_met",
        "failure_message": "Nothing happens.",
        "corrective_rule": "must be at location and container must be open before taking",
        "occurrence_count": 3,
    },
    {
        "id": "schema_000222",
        "type": "schema",
        "action_template": "cool {object} with fridge 1",
        "action_type": "cool",
        "preconditions": ["holding target object", "at cool tool location"],
        "effects": ["object cooled", "still holding object"],
        "success_count": 1,
        "failure_count": 0,
        "confidence": 1.0,
    },
    {
        "id": "failure_000078",
        "type": "critical_failure",
        "goal_signature": "F3:melt:water",
        "state_signature": "room=kitchen|inventory=empty|progress=0",
        "failed_action": "focus on stove",
        "failure_message": "score = -100, terminated",
        "corrective_rule": "verify object identity matches task target before executing focus",
        "occurrence_count": 3,
        "retrieval_weight": 2.0,
    },
]  # fmt: skip


def refusals(file: Path, task: int, *refused: tuple[str, str]) -> Path:
    """A memory of refusals under the goal of a task: what the hand held, and what was refused."""
    env = get_environment("alfworld")
    goal = env.parse_goal(env.tasks("generated_unseen", task + 1)[task]["goal"])
    entries = [
        parse_entry({
            "id": f"failure_{number}", "type": "failure", "goal_signature": goal["signature"],
            "state_signature": f"holding={held}", "failed_action": action,
            "failure_message": "Nothing happens.", "corrective_rule": "not then",
        })
        for number, (held, action) in enumerate(refused)
    ]  # fmt: skip
    write_snapshot(file, "alfworld", entries)
    return file
