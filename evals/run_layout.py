"""Where things lie in a run folder; the writer and the readers share this and nothing else."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

MANIFEST = "manifest.json"
EPISODES = "episodes.jsonl"
STEPS = "steps"


def slug(text: str) -> str:
    """A file name for any label or task id; the checksum keeps similar ones apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:80]
    return f"{plain}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}"


def step_log_file(folder: Path, condition: str, task: str) -> Path:
    """Where the steps of one episode are."""
    return folder / STEPS / slug(condition) / f"{slug(task)}.json.gz"
