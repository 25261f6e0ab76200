"""Whatever is wrong with what was typed is one line that names the option, and exit code 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rpms.commands.option_errors import in_typed_words
from rpms.vocabulary.errors import BadSetting, RpmsError
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run

HUGE = str(10**20)
NAMES = {"--env mars": "unknown environment 'mars'", "--split mars": "unknown ALFWorld split"}
# A command, what is typed behind it, and words of the answer.
WRONG: dict[str, dict[str, str]] = {
    "run": {
        "--env mars": "unknown environment 'mars'; known: alfworld",
        "--split dev": "unknown ALFWorld split 'dev'; known splits: generated_seen",
        "--split valid_seen": "alfworld-download",
        "--task nosuch": "rpms tasks --env alfworld --split generated_unseen",
        "--task -1": "no task '-1'",
        "--task 12345678901": "there is no task 12345678901",
        "--model gpt": "unknown model 'gpt'; use 'sim', or PROVIDER:NAME",
        "--model acme:x": "acme:x",
        "--model openai:gpt-4o-mini": "set OPENAI_API_KEY",
        "--model=local:/no/such.gguf": "no/such.gguf",
        "--model local:": "unknown model",
        "--condition F": "unknown condition 'F'; choose from A, S, B, C, D, E",
        "--condition E+verify": "E has guard procedure already",
        "--set scf=maybe": "--set scf=maybe is not possible; choose from off, occupancy",
        "--set arbitration=maybe": "choose from none, soft, hard, hard+soft",
        "--guard maybe": "",
        "--set max_retries=-1": "", "--set memory_tokens=-1": "", "--set examples=3": "",
        "--set context_tokens=-1": "",
        "--set layout=maybe": "choose from paper, cache_friendly",
        "--set constrain=json": "--set constrain=json is not possible; choose from off, grammar",
        "--max-steps many": "'--max-steps': Input should be a valid integer",
        "--max-steps -1": "",
        "--set timeout_s=-1": "",
        "--timeout 9": "--timeout is a setting: --set timeout_s=9",
        "--scf off": "--scf is a setting: --set scf=off",
        "--check-answers": "--set check_answers=on",
        "--set sfc=off": "unknown setting 'sfc'; did you mean 'scf'?",
        "--set scf": "NAME=VALUE", "--set k=x": "", "--set memory=on": "the condition",
        "--set seed=1 --seed 2": "--seed",
        "--memory nosuch.jsonl": "nosuch.jsonl",
        "--set memory_method=mine": "",
        "--rules nowhere": "nowhere is no folder",
        "--set without_rules=domian": "no rule or tier 'domian'; the nearest names are domain",
        "--bogus": "--bogus",
        "extra": "extra",
    },
    "eval --limit 1 --workers 0 --out out": NAMES | {
        "--model gpt": "", "--set scf=sometimes": "--set scf=sometimes is not possible",
        "--memory /nowhere.jsonl": "cannot read memory file", "--rules nowhere": "",
        "--conditions A,X": "unknown condition 'X'",
        "--plan papr": "'papr' is neither a plan nor a YAML file; did you mean 'paper'?",
        "--arm mine:scff=off": "--arm 'mine': unknown setting 'scff'; did you mean 'scf'?",
        "--arm mine:scf=sometimes": "scf='sometimes' is not possible",
        "--arm=mine:without_rules=tier2": "the nearest names are domain, ",
        "--arm=mine=no_such_module:stages": "cannot load the graph",
        "--arm=mine:model=no_such_module:make": "cannot open model 'no_such_module:make'",
        "--arm A --arm A": "two arms have the label 'A'",
        "--plan nope.yaml": "nope.yaml", "--types juggle": "",
        "--tasks nosuch": "no task 'nosuch'", "--set theta=2": "", "--set k=-1": "",
        "--set temperature=nan": "", "--set max_tokens=-1": "", "--seed x": "",
        "--limit -1": "", f"--limit {HUGE}": "", f"--trials {HUGE}": "", f"--max-steps {HUGE}": "",
        "--trials 0": "'--trials': Input should be greater than or equal to 1",
        "--repeats 0": "", "--workers -1": "", f"--workers {HUGE}": "", "--concurrency 0": "",
        "--budget-usd -1": "'--budget-usd': Input should be greater", "--budget-tokens -1": "",
        "--out /proc/nowhere": "",
        "--budget-usd 1 --model openai:x --base-url http://127.0.0.1:9": "none is known for",
    },
    "learn --limit 1 --workers 0 --out out.jsonl": {
        "--env mars": "", "--split mars": "alfworld mars: not a learning split",
        "--model gpt": "", "--rounds 0": "", f"--rounds {HUGE}": "", "--limit -1": "",
        "--method expel": "'sim' writes none",
        "--method reflexion": "has no memory file",
        "--method nobody": "unknown memory method 'nobody'", "--from-runs nowhere": "",
        "--condition F": "", "--rules nowhere": "is no folder", "--set without_rules=X-1": "",
        "--split generated_unseen": "--allow", "--condition D": "--allow",
        "--split valid_seen": "a test split",
        "--condition E --model first": "--allow",
        "--from-runs RUN": "condition D: with memory",
    },
    "export --expert --limit 1 --workers 0 --out out.jsonl": {
        "--env mars": "", "--split mars": "alfworld has no split 'mars'; use generated_seen",
        "--conditions F": "unknown condition 'F'",
        "--per week": "unknown --per 'week'", "--mistakes 2": "", "--arm x:k=-1": "",
        "--rules nowhere": "nowhere", "--memory nowhere.jsonl": "", f"--limit {HUGE}": "",
        "--split valid_seen": "split 'valid_seen' of alfworld is a test split",
        "--split generated_unseen": "must not be trained on; use generated_",
        "RUN --per episode": "give --per decision",
        "--arm mine=rpms.evals.running.expert:graph": "'mine': the expert acts in our graph",
    },
    "export --out out.jsonl": {"": "give DIR, a run of 'rpms eval', or --expert"},
    "export RUN --out out.jsonl": {
        "--conditions Z": "no condition 'Z'", "--out RUN/manifest.json/x.jsonl": "cannot write",
    },
    "report": {"FOLDER": "no manifest.json in FOLDER; give a folder that 'rpms eval' wrote"},
    "report RUN RUN --open": {"": "give --html FILE.html"},
    "rules check": {"--env mars": "", "--rules nowhere": "nowhere is no folder; give a folder"},
    "rules show": {
        "--type juggle": "unknown goal type 'juggle'; alfworld has: pick_and_place", "": "--type",
        "--type pick_and_place_simple --without-rule U-1": "no rule or tier 'U-1'",
    },
    "rules learn --out out": {
        "--explore -1": "", f"--explore {HUGE}": "", "--explore 0": "use at least 1",
        "--explore 1 --steps -1": "--steps", "": "--explore",
    },
    "rules audit --games 1": NAMES | {"--games 0": "", "--seed x": ""},
    "rules": {"paint": "paint"},
    "tasks": NAMES | {"--limit -1": "", f"--limit {HUGE}": ""},
    "demo": {
        "--env mars": "",
        "--model nowhere": "unknown model 'nowhere'",
        "--conditions A,F": "unknown condition 'F'", "--conditions=,": "unknown",
    },
    "paint": {"": "paint"},
    "eval --limit 1": {"--out ": "the path is empty"},
    "learn": {"--out ": "the path is empty"},
    "export --expert": {"--out ": "the path is empty"},
    "rules learn --explore 1": {"--out ": "the path is empty"},
}  # fmt: skip
CASES = [(line, typed) for line, answers in WRONG.items() for typed in answers]


@pytest.mark.parametrize(
    ("line", "typed"), CASES, ids=[f"{a.split(' -')[0]} {b}" for a, b in CASES]
)
def test_what_is_typed_wrong_is_one_line_that_names_it(
    line: str, typed: str, rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nothing"))
    folder, run = tmp_path / "folder", tmp_path / "run"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if "RUN" in line + typed:
        write_run(run, {"D": [True]}, logs=False, split="generated_seen")

    def places(text: str) -> str:
        return text.replace("RUN", str(run)).replace("FOLDER", str(folder))

    more = typed.split(" ") if typed else []
    done = rpms(*map(places, [*line.split(), *more]))
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("rpms: ") and done.err.count("\n") == 1, done.err
    assert places(WRONG[line][typed]) in done.err
    if len(more) == 2 and more[0].startswith("--"):
        assert re.search(rf"{more[0]}(?![\w-])", done.err), done.err
    assert [*folder.iterdir()] == []


def test_a_plan_without_its_games_says_what_to_do(
    rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nothing"))
    done = rpms("eval", "--plan", "paper-2x2", "--out", tmp_path / "run")
    assert done.code == 2 and done.err.count("\n") == 1
    assert "alfworld-download" in done.err and "--split generated_unseen" in done.err


def test_what_was_not_typed_is_not_blamed() -> None:
    error = RpmsError("unknown split 'dev' of alfworld")
    assert in_typed_words(error, ["run", "--env", "alfworld", "--split=dev"]) == f"--split: {error}"
    assert in_typed_words(error, ["run", "--task", "3"]) == str(error)
    assert in_typed_words(RpmsError("x and yy"), ["--a", "yy", "--b", "yy"]) == "x and yy"
    bad = BadSetting("k", -1, "is not possible")
    assert in_typed_words(bad, ["eval", "--plan", "x.yaml"]) == "k=-1 is not possible"
