"""What is installed: one package, whole, beside whatever a project of its own has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from rpms import __version__

ROOT = Path(__file__).resolve().parents[2]
BUILD = ("pyproject.toml", "README.md", "LICENSE")
# A project as anyone might have it: every name is one of ours at the top of this repository.
PROJECT = {
    "models/__init__.py": "OURS = 'a table of customers'",
    "graph.py": "OURS = 'a plot'",
    "envs/__init__.py": "OURS = 'settings by machine'",
    "rules/__init__.py": "OURS = 'of the house'",
    "main.py": """
import json, sys
import envs, graph, models, rules
import rpms
from rpms import RunContext, run_episode
context = RunContext.for_condition("D", max_steps=6)
result = run_episode(0, split="generated_unseen", context=context)
assert graph.OURS == "a plot" and models.OURS and envs.OURS and rules.OURS
print(json.dumps([rpms.__file__, sys.modules["rpms.graph"].__file__, result["steps"]]))
""",
}


def run(command: Sequence[str], folder: Path, **env: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, as setuptools leaves a folder behind that a later build would include."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in BUILD:
        shutil.copyfile(ROOT / name, source / name)
    shutil.copytree(ROOT / "rpms", source / "rpms", ignore=shutil.ignore_patterns("__pycache__"))
    words = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out), "."]
    run([sys.executable, "-m", "pip", *words], source)
    (made,) = out.iterdir()
    return made


def test_it_holds_one_package_with_everything_in_it(wheel: Path) -> None:
    assert wheel.name == f"rpms-{__version__}-py3-none-any.whl", "something was compiled"
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"rpms-{__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"rpms", info}
    assert f"{info}/licenses/LICENSE" in names
    here = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "rpms").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"rpms/py.typed", "rpms/nodes/scf.py", "rpms/rules/universal.yaml"} <= here
    assert {name for name in names if name.startswith("rpms/")} == here


def test_it_needs_nothing_that_has_to_be_compiled(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        text = opened.read(f"rpms-{__version__}.dist-info/METADATA").decode()
    wanted = [line for line in text.splitlines() if line.startswith("Requires-Dist:")]
    always = [line for line in wanted if "extra ==" not in line]
    assert any("langgraph<" in line for line in always)
    assert not any(name in line for line in always for name in ("alfworld", "textworld", "spacy"))
    assert any("textworld" in line and 'extra == "textworld"' in line for line in wanted)


@pytest.mark.engine
def test_an_episode_is_played_beside_a_project_with_the_same_names(
    wheel: Path, tmp_path: Path
) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    words = ["install", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    run([sys.executable, "-m", "pip", *words], tmp_path)
    for name, text in PROJECT.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    told = run([sys.executable, "main.py"], project, PYTHONPATH=str(site))
    package, graph, steps = json.loads(told.splitlines()[-1])
    assert Path(package) == site / "rpms" / "__init__.py"
    assert Path(graph) == site / "rpms" / "graph" / "__init__.py"
    assert 0 < steps <= 6
    told = run([sys.executable, "-m", "rpms", "--version"], project, PYTHONPATH=str(site))
    assert told == f"rpms {__version__}\n"
