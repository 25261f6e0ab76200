from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from rpms.commands import main as cli
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.graph import STAGES
from rpms.models import open_model
from tests.command_line import Done, Rpms
from tests.openai_server import Answer, OpenAIServer

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = {
    "task", "condition", "success", "score", "steps", "invalid_actions", "failure_mode",
    "prompt_tokens",
}  # fmt: skip


@pytest.fixture
def rpms(rpms: Rpms, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rpms:
    """Also without official games."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    open_model.cache_clear()
    return rpms


def in_a_process(*words: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "rpms", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def commands(group: Any, *above: str) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*above, name)
        if hasattr(command, "commands"):
            yield from commands(command, *above, name)


ALL = list(commands(typer.main.get_command(cli.app)))


def test_the_commands_are_there() -> None:
    assert {("run",), ("tasks",), ("graph",), ("demo",), ("rules", "check")} <= set(ALL)


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_help(words: tuple[str, ...], rpms: Rpms) -> None:
    done = rpms(*words, "--help")
    assert (done.code, done.err) == (0, "")
    assert "Usage: " in done.out
    assert " ".join(words) in done.out
    described = done.out.split("Usage: ")[1].splitlines()
    assert any(line.strip() for line in described[1:])


@pytest.mark.parametrize("words", [(), ("rules",)])
def test_no_command_at_all_is_a_question_for_help(words: tuple[str, ...], rpms: Rpms) -> None:
    done = rpms(*words)
    assert (done.code, done.err) == (0, "")
    assert "Commands:" in done.out


MISTAKES = [
    ("run --env mars", "unknown environment 'mars'; known: alfworld"),
    ("run --split dev", "unknown ALFWorld split 'dev'; known splits: generated_seen"),
    ("run --split valid_seen", "alfworld-download"),
    ("run --task nosuch", "rpms tasks --env alfworld --split generated_unseen"),
    ("run --task -1", "no task '-1'"),
    ("run --task 12345678901", "there is no task 12345678901"),
    ("run --model gpt", "unknown model 'gpt'; use 'sim', or PROVIDER:NAME"),
    ("run --model acme:x", "acme:x"),
    ("run --model openai:gpt-4o-mini", "set OPENAI_API_KEY"),
    ("run --condition F", "unknown condition 'F'; choose from A, B, C, D, E"),
    ("run --scf maybe", "--scf maybe is not possible; choose from off, occupancy"),
    ("run --arbitration maybe", "choose from none, soft, hard, hard+soft"),
    ("run --layout maybe", "choose from paper, cache_friendly"),
    ("run --max-steps -1", "--max-steps"),
    ("run --max-steps many", "'--max-steps': Input should be a valid integer"),
    ("run --timeout -1", "'--timeout': Input should be greater than or equal to 0"),
    ("run --constrain json", "--constrain json is not possible; choose from off, grammar"),
    ("run --model local:/no/such.gguf", "no/such.gguf"),
    ("run --model local:", "unknown model"),
    ("run --memory nosuch.jsonl", "nosuch.jsonl"),
    ("run --bogus", "--bogus"),
    ("run extra", "extra"),
    ("tasks --env mars", "unknown environment 'mars'"),
    ("tasks --split dev", "unknown ALFWorld split 'dev'"),
    ("tasks --limit -1", "'--limit': Input should be greater than or equal to 0"),
    ("demo --tasks -1", "'--tasks': Input should be greater than or equal to 0"),
    ("demo --conditions A,F", "unknown condition 'F'"),
    ("demo --conditions A+reask", "guard='reask' is called 'verify' now"),
    ("run --condition B+constrain", "guard='constrain' is called 'policy' now"),
    ("run --guard shortlist", "--guard shortlist is called 'offer' now"),
    ("run --condition E+verify", "E has guard policy already"),
    ("demo --conditions ,", "unknown condition"),
    ("demo --split dev", "needs --env"),
    ("demo --env alfworld --split dev", "unknown ALFWorld split 'dev'"),
    ("demo --env mars", "unknown environment 'mars'"),
    ("rules show --type juggle", "unknown goal type 'juggle'; alfworld has: pick_and_place"),
    ("rules show", "--type"),
    ("rules check --rules nowhere", "nowhere is no folder; give a folder with any of"),
    ("rules show --type pick_and_place_simple --without-rule U-1", "no rule or tier 'U-1'"),
    ("run --rules nowhere", "nowhere is no folder"),
    ("run --without-rule tier2", "no rule or tier 'tier2'; the nearest names are domain"),
    ("run --without-rule domian", "no rule or tier 'domian'; the nearest names are domain"),
    ("rules check --env mars", "unknown environment 'mars'"),
    ("rules paint", "paint"),
    ("paint", "paint"),
]


@pytest.mark.parametrize(("line", "says"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_bad_input_gets_one_clear_line(line: str, says: str, rpms: Rpms) -> None:
    done = rpms(*line.split())
    assert done.code == 2
    assert done.err.startswith("rpms: ")
    assert done.err.count("\n") == 1
    assert says in done.err
    assert "Traceback" not in done.err + done.out


@pytest.mark.parametrize(
    "line", ["run --task nosuch", "run --model openai:gpt-4o-mini", "run --max-steps many"]
)
def test_the_same_in_a_process_of_its_own(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = in_a_process(*line.split())
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert done.out == ""


@pytest.mark.engine
def test_run_json_is_one_object_and_nothing_else() -> None:
    done = in_a_process("run", "--json", "--condition", "B")
    assert done.code == 0
    result = json.loads(done.out)
    assert isinstance(result, dict)
    assert set(result) >= REQUIRED
    assert result["success"] is (result["failure_mode"] is None)
    assert (result["condition"], result["model"]) == ("B", "sim")
    assert len(result["history"]) == result["steps"]
    assert done.err == ""


@pytest.mark.engine
def test_run_json_stays_clean_with_every_view_switched_on(rpms: Rpms) -> None:
    done = rpms("run", "--json", "--prompts", "--condition", "A", "--max-steps", "2")
    assert json.loads(done.out)["failure_mode"] == "timeout"
    assert done.code == 0


@pytest.mark.engine
def test_run_shows_each_decision(rpms: Rpms) -> None:
    done = rpms("run", "--task", "0", "--condition", "B")
    result = json.loads(rpms("run", "--task", "0", "--condition", "B", "--json").out)
    assert done.code == 0
    shown = " ".join(done.out.split())
    assert result["task"] in shown
    assert "not a language model" in shown
    for turn in result["history"]:
        assert f"> {turn['action']}" in done.out
    assert f" after {result['steps']} steps, score " in done.out
    assert f", {result['invalid_actions']} refused" in done.out


@pytest.mark.engine
def test_run_can_show_the_prompts(rpms: Rpms) -> None:
    done = rpms("run", "--task", "0", "--condition", "B", "--prompts", "--max-steps", "1")
    assert "--- system" in done.out
    assert "[RULES - CRITICAL, Always Follow]" in done.out
    assert "[U-STATE-001]" in done.out


@pytest.mark.engine
def test_a_task_by_each_of_its_names(rpms: Rpms) -> None:
    row = json.loads(rpms("tasks", "--json").out)[3]
    for name in ("3", row["id"], row["id"].split("/")[1]):
        done = rpms("run", "--task", name, "--json", "--max-steps", "1")
        assert json.loads(done.out)["task"] == row["id"]


def test_tasks(rpms: Rpms) -> None:
    rows = json.loads(rpms("tasks", "--json", "--limit", "12").out)
    assert [row["index"] for row in rows] == list(range(12))
    assert {row["type"] for row in rows} == set(GOAL_TYPES)
    assert all(isinstance(row["id"], str) for row in rows)
    assert set(rows[0]) == {
        "index", "id", "goal", "type", "object", "state", "count", "destination",
    }  # fmt: skip
    done = rpms("tasks", "--limit", "12")
    assert done.err.startswith("12 tasks: ")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == [row["id"] for row in rows]


def test_tasks_of_scienceworld_come_with_their_families(rpms: Rpms) -> None:
    done = rpms("tasks", "--env", "scienceworld", "--split", "test")
    assert done.err == "241 tasks: 40 F1, 30 F2, 62 F3, 109 F4\n"
    rows = json.loads(rpms("tasks", "--env", "scienceworld", "--json").out)
    assert len(rows) == 241 and rows[0]["id"] == "boil/21"


@pytest.mark.engine
def test_run_plays_scienceworld(rpms: Rpms) -> None:
    words = ("run", "--env", "scienceworld", "--split", "dev_mini", "--task", "0")
    done = rpms(*words, "--max-steps", "3", "--condition", "B")
    assert done.code == 0
    assert "after 3 steps, score " in done.out and "find_object" in done.out
    told = json.loads(rpms(*words, "--max-steps", "2", "--json").out)
    assert (told["env"], told["split"], told["steps"]) == ("scienceworld", "dev_mini", 2)


def test_graph(rpms: Rpms) -> None:
    done = rpms("graph")
    assert done.code == 0
    assert "graph TD" in done.out
    assert all(stage in done.out for stage in STAGES)


def test_rules_check(rpms: Rpms) -> None:
    done = rpms("rules", "check")
    assert (done.code, done.err) == (0, "")
    *_, alfworld, scienceworld = (line.split() for line in done.out.splitlines())
    assert (alfworld[0], alfworld[-1]) == ("alfworld", "0")
    assert (scienceworld[0], scienceworld[-1]) == ("scienceworld", "0")
    assert rpms("rules", "check", "--env", "alfworld").code == 0


@pytest.mark.parametrize("goal_type", GOAL_TYPES)
def test_rules_show(goal_type: str, rpms: Rpms) -> None:
    done = rpms("rules", "show", "--type", goal_type, "--about", "mug")
    assert done.code == 0
    assert done.out.startswith("[RULES - CRITICAL, Always Follow]")
    assert "mug is usually at: " in done.out


@pytest.mark.parametrize("family", ["F1", "F2", "F3", "F4"])
def test_rules_show_for_a_family(family: str, rpms: Rpms) -> None:
    done = rpms("rules", "show", "--env", "scienceworld", "--type", family)
    assert f"[RULES - Tier 2: Domain ({family}_" in done.out
    assert f"O{family[1:]}-PROC-001: Canonical procedure:" in done.out


def test_rules_of_ones_own(rpms: Rpms, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "tier: mine\nrules: [{id: L-001, text: Sing., source: a bird, confidence: 0.5, support: 2}]"
    )
    checked = rpms("rules", "check", "--rules", str(tmp_path))
    heads, _, counts = (line.split() for line in checked.out.splitlines()[-3:])
    assert checked.code == 0 and counts[0] == "alfworld" and "mine" in heads
    words = ("rules", "show", "--type", "pick_and_place_simple")
    shown = rpms(*words, "--rules", str(tmp_path), "--without-rule", "domain").out
    assert "=== mine ===\n  [L-001] Sing." in shown and "Domain Knowledge" not in shown
    assert shown.rstrip().endswith(
        "Where rules come from:\n  L-001: source a bird, confidence 0.5, support 2"
    )
    assert "Where rules come from" not in rpms(*words).out
    file = tmp_path / "mine.yaml"
    file.write_text("tier: mine\nrules:\n  - {id: U-FAIL-001, text: Sing., for: [juggle]}")
    refused = rpms("rules", "check", "--rules", str(tmp_path))
    for problem in ("the id is used 2 times", "unknown goal type 'juggle'"):
        assert f"{file}:3: U-FAIL-001: {problem}" in refused.out and refused.code == 2


@pytest.mark.engine
def test_run_with_rules_of_ones_own(rpms: Rpms, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    words = ("run", "--condition", "B", "--prompts", "--max-steps", "1", "--rules", str(tmp_path))
    assert "[L-001] Sing." in rpms(*words).out
    assert "[L-001] Sing." not in rpms(*words, "--without-rule", "mine").out


@pytest.mark.engine
def test_demo(rpms: Rpms, tmp_path: Path) -> None:
    done = rpms(
        "demo", "--env", "alfworld", "--tasks", "6", "--conditions", "A,B", "--out", str(tmp_path)
    )  # fmt: skip
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "A baseline" in said and "B rules" in said
    assert "alfworld generated_unseen, 6 tasks, 12 episodes" in said
    assert "How often each mechanism was at work" in said and "refusals explained" in said
    assert "not a language model" in said
    assert "They are not results of a language model" in said
    (page,) = tmp_path.glob("demo-*-alfworld/report.html")
    assert str(page) in done.out.replace("\n", "")


@pytest.mark.engine
def test_a_model_that_talks_nonsense_finishes_as_a_format_failure(
    rpms: Rpms, openai_server: OpenAIServer
) -> None:
    openai_server.plays("Bla bla bla.", "", "I would rather not.")
    done = rpms(
        "run", "--json", "--model", "openai:babbler", "--base-url", openai_server.url,
        "--max-steps", "5", "--condition", "B",
    )  # fmt: skip
    result = json.loads(done.out)
    assert done.code == 0
    assert result["failure_mode"] == "format"
    assert result["format_errors"] == result["steps"] == 5
    assert (result["prompt_tokens"], result["output_tokens"]) == (500, 35)
    assert len(openai_server.requests) == 5


@pytest.mark.engine
def test_a_refused_key_is_shown_as_a_model_error(rpms: Rpms, openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(status=401, error="invalid key"))
    words = ["run", "--model", "openai:m", "--base-url", openai_server.url]
    done = rpms(*words)
    assert "failed: model_error" in done.out
    assert "invalid key" in done.out
    assert "Traceback" not in done.out + done.err
    assert done.code == 2 and len(done.err.splitlines()) == 1
    assert "the episode ended in a model error: " in done.err and "invalid key" in done.err
    plain = rpms(*words, "--json")
    assert json.loads(plain.out)["failure_mode"] == "model_error" and plain.code == 2


def test_a_closed_pipe_is_no_traceback() -> None:
    """``rpms tasks | head -1``"""
    program = f"{sys.executable} -m rpms tasks --json | head -1"
    done = subprocess.run(
        program, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout == "[\n"
    assert done.stderr == ""


@pytest.mark.engine
@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("eval", "--conditions", "A", "--limit", "1", "--workers", "0", "--out", "run"),
        ("learn", "--limit", "1", "--workers", "0", "--out", "memory.jsonl"),
    ],
    ids=["run", "eval", "learn"],
)
def test_a_server_that_is_not_there_is_named(
    words: tuple[str, ...], rpms: Rpms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its address, less the password in it."""
    monkeypatch.chdir(tmp_path)
    address = "http://me:hide-and-seek@127.0.0.1:9/v1"
    done = rpms(*words, "--model", "openai:any", "--base-url", address)
    assert done.code == 2
    told = "no reply from http://***@127.0.0.1:9/v1/chat/completions; check the address, and that"
    assert told in done.err.splitlines()[-1]
    assert "hide-and-seek" not in done.out + done.err
