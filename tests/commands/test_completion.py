"""Shell completion, asked for as bash asks: the words so far, and which of them is being typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from rpms import RunContext
from rpms.commands import completion
from rpms.envs import get_environment
from rpms.evals.conditions import load_presets
from rpms.evals.protocol_card import load_protocols
from rpms.models.opening import LABELS
from rpms.vocabulary.context import CONDITIONS

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.argv[0] = "rpms"
from rpms.commands.main import main
main()
"""
# What --install-completion puts into a shell's start file, then a press of the tab key.
BASH = """
source <(_RPMS_COMPLETE=source_bash rpms)
complete -p rpms
COMP_WORDS=({words} "{last}")
COMP_CWORD=$(({count} - 1))
_rpms_completion rpms
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "bin" / "rpms"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def offered(shell: dict[str, str], folder: Path, line: str) -> list[str]:
    *words, last = line.split(" ")
    script = BASH.format(words=" ".join(words), last=last, count=len(words) + 1)
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder, env=shell, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    registered, *found = done.stdout.split()[6:] or [""]
    assert done.stdout.startswith("complete -o default -F _rpms_completion rpms"), registered
    return [registered, *found]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("rpms eval --conditions A,b+v", ["A,b+verify"]),
        ("rpms run --env scienceworld --split dev", ["dev", "dev_mini"]),
        ("rpms report ", ["mine", "runs/main"]),
        ("rpms mod", ["models"]),
        ("rpms learn --memory-control e", ["empty"]),
    ],
)
def test_bash_is_offered_names(
    shell: dict[str, str], tmp_path: Path, line: str, found: list[str]
) -> None:
    for run in ("mine", "runs/main"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "manifest.json").touch()
    assert offered(shell, tmp_path, line) == found


def test_the_names_are_those_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    conditions = completion.condition(context, "")
    assert len({RunContext().under(name).name for name in conditions}) == len(conditions) - 1
    assert {*CONDITIONS, "B+verify", "D+policy"} < {*conditions}  # which is E
    assert completion.presets(context, "") == list(load_presets())
    assert completion.protocols(context, "") == list(load_protocols())
    assert {*LABELS} < {*completion.models(context, "")}
    assert completion.splits(context, "") == list(get_environment("alfworld").splits())
    assert "F3,F4" in completion.goal_types(_in(context, "scienceworld"), "F3,")


def _in(context: typer.Context, world: str) -> typer.Context:
    context.params["env"] = world
    return context


def test_run_folders_below_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for run in ("runs/main", "runs/more", "runs/deep/er"):
        Path(run).mkdir(parents=True)
        Path(run, "manifest.json").touch()
    context = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
    assert completion.runs(context, "runs/m") == ["runs/main", "runs/more"]
    assert completion.runs(context, "runs/") == ["runs/deep/er", "runs/main", "runs/more"]
