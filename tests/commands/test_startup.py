"""What starting loads. How long it takes is for ``tools.bench --only startup`` to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rpms import __all__, __version__

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "alfworld", "fast_downward", "httpx", "jinja2", "langchain", "langchain_core", "langgraph",
    "numpy", "openai", "py4j", "pydantic", "rapidfuzz", "rich", "scienceworld", "scipy",
    "textworld", "yaml",
}  # fmt: skip
PROGRAM = """
import json, runpy, sys
try:
    {program}
except SystemExit as left:
    assert not left.code, left.code
loaded = [name for name in sys.modules if "." not in name or name.startswith("rpms.")]
print("\\n" + json.dumps(loaded))
"""


def loaded_by(program: str) -> tuple[str, set[str]]:
    """What a program prints, and the modules it leaves loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(program=program)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    told, _, modules = done.stdout.rstrip().rpartition("\n")
    return told, set(json.loads(modules))


def command(*words: str) -> str:
    return f"sys.argv = ['rpms', *{words}]; runpy.run_module('rpms', run_name='__main__')"


def test_the_import_loads_nothing_else() -> None:
    _, modules = loaded_by("import rpms")
    assert {name for name in modules if name.startswith("rpms.")} == set()
    assert not modules & HEAVY


@pytest.mark.parametrize("words", [("--help",), ("--version",)], ids=" ".join)
def test_the_command_line_loads_only_itself(words: tuple[str, ...]) -> None:
    told, modules = loaded_by(command(*words))
    assert told.startswith(f"rpms {__version__}" if words == ("--version",) else "Usage: ")
    assert not modules & HEAVY
    ours = {name.split(".")[1] for name in modules if name.startswith("rpms.")}
    assert not ours & {"envs", "evals", "graph", "memory_store", "models", "nodes", "rules"}


def test_what_was_meant_to_be_heavy_is_loaded_when_it_is_used() -> None:
    """The lists above hold the names that matter, or the tests would pass for nothing."""
    _, modules = loaded_by("from rpms import run_episode, load_manual; load_manual('alfworld')")
    assert {"langgraph", "langchain_core", "pydantic", "yaml"} <= modules
    assert "rpms.graph" in modules


def test_every_public_name_is_there() -> None:
    told, _ = loaded_by("import rpms; print(all(hasattr(rpms, name) for name in rpms.__all__))")
    assert told.strip() == "True" and "run_episode" in __all__
