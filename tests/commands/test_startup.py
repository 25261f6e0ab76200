"""What starting loads; how long that takes is another matter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rpms import __all__

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "alfworld", "fast_downward", "httpx", "jinja2", "langchain", "langchain_core", "langgraph",
    "matplotlib", "numpy", "openai", "pandas", "py4j", "pydantic", "rapidfuzz", "rich",
    "scienceworld", "scipy", "textworld", "yaml",
}  # fmt: skip
PROGRAM = """
import json, runpy, sys
try:
    {program}
except SystemExit as ending:
    assert not ending.code, ending.code
loaded = [name for name in sys.modules if "." not in name or name.startswith("rpms.")]
print("\\n" + json.dumps(loaded))
"""


def loaded_by(program: str) -> tuple[str, set[str]]:
    """What a program prints, and the modules it leaves loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(program=program)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    printed, _, modules = done.stdout.rstrip().rpartition("\n")
    return printed, set(json.loads(modules))


def test_the_import_loads_nothing_else_and_has_every_name() -> None:
    _, modules = loaded_by("import rpms")
    assert {name for name in modules if name.startswith("rpms.")} == set()
    assert not modules & HEAVY
    # The lists above hold the names that matter, or the tests would pass for nothing.
    printed, modules = loaded_by("import rpms; print(all(hasattr(rpms, n) for n in rpms.__all__))")
    assert printed.strip() == "True" and "run_episode" in __all__
    assert {"langgraph", "langchain_core", "pydantic", "rpms.graph"} <= modules


def test_the_guard_loads_rules_and_vocabulary_and_nothing_else_of_ours() -> None:
    """Every module of it, as somebody's agent has it who plays in no world of ours."""
    program = (
        "import importlib, pkgutil, rpms.guard; from rpms.guard import *; "
        "[importlib.import_module(f'rpms.guard.{found.name}') "
        "for found in pkgutil.iter_modules(rpms.guard.__path__)]"
    )
    _, modules = loaded_by(program)
    ours = {name.split(".")[1] for name in modules if name.startswith("rpms.")}
    assert {"guard"} <= ours <= {"guard", "rules", "vocabulary"}
    assert not modules & {"numpy", "openai", "langchain_openai", "py4j", "scienceworld", "tau2"}


def test_the_command_line_loads_only_itself() -> None:
    words = "sys.argv = ['rpms', '--help']"
    printed, modules = loaded_by(f"{words}; runpy.run_module('rpms', run_name='__main__')")
    assert printed.startswith("Usage: ")
    assert not modules & HEAVY
    ours = {name.split(".")[1] for name in modules if name.startswith("rpms.")}
    assert not ours & {"envs", "evals", "graph", "memory_store", "models", "nodes", "rules"}


def test_nothing_but_a_report_needs_pandas_scipy_or_matplotlib() -> None:
    """An installation without the extra 'report': episodes run, and tools are guarded."""
    blocked = "sys.modules.update(dict.fromkeys(['pandas', 'scipy', 'matplotlib']))"
    episode = "rpms.run_episode(0, split='generated_unseen', context=context)['steps'] == 2"
    program = (
        f"{blocked}; import rpms, rpms.guard; "
        "[getattr(rpms, name) for name in rpms.__all__]; "
        f"context = rpms.RunContext.for_condition('D', max_steps=2); print({episode})"
    )
    printed, _ = loaded_by(program)
    assert printed.strip() == "True"
