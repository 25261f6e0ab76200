"""Where things lie in a run folder; the writer and the readers share this and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

MANIFEST = "manifest.json"
EPISODES = "episodes.jsonl"
DROPPED = "dropped.jsonl"
STEPS = "steps"


class JobKey(NamedTuple):
    """What names an episode within a run: its arm, its task, which repeat, which trial."""

    condition: str
    task: str
    repeat: int = 1
    trial: int = 1


def key_of(line: Mapping[str, Any]) -> JobKey:
    """Which episode a line tells of; runs older than repeats and trials had one of each."""
    return JobKey(line["condition"], line["task"], line.get("repeat", 1), line.get("trial", 1))


def slug(text: str) -> str:
    """A file name for any label or task id; the checksum keeps similar ones apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:80]
    return f"{plain}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}"


def step_log_file(folder: Path, condition: str, task: str, repeat: int = 1, trial: int = 1) -> Path:
    """Where the steps of one episode are."""
    which = "" if repeat == trial == 1 else f".{repeat}.{trial}"
    return folder / STEPS / slug(condition) / f"{slug(task)}{which}.json.gz"
