"""An error names the option that was typed, and a condition may be typed in small letters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rpms import RunContext, compare
from rpms.commands.option_errors import in_typed_words
from rpms.evals.arms import parse_arm
from rpms.evals.conditions import preset_contexts
from rpms.evals.evaluate import as_arms
from rpms.vocabulary.errors import BadSetting, RpmsError
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run

# A command, and options with a value that is wrong whatever else is given.
NAMES = {"--env": "mars", "--split": "mars"}
SETTINGS = {
    "--scf": "maybe", "--arbitration": "maybe", "--guard": "maybe", "--reasks": "-1",
    "--layout": "maybe", "--ceiling": "-1", "--examples": "3", "--max-steps": "-1",
    "--timeout": "-5", "--constrain": "maybe", "--context-tokens": "-1",
}  # fmt: skip
FILES = {"--memory": "nowhere.jsonl", "--rules": "nowhere", "--without-rule": "X-1"}
WRONG = {
    "run": NAMES | SETTINGS | FILES | {
        "--task": "nosuch", "--model": "gpt", "--condition": "F", "--memory-method": "mine",
        "--engine": "steam",
    },
    "eval --limit 1 --out run": NAMES | SETTINGS | FILES | {
        "--model": "gpt", "--conditions": "A,F", "--preset": "nope", "--arm": "x:k=-1",
        "--plan": "nope.yaml", "--protocol": "nope", "--memory-method": "mine", "--limit": "-1",
        "--tasks": "nosuch", "--types": "juggle", "--trials": "0", "--repeats": "0",
        "--workers": "-1", "--concurrency": "0", "--theta": "2", "--k": "-1",
        "--temperature": "nan", "--max-tokens": "-1", "--budget-usd": "-1",
        "--budget-tokens": "-1", "--engine": "steam", "--ray": "nowhere:1", "--seed": "x",
        "--out": "/proc/nowhere",
    },
    "learn --limit 1 --out out.jsonl": NAMES | {
        "--model": "gpt", "--rounds": "0", "--limit": "-1", "--method": "mine",
        "--from-runs": "nowhere", "--condition": "F", "--rules": "nowhere",
        "--without-rule": "X-1", "--workers": "-1", "--concurrency": "0", "--max-steps": "-1",
        "--timeout": "-5",
    },
    "export --expert --format chat --limit 1 --out out.jsonl": NAMES | FILES | {
        "--format": "tape", "--conditions": "F", "--per": "week", "--limit": "-1",
        "--mistakes": "2", "--workers": "-1", "--arm": "x:k=-1", "--seed": "x",
    },
    "rules check": {"--env": "mars", "--rules": "nowhere"},
    "rules show --type pick_and_place_simple": {
        "--type": "juggle", "--env": "mars", "--rules": "nowhere", "--without-rule": "X-1",
    },
    "rules learn --out out": {"--explore": "-1", "--from-runs": "nowhere"},
    "rules learn --explore 1 --out out": {"--steps": "-1", "--seed": "x", "--env": "mars"},
    "rules audit --games 1": NAMES | {"--games": "0", "--only": "juggle", "--seed": "x"},
    "tasks": NAMES | {"--limit": "-1"},
    "demo": NAMES | {"--tasks": "-1", "--conditions": "F"},
}  # fmt: skip
CASES = [
    (line, option, value)
    for line, options in WRONG.items()
    for option, value in options.items()
    if not (line.startswith("export") and option == "--without-rule")
]


@pytest.fixture
def rpms(rpms: Rpms, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rpms:
    monkeypatch.chdir(tmp_path)
    return rpms


@pytest.mark.parametrize(
    ("line", "option", "value"), CASES, ids=[f"{a.split(' --')[0]} {b} {c}" for a, b, c in CASES]
)
def test_an_error_names_the_option_that_was_typed(
    rpms: Rpms, line: str, option: str, value: str
) -> None:
    done = rpms(*line.split(), option, value)
    assert done.code == 2 and done.err.count("\n") == 1
    assert re.search(rf"{option}(?![\w-])", done.err), done.err


def test_what_was_not_typed_is_not_blamed() -> None:
    error = RpmsError("unknown split 'dev' of alfworld")
    assert in_typed_words(error, ["run", "--env", "alfworld", "--split=dev"]) == f"--split: {error}"
    assert in_typed_words(error, ["run", "--task", "3"]) == str(error)
    assert in_typed_words(RpmsError("x and yy"), ["--a", "yy", "--b", "yy"]) == "x and yy"
    bad = BadSetting("k", -1, "is not possible")
    assert in_typed_words(bad, ["eval", "--plan", "x.yaml"]) == "k=-1 is not possible"


def test_a_condition_in_small_letters(tmp_path: Path) -> None:
    assert RunContext.for_condition("b") == RunContext.for_condition("B")
    assert RunContext().under(" b+Verify ").name == "B+verify"
    assert list(as_arms("a, b+verify")) == ["A", "B+verify"]
    assert parse_arm("d", RunContext())[0] == "D"
    assert parse_arm("mine:condition=b", RunContext())[1].context.condition == "B"
    file = tmp_path / "own.yaml"
    file.write_text("own:\n  about: x\n  conditions:\n    - {label: mine, condition: b+verify}\n")
    assert preset_contexts(f"{file}:own", RunContext())["mine"].name == "B+verify"


def test_conditions_of_a_run_in_small_letters(rpms: Rpms, tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", {"A": [True] * 3, "D scf=off": [True] * 3})
    two = write_run(tmp_path / "two", {"A": [True] * 3, "D": [True] * 3})
    by_words = json.loads(rpms("compare", one, two, "--map", "d SCF=off=d", "--json").out)
    assert [row["condition"] for row in by_words["tables"]["summary"]["rows"]] == [
        "A baseline", "D full",
    ]  # fmt: skip
    assert compare([one, two], map={"d scf=off": "d"}).as_json() == by_words
    done = rpms("export", one, "--format", "atif", "--conditions", "d scf=OFF", "--out", "x.jsonl")
    assert done.code == 0, done.err
