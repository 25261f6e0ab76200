"""What a run has written so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rpms.evals.run_folder import EPISODES


def lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / EPISODES
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def keys(folder: Path) -> list[tuple[str, str]]:
    return [(line["condition"], line["task"]) for line in lines(folder)]


def histories(folder: Path) -> dict[tuple[str, str], list[str]]:
    return {
        (line["condition"], line["task"]): [turn["action"] for turn in line["history"]]
        for line in lines(folder)
    }
