"""Cases by kind: each a command line, and the files and variables that lie ready for it."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from rpms.envs import get_environment
from rpms.envs.alfworld.tasks import sample_home
from rpms.memory_store.snapshot import read_snapshot, write_snapshot
from rpms.rules.manual import RULES_FOLDER
from tests.evals.sample_runs import write_run
from tests.fuzz.commands import SMALL, TREE, command_line, commands
from tests.fuzz.documents import (
    damaged_json,
    damaged_lines,
    damaged_yaml,
    put_something_else,
    scarred,
)
from tests.fuzz.values import LAID_OUT, NUMBERS, PLACES, WORDS, lay_out

NO_VARIABLES: Mapping[str, str] = {}
ELSE = 0.1
"""How often something else lies in the place of a file."""
KEPT = 2
"""So much of each part of a long file is enough to damage."""
Damage = Callable[[Random, bytes], bytes]


class Case(NamedTuple):
    """What is run, and under which environment variables."""

    words: list[str]
    variables: Mapping[str, str] = NO_VARIABLES


def hurt(chance: Random, file: Path, damage: Damage) -> None:
    """A file as it is found after something happened to it."""
    if chance.random() < ELSE:
        put_something_else(chance, file)
    else:
        file.write_bytes(damage(chance, file.read_bytes()))


def line_case(chance: Random, folder: Path) -> Case:
    """Any words at all."""
    words = command_line(chance, _commands())
    if {*words} & {*LAID_OUT}:
        lay_out(folder)
    return Case(words)


@cache
def _commands() -> list[tuple[tuple[str, ...], Any]]:
    return list(commands())


def run_case(chance: Random, folder: Path) -> Case:
    """A run folder that something happened to."""
    run, words = folder / "run", chance.choice(_about_runs(folder))
    if words[0] == "eval":
        shutil.copytree(_played(), run)
    else:
        split = chance.choice(("generated_unseen", "generated_seen"))
        write_run(run, {"A": [True], "B": [True, False]}, split=split, lines=LINES)
        for file in (run / "manifest.json", run / "episodes.jsonl"):
            file.write_text(re.sub(r"in shelf \d+", "in shelf", file.read_text()))
    logs = sorted(run.rglob("*.json.gz"))
    match chance.randrange(3):
        case 0:
            hurt(chance, run / "manifest.json", damaged_json)
        case 1:
            hurt(chance, run / "episodes.jsonl", damaged_lines)
        case _:
            hurt(chance, chance.choice(logs), _damaged_log)
    return Case(words)


TURNS = [
    {"step": 1, "thought": "", "action": "go to shelf 1", "failed": False,
     "observation": "You arrive at shelf 1. On the shelf 1, you see a mug 1."},
    {"step": 2, "thought": "", "action": "take mug 1 from shelf 1", "failed": False,
     "observation": "You pick up the mug 1 from the shelf 1."},
]  # fmt: skip
LINES = {(label, number): {"history": TURNS} for label in "AB" for number in range(2)}


def _about_runs(folder: Path) -> list[list[str]]:
    other = str(folder / "run")
    return [
        ["report", other], ["report", other, "--json"], ["compare", other, other],
        ["export", other, "--format", "atif", "--out", str(folder / "out.jsonl")],
        ["export", other, "--format", "atif", "--prompts", "--out", str(folder / "out")],
        ["export", other, "--format", "chat", "--out", str(folder / "out.jsonl")],
        ["learn", "--from-runs", other, "--out", str(folder / "m.jsonl"), "--allow", "x"],
        ["rules", "learn", "--from-runs", other, "--out", str(folder / "rules")],
        [*PLAY, "--out", other],
    ]  # fmt: skip


PLAY = ["eval", "--conditions", "A", "--no-cache", *SMALL]


@cache
def _played() -> Path:
    """A small run that was really played, once for every process."""
    folder = Path(tempfile.mkdtemp()) / "run"
    with redirect_stdout(StringIO()):
        TREE([*PLAY, "--out", str(folder)], standalone_mode=False)
    return folder


def _damaged_log(chance: Random, data: bytes) -> bytes:
    if chance.random() < 0.3:
        return scarred(chance, data)
    return gzip.compress(damaged_json(chance, gzip.decompress(data)), compresslevel=1)


def memory_case(chance: Random, folder: Path) -> Case:
    """A memory that something happened to."""
    file = folder / "memory.jsonl"
    file.write_bytes(_memory())
    hurt(chance, file, damaged_lines)
    return Case(chance.choice((
        ["memory", "check", str(file)], ["memory", "stats", str(file)],
        ["memory", "stats", str(file), "--json"], ["memory", "show", str(file)],
        ["memory", "show", str(file), "--type", "success", "--goal", "heat"],
    ) if chance.random() < 0.95 else (
        ["eval", "--out", str(folder / "out"), "--memory", str(file), "--conditions", "C",
         "--no-cache", *SMALL],
    )))  # fmt: skip


@cache
def _memory() -> bytes:
    """One entry of each type that is shipped, two of some."""
    _, entries = read_snapshot(get_environment("alfworld").memory)
    kinds: dict[str, list[Any]] = {}
    for entry in entries:
        kinds.setdefault(entry.type, []).append(entry)
    file = Path("small.jsonl")
    write_snapshot(file, "alfworld", [one for found in kinds.values() for one in found[:2]])
    return file.read_bytes()


def rules_case(chance: Random, folder: Path) -> Case:
    """Rule files of the user's own."""
    rules = folder / "rules"
    rules.mkdir()
    name = chance.choice(("universal", "domain", "environment", "mine"))
    file = rules / f"{name}.yaml"
    file.write_bytes(_tier(name))
    hurt(chance, file, damaged_yaml)
    kind = ["--type", "pick_and_place_simple", "--about", "mug"]
    return Case(chance.choice((
        ["rules", "check", "--rules", str(rules)], ["rules", "show", *kind, "--rules", str(rules)],
    )))  # fmt: skip


@cache
def _tier(name: str) -> bytes:
    if name == "mine":
        rule = {"id": "M-1", "text": "Look twice.", "for": ["all"], "critical": True}
        return yaml.safe_dump({"tier": "mine", "after": "domain", "rules": [rule]}).encode()
    own = RULES_FOLDER if name == "universal" else get_environment("alfworld").rules
    data = yaml.safe_load((own / f"{name}.yaml").read_text())
    return yaml.safe_dump({key: _shortened(part) for key, part in data.items()}).encode()


def _shortened(part: Any) -> Any:
    if isinstance(part, dict):
        return dict(list(part.items())[:KEPT])
    return part[:KEPT] if isinstance(part, list) else part


PLAN = {"env": "alfworld", "split": "nowhere", "limit": 1, "tasks": [], "types": [],
        "settings": {"max_steps": 1, "model": "sim", "theta": 0.5},
        "arms": {"A": {"condition": "A"},
                 "mine": {"condition": "B", "scf": "off", "k": 2}}}  # fmt: skip
PRESET = {"mine": {"about": "two", "conditions": [
    {"label": "A", "condition": "A"},
    {"label": "B k=2", "condition": "B", "set": {"k": 2}, "memory_round": 0}]}}  # fmt: skip
PRICES = {"date": "2030-01-01", "models": {"openai:y": {"input": 1, "cached": 0.5, "output": 2}}}


def plan_case(chance: Random, folder: Path) -> Case:
    """Plans, presets, price lists and lists of tasks."""
    file = folder / "own.yaml"
    base = ["eval", "--out", str(folder / "out"), *SMALL, "--no-cache"]
    match chance.randrange(4):
        case 0:
            file.write_text(yaml.safe_dump(PLAN))
            hurt(chance, file, damaged_yaml)
            return Case([*base, "--plan", str(file)])
        case 1:
            file.write_text(yaml.safe_dump(PRESET))
            hurt(chance, file, damaged_yaml)
            name = chance.choice((f"{file}:mine", str(file), f"{file}:other"))
            return Case([*base, "--split", "nowhere", "--preset", name])
        case 2:
            file.write_text(yaml.safe_dump(PRICES))
            hurt(chance, file, damaged_yaml)
            paid = ["--model", "openai:x", "--budget-usd", "1", "--conditions", "A"]
            return Case([*base, *paid], {"RPMS_PRICES": str(file), "OPENAI_API_KEY": "x"})
        case _:
            file.write_text("\n".join(chance.choices(WORDS, k=5)), errors="replace")
            hurt(chance, file, scarred)
            return Case([*base, "--tasks", f"@{file}", "--split", "nowhere"])


def game_case(chance: Random, folder: Path) -> Case:
    """A game file among the official ones."""
    game = folder / "data/json_2.1.1/valid_seen/pick_and_place_simple-Mug-None-Shelf-1/trial_1"
    game.mkdir(parents=True)
    file = game / "game.tw-pddl"
    file.write_text(_game())
    hurt(chance, file, _damaged_game)
    words = ["--split", "valid_seen"]
    played = ["eval", "--out", str(folder / "out"), *words, "--conditions", "A", "--no-cache"]
    chosen = chance.choice((["tasks", *words], ["tasks", *words, "--json"], [*played, *SMALL]))
    return Case(chosen, {"ALFWORLD_DATA": str(folder / "data")})


@cache
def _game() -> str:
    return sample_home("generated_seen", 1).game_file


def _damaged_game(chance: Random, data: bytes) -> bytes:
    if chance.random() < 0.5:
        return damaged_json(chance, data)
    game = json.loads(data)
    part = chance.choice(("pddl_domain", "pddl_problem", "grammar"))
    game[part] = scarred(chance, game[part].encode()).decode("utf-8", "replace")
    return json.dumps(game).encode()


VARIABLES = ("RPMS_CACHE", "XDG_CACHE_HOME", "ALFWORLD_DATA", "RPMS_PRICES", "HOME",
             "RPMS_RESPONSE_CACHE", "RPMS_ENGINE", "COLUMNS", "LINES", "NO_COLOR",
             "TERM")  # fmt: skip


def variable_case(chance: Random, folder: Path) -> Case:
    """A variable of the environment that makes no sense."""
    lay_out(folder)
    pool = chance.choice((NUMBERS, WORDS, (*PLACES, *LAID_OUT)))
    told = {chance.choice(VARIABLES): chance.choice(pool) for _ in range(chance.choice((1, 1, 2)))}
    base = ["eval", "--out", str(folder / "out"), *SMALL, "--conditions", "A"]
    return Case(chance.choice((
        ["tasks", "--limit", "1"], ["tasks", "--split", "valid_seen"], ["models", "list"], base,
        [*base, "--model", "openai:x", "--budget-usd", "1"], ["worlds"], ["rules", "check"],
        [*base, "--model", "local:nowhere"],
    )), {**told, "OPENAI_API_KEY": ""})  # fmt: skip


KINDS: dict[str, tuple[Callable[[Random, Path], Case], int]] = {
    "line": (line_case, 600),
    "memory": (memory_case, 200),
    "rules": (rules_case, 80),
    "plan": (plan_case, 60),
    "run": (run_case, 40),
    "game": (game_case, 5),
    "variable": (variable_case, 15),
}
"""How cases of each kind are made, and how many of a thousand are of it."""


def clear(folder: Path) -> None:
    """Nothing of a case stays; what nobody may read goes too."""
    shutil.rmtree(folder, ignore_errors=True)
