"""``--json``: every command that docs/api.md names has it, no other has, and each was run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from rpms.commands.main import app
from rpms.envs import get_environment
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
SENTENCE = re.search(
    r"`--json` prints one JSON document: (.*?) have it", PAGE.read_text(encoding="utf-8"), re.S
)
NAMED = re.findall(r"`([^`]+)`", SENTENCE[1] if SENTENCE else "")
WORLD = ("--env", "rpms.commands.world_template.world:WORLD")
# What each is run with, and something that its document has.
RUNS: dict[str, tuple[tuple[str, ...], str]] = {
    "run": (("--max-steps", "2", *WORLD), "failure_mode"),
    "eval": (("--out", "OUT", "--conditions", "A", "--limit", "1", "--workers", "0", *WORLD),
             "tables"),
    "report": (("RUN",), "tables"),
    "diff-arms": (("D", "C", "--limit", "1", "--steps", "2", *WORLD), "share"),
    "worlds": ((), "name"),
    "tasks": (("--limit", "2", *WORLD), "goal"),
    "plans": ((), "arms"),
    "settings": ((), "paper"),
    "models list": ((), "usable"),
    "memory stats": ((str(get_environment("alfworld").memory),), "goal_types"),
    "rules check": (WORLD, "problems"),
    "rules audit": (("--games", "1", *WORLD), "predictions"),
}  # fmt: skip


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{name} ")
        yield f"{before}{name}", command


def test_the_page_names_those_that_have_it() -> None:
    able = [name for name, command in commands(typer.main.get_command(app))
            if any("--json" in option.opts for option in command.params)]  # fmt: skip
    # An audit has one object a line; tests/commands/test_audit.py reads them.
    assert NAMED and sorted([*NAMED, "audit"]) == sorted(able) == sorted([*RUNS, "audit"])


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    wins = {"A": [True, False], "D": [True, True]}
    return str(write_run(tmp_path_factory.mktemp("json") / "run", wins))


@pytest.mark.parametrize("name", NAMED)
def test_it_is_one_document_and_nothing_else(
    name: str, rpms: Rpms, run_folder: str, tmp_path: Path
) -> None:
    words, has = RUNS[name]
    places = {"RUN": run_folder, "OUT": str(tmp_path / "out")}
    done = rpms(*name.split(), *(places.get(word, word) for word in words), "--json")
    assert done.code == 0, done.err
    assert f'"{has}"' in json.dumps(json.loads(done.out)) and done.err == ""
