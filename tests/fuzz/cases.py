"""Cases by kind: each a command line, and the files and variables that lie ready for it.

Command lines are drawn from the command tree itself: a new command or option is in the game at
once. What would take long, start processes or reach for a network is kept from doing so by words
put before or behind; see ``BEFORE`` and ``BEHIND``.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml
from typer.main import get_command

from rpms.commands import main as cli
from rpms.envs import get_environment
from rpms.memory_store.snapshot import read_snapshot, write_snapshot
from rpms.rules.manual import RULES_FOLDER
from tests.evals.sample_runs import write_run
from tests.fuzz.damage import (
    LAID_OUT,
    NUMBERS,
    PLACES,
    WORDS,
    damaged_json,
    damaged_lines,
    damaged_yaml,
    lay_out,
    put_something_else,
    scarred,
)

Words = tuple[str, ...]

# A hostile option given later wins over these, which keep what is possible small.
SMALL = ("--workers", "0", "--limit", "1", "--max-steps", "1")
BEFORE: dict[Words, Words] = {
    ("eval",): ("--out", "out", "--conditions", "A", "--no-cache", *SMALL),
    ("learn",): ("--out", "memory.jsonl", *SMALL),
    ("export",): ("--out", "out.jsonl", "--format", "chat", "--workers", "0", "--limit", "1"),
    ("rules", "learn"): ("--out", "rules", "--steps", "1"),
    ("tasks",): ("--limit", "1"),
    ("rules", "check"): ("--env", "alfworld"),
}
# These play for seconds, or ask a network, as soon as all their words are right.
BEHIND: dict[Words, Words] = {
    ("run",): ("--split", "nowhere"),
    ("demo",): ("--conditions", "nowhere"),
    ("models", "pull"): ("--nowhere",),
    ("rules", "audit"): ("--split", "nowhere"),
}
# And these, which play little, do so now and then.
MOSTLY_BEHIND: dict[Words, Words] = {
    ("eval",): ("--split", "nowhere"),
    ("learn",): ("--split", "nowhere"),
}
SELDOM = 0.1
LEFT_OUT = {"--ray", "--help", "--version"}
"""A cluster is not started; help and version are all alike."""


TREE = get_command(cli.app)


def commands(tree: Any = TREE, above: Words = ()) -> Iterator[tuple[Words, Any]]:
    """Every command that does something, by the words that name it."""
    below = getattr(tree, "commands", None)
    if below is None:
        yield above, tree
        return
    for name, command in sorted(below.items()):
        yield from commands(command, (*above, name))


def value(chance: Random) -> str:
    """One word."""
    return chance.choice(chance.choice((NUMBERS, WORDS, WORDS, (*PLACES, *LAID_OUT))))


def command_line(chance: Random, known: Sequence[tuple[Words, Any]]) -> list[str]:
    """One command with some of its options, in any order, and sometimes words too many."""
    name, command = chance.choice(known)
    words: list[str] = []
    options = [option for option in command.params if not LEFT_OUT & {*option.opts}]
    count = min(len(options), chance.choice((0, 1, 1, 1, 2, 3, 5)))
    for option in chance.sample(options, k=count):
        if option.param_type_name == "argument":
            words.append(value(chance))
            continue
        words.append(chance.choice([*option.opts, *option.secondary_opts]))
        if not getattr(option, "is_flag", False):
            words.append(value(chance))
    if chance.random() < 0.1:
        words.append(value(chance))
    if name == ("models", "pull"):
        words = [value(chance)]
    behind = BEHIND.get(name, () if chance.random() < SELDOM else MOSTLY_BEHIND.get(name, ()))
    return [*name, *BEFORE.get(name, ()), *words, *behind]


PLAY = f"eval --conditions A --no-cache {' '.join(SMALL)}"
ABOUT_RUNS = (
    "report run", "report run --json", "compare run run", f"{PLAY} --out run",
    "export run --format atif --out out.jsonl", "export run --format atif --prompts --out out",
    "export run --format chat --out out.jsonl", "rules learn --from-runs run --out rules",
    "learn --from-runs run --out m.jsonl --allow x",
)  # fmt: skip
ABOUT_RULES = (
    "rules check --rules rules",
    "rules show --type pick_and_place_simple --about mug --rules rules",
)
ABOUT_MEMORIES = (
    "memory check own.jsonl", "memory stats own.jsonl", "memory stats own.jsonl --json",
    "memory show own.jsonl --type success --goal heat",
    f"{PLAY} --out out --conditions C --memory own.jsonl",
)  # fmt: skip
PRICED = {"RPMS_PRICES": "own.yaml", "OPENAI_API_KEY": "x"}
TURNS = [
    {"step": 1, "thought": "", "action": "go to shelf 1", "failed": False,
     "observation": "You arrive at shelf 1. On the shelf 1, you see a mug 1."},
    {"step": 2, "thought": "", "action": "take mug 1 from shelf 1", "failed": False,
     "observation": "You pick up the mug 1 from the shelf 1."},
]  # fmt: skip
LINES = {(label, number): {"history": TURNS} for label in "AB" for number in range(2)}
PLAN = {"env": "alfworld", "split": "nowhere", "limit": 1, "tasks": [], "types": [],
        "settings": {"max_steps": 1, "model": "sim", "theta": 0.5}, "varies": ["theta"],
        "extends": "ablation", "about": "two",
        "arms": {"A": {"condition": "A"},
                 "mine": {"condition": "B", "scf": "off", "k": 2, "memory_round": 0}}}  # fmt: skip
PRICES = {"date": "2030-01-01", "models": {"openai:y": {"input": 1, "cached": 0.5, "output": 2}}}
MINE = {"tier": "mine", "after": "domain", "rules": [
    {"id": "M-1", "text": "Look twice.", "for": ["all"], "critical": True}]}  # fmt: skip
Damage = Callable[[Random, bytes], bytes]


class Case(NamedTuple):
    """What is run, and under which environment variables."""

    words: list[str]
    variables: Mapping[str, str]


class Own(NamedTuple):
    """A good file of the user's own, how it is damaged, and commands that read it."""

    name: str
    data: bytes
    damage: Damage
    lines: Sequence[str]


def hurt(chance: Random, file: Path, damage: Damage) -> None:
    """A file as it is found after something happened to it, or something else in its place."""
    if chance.random() < 0.1:
        put_something_else(chance, file)
    else:
        file.write_bytes(damage(chance, file.read_bytes()))


def line_case(chance: Random, folder: Path) -> Case:
    """Any words at all."""
    words = command_line(chance, _commands())
    if {*words} & {*LAID_OUT}:
        lay_out(folder)
    return Case(words, {})


@cache
def _commands() -> list[tuple[tuple[str, ...], Any]]:
    return list(commands())


def run_case(chance: Random, folder: Path) -> Case:
    """A run folder that something happened to."""
    run, line = folder / "run", chance.choice(ABOUT_RUNS)
    if line.startswith("eval"):
        shutil.copytree(_played(), run)
    else:
        split = chance.choice(("generated_unseen", "generated_seen"))
        write_run(run, {"A": [True], "B": [True, False]}, split=split, lines=LINES)
        for file in (run / "manifest.json", run / "episodes.jsonl"):
            file.write_text(re.sub(r"in shelf \d+", "in shelf", file.read_text()))
    hurt(chance, *chance.choice((
        (run / "manifest.json", damaged_json), (run / "episodes.jsonl", damaged_lines),
        (chance.choice(sorted(run.rglob("*.json.gz"))), _damaged_log),
    )))  # fmt: skip
    return Case(line.split(), {})


@cache
def _played() -> Path:
    """A small run that was really played, once for every process."""
    folder = Path(tempfile.mkdtemp()) / "run"
    with redirect_stdout(StringIO()):
        TREE([*PLAY.split(), "--out", str(folder)], standalone_mode=False)
    return folder


def _damaged_log(chance: Random, data: bytes) -> bytes:
    if chance.random() < 0.3:
        return scarred(chance, data)
    return gzip.compress(damaged_json(chance, gzip.decompress(data)), compresslevel=1)


def file_case(chance: Random, folder: Path) -> Case:
    """A file of the user's own that something happened to."""
    own = chance.choice(_own_files())
    file = folder / own.name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(own.data)
    hurt(chance, file, own.damage)
    line = chance.choice(own.lines)
    return Case(line.split(), PRICED if "--budget" in line else {})


@cache
def _own_files() -> list[Own]:
    """Memories, rules, plans, price lists and lists of tasks."""
    world = get_environment("alfworld")
    _, entries = read_snapshot(world.memory)
    kinds = {entry.type: entry for entry in entries}
    write_snapshot(Path("small.jsonl"), "alfworld", [*kinds.values()])
    tiers: dict[str, Any] = {"mine": MINE}
    for name, place in (
        ("universal", RULES_FOLDER), ("domain", world.rules), ("environment", world.rules),
    ):  # fmt: skip
        tier = yaml.safe_load((place / f"{name}.yaml").read_text())
        tiers[name] = {key: _shortened(part) for key, part in tier.items()}
    tasks = "\n".join(WORDS).encode(errors="replace")

    def documents(document: Any, *lines: str, name: str = "own.yaml") -> Own:
        return Own(name, yaml.safe_dump(document).encode(), damaged_yaml, lines)

    return [
        Own("own.jsonl", Path("small.jsonl").read_bytes(), damaged_lines, ABOUT_MEMORIES),
        *(documents(tier, *ABOUT_RULES, name=f"rules/{name}.yaml") for name, tier in tiers.items()),
        documents(PLAN, f"eval --no-cache {' '.join(SMALL)} --out out --plan own.yaml"),
        documents(PRICES, f"{PLAY} --out out --model openai:x --budget-usd 1"),
        Own("own.yaml", tasks, scarred, [f"{PLAY} --out out --tasks @own.yaml --split nowhere"]),
    ]  # fmt: skip


def _shortened(part: Any) -> Any:
    """So much of each part of a long file is enough to damage."""
    if isinstance(part, dict):
        return dict(list(part.items())[:2])
    return part[:2] if isinstance(part, list) else part


KINDS: dict[str, tuple[Callable[[Random, Path], Case], int]] = {
    "line": (line_case, 620),
    "file": (file_case, 340),
    "run": (run_case, 40),
}
"""How cases of each kind are made, and how many of a thousand are of it."""
