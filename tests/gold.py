"""Models that win by replaying a known solution, for tests that only need an episode to happen."""

from __future__ import annotations

import json
from pathlib import Path

from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.tasks import list_tasks
from rpms.models.controls import Replay


def household_gold(task: int, split: str = "generated_unseen") -> Replay:
    """The walkthrough that a generated game carries."""
    file = Path(list_tasks(split, task + 1)[task]["source"])
    actions = json.loads(file.read_text(encoding="utf-8"))["walkthrough"]
    return Replay(actions=[ENVIRONMENT.read_action(action) for action in actions])
