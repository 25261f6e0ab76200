"""Each example of a variant of one's own, run as its page says: ten tasks, two arms, a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rpms.evals.run_files import read_run

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "variants"


@pytest.mark.engine
@pytest.mark.parametrize(
    ("script", "labels", "told"),
    [
        ("own_scf", ["D", "mine"], "mine has nodes scf from own_scf:stages ("),
        ("own_manual", ["mine", "B without U-FAIL-001"], "rules: "),
        ("own_model", ["B", "B wanderer"], "B wanderer has model from own_model:make_model ("),
        ("rival_memory", ["D", "D trajectories"], "Memory of D trajectories: learned from sim"),
    ],
)
def test_an_example_is_evaluated_and_says_what_it_swapped(
    script: str, labels: list[str], told: str, tmp_path: Path
) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{script}.py")],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert told in done.stdout and "## Results by condition" in done.stdout
    folder = next((tmp_path / "runs").glob(script.replace("_", "-")))
    run = read_run(folder)
    assert run.conditions == labels and len(run.manifest.tasks) == 10 and run.complete
    assert all(len(run.judged(label)) == 10 for label in labels)


def test_the_overlay_of_the_example_is_in_the_prompt() -> None:
    code = (
        "import json, rpms\n"
        "from rpms.nodes.manual import load_manual\n"
        f"manual = load_manual('alfworld', {str(FOLDER / 'own_manual')!r})\n"
        "print(json.dumps([rule.id for rule in manual.domain.rules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert "MY-SEARCH-001" in json.loads(done.stdout)
