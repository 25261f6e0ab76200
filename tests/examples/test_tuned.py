"""Samples for tuning: the very prompts of all four conditions, and replies in the reply format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rpms.nodes.manual import load_manual
from rpms.nodes.reply import read_action

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.engine
def test_samples_are_prompts_of_all_conditions_with_readable_replies(tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    command = [sys.executable, str(ROOT / "examples" / "tuned" / "samples.py"), "4", str(out)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    texts = ["\n".join(message["content"] for message in row["prompt"]) for row in rows]
    marks = {("[RULES" in text, "[Past Experience" in text) for text in texts}
    assert marks == {(False, False), (True, False), (False, True), (True, True)}
    for row in rows:
        assert row["prompt"][-1]["role"] == "user"
        assert read_action(row["reply"], "alfworld", load_manual("alfworld")).action
