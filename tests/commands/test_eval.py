from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rpms.evals.evaluate import ExecutionOptions
from rpms.evals.plan import make_plan
from rpms.evals.run_folder import EPISODES, step_log_file
from rpms.vocabulary.context import RunContext
from tests.command_line import Done, Rpms
from tests.commands.conftest import ROOT
from tests.commands.runs import histories, keys, lines
from tests.openai_server import Answer, OpenAIServer
from tests.paper_entries import refusals
from tests.processes import PATIENCE_S


@pytest.mark.engine
def test_other_settings_are_refused_in_one_line(
    tmp_path: Path, rpms_eval: Callable[..., Done]
) -> None:
    few = ("--conditions", "B", "--limit", "1", "--workers", "0", "--max-steps", "3")
    assert rpms_eval(tmp_path / "run", *few).code == 0
    before = (tmp_path / "run" / EPISODES).read_bytes()
    done = rpms_eval(tmp_path / "run", *few[:-1], "4", "--temperature", "0.5")
    assert done.code == 2 and done.out == ""
    assert len(done.err.strip().splitlines()) == 1
    assert "max_steps: 3 before, 4 now" in done.err
    assert "temperature: 0.0 before, 0.5 now" in done.err
    assert (tmp_path / "run" / EPISODES).read_bytes() == before


@pytest.mark.engine
def test_a_run_grows_and_plays_nothing_twice(
    tmp_path: Path, rpms_eval: Callable[..., Done]
) -> None:
    few = ("--workers", "0", "--max-steps", "3")
    run = tmp_path / "run"
    assert rpms_eval(run, "--conditions", "B", "--limit", "1", *few).code == 0
    before = (run / EPISODES).read_bytes()
    more = ("--conditions", "B", "--limit", "2", "--arm", "mine:condition=B,layout=cache_friendly")
    done = rpms_eval(run, *more, "--repeats", "2", *few)
    assert done.code == 0 and "1 of 8 episodes were finished before" in done.err
    assert (run / EPISODES).read_bytes().startswith(before)
    found = [(*key, line["repeat"]) for key, line in zip(keys(run), lines(run), strict=True)]
    assert len(found) == len(set(found)) == 8
    assert done.out.strip().splitlines()[-1] == f"look into it: rpms report {run}"
    again = rpms_eval(run, *more, "--repeats", "2", *few)
    assert again.code == 0 and len(lines(run)) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--conditions", "A", "--preset", "scf"), "either --conditions or --preset"),
        (("--preset", "nope"), "unknown preset 'nope'"),
        (("--preset", "2x3"), "unknown preset '2x3', and no FILE.yaml:NAME; did you mean '2x2'?"),
        (("--arm", "mine:scff=off"), "--arm 'mine': unknown setting 'scff'; did you mean 'scf'?"),
        (("--arm", "mine:without_rules=tier2"), "the nearest names are domain, "),
        (("--conditions", "A,X"), "unknown condition 'X'"),
        (("--model", "openai:gpt-4o-mini"), "set OPENAI_API_KEY"),
        (("--split", "nowhere"), "unknown ALFWorld split"),
        (("--scf", "sometimes"), "--scf sometimes is not possible"),
        (("--memory", "/nowhere.jsonl"), "cannot read memory file"),
        (("--concurrency", "0"), "--concurrency"),
        (("--arm", "mine:scf=sometimes"), "scf='sometimes' is not possible"),
        (("--arm", "mine:colour=red"), "unknown setting 'colour'"),
        (("--arm", "mine:nodes=no_such_module:stages"), "cannot load the stages"),
        (("--arm", "mine:model=no_such_module:make"), "cannot load the model"),
        (("--arm", "A", "--arm", "A"), "two arms are called 'A'"),
        (("--plan", "/nowhere.yaml"), "/nowhere.yaml"),
        (("--trials", "0"), "'--trials': Input should be greater than or equal to 1"),
        (("--tasks", "nowhere"), "no task 'nowhere'"),
        (("--limit", "1", "--ray", "127.0.0.1:9"), "Ray"),
    ],
)
def test_bad_input_gets_one_line(
    tmp_path: Path, rpms: Rpms, words: tuple[str, ...], said: str
) -> None:
    done = rpms("eval", "--out", tmp_path / "run", *words)
    assert done.code == 2
    assert said in done.err and len(done.err.strip().splitlines()) == 1
    assert lines(tmp_path / "run") == []


def served(server: OpenAIServer, *more: str) -> tuple[str, ...]:
    words = ("--conditions", "A,B", "--limit", "2", "--workers", "0", "--max-steps", "3")
    return (*words, "--model", "openai:m", "--base-url", server.url, *more)


@pytest.mark.engine
def test_a_second_identical_run_makes_no_calls(
    tmp_path: Path, rpms_eval: Callable[..., Done], openai_server: OpenAIServer
) -> None:
    assert rpms_eval(tmp_path / "first", *served(openai_server, "--workers", "2")).code == 0
    assert len(openai_server.requests) == 2 * 2 * 3
    done = rpms_eval(tmp_path / "second", *served(openai_server))
    assert done.code == 0 and len(openai_server.requests) == 12
    assert "0 tokens, 12 cached replies" in done.out
    assert histories(tmp_path / "first") == histories(tmp_path / "second")
    again = {(line["condition"], line["task"]): line for line in lines(tmp_path / "second")}
    for first in lines(tmp_path / "first"):
        second = again[first["condition"], first["task"]]
        assert (first["model_calls"], first["cache_hits"]) == (3, 0)
        assert (second["model_calls"], second["cache_hits"]) == (0, 3)
        assert first["prompt_tokens"] == second["prompt_tokens"] == 300
        assert (first["spent_prompt_tokens"], second["spent_prompt_tokens"]) == (300, 0)
    assert rpms_eval(tmp_path / "third", *served(openai_server, "--no-cache")).code == 0
    assert len(openai_server.requests) == 24


@pytest.mark.engine
def test_a_wrong_key_stops_the_run_early_and_failed_episodes_can_be_retried(
    tmp_path: Path, rpms_eval: Callable[..., Done], openai_server: OpenAIServer
) -> None:
    words = [*served(openai_server), "--concurrency", "2"]
    words[words.index("--limit") + 1] = "6"
    openai_server.plays(Answer(status=401, error="bad key"))
    done = rpms_eval(tmp_path / "run", *words)
    assert done.code == 2
    assert "nothing works: 3 episodes in a row ended with the same model error" in done.err
    assert "401" in done.err and "run the same command again" in done.err
    errors = lines(tmp_path / "run")
    assert len(errors) == 3 < 12
    assert {line["failure_mode"] for line in errors} == {"model_error"}
    openai_server.plays("Action: look")
    assert rpms_eval(tmp_path / "run", *words, "--keep-failed").code == 0
    assert Counter(line["failure_mode"] for line in lines(tmp_path / "run")) == {
        "model_error": 3, "timeout": 9
    }  # fmt: skip
    assert rpms_eval(tmp_path / "run", *words).code == 0
    found = lines(tmp_path / "run")
    assert len(found) == 15
    assert {(line["condition"], line["task"]) for line in found[12:]} == {
        (line["condition"], line["task"]) for line in errors
    }
    latest = {(line["condition"], line["task"]): line["failure_mode"] for line in found}
    assert set(latest.values()) == {"timeout"} and len(latest) == 12


@pytest.mark.engine
def test_a_run_with_errors_fails_and_says_the_first(
    tmp_path: Path, rpms_eval: Callable[..., Done], openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=400, error="no such thing"), "Action: look")
    done = rpms_eval(tmp_path / "run", *served(openai_server), "--concurrency", "1")
    assert done.code == 2
    assert "1 of the 4 episodes played now ended in an error" in done.err
    assert "no such thing" in done.err and "Run the same command again" in done.err
    again = rpms_eval(tmp_path / "run", *served(openai_server), "--concurrency", "1")
    assert again.code == 0 and len(lines(tmp_path / "run")) == 5


@pytest.mark.engine
def test_without_a_terminal_lines_tell_of_progress_and_the_last_names_the_report(
    tmp_path: Path, rpms_eval: Callable[..., Done]
) -> None:
    few = ("--conditions", "B", "--limit", "4", "--workers", "0", "--concurrency", "1")
    done = rpms_eval(tmp_path / "run", *few, "--max-steps", "2")
    assert done.code == 0
    told = [line for line in done.err.splitlines() if "of 4 episodes; B 0/" in line]
    assert [line[0] for line in told] == ["1", "2", "3"]
    assert done.out.splitlines()[0].startswith(f"{tmp_path / 'run'}: 4 of 4 episodes; B 0/4")
    assert done.out.splitlines()[-1] == f"look into it: rpms report {tmp_path / 'run'}"


@pytest.mark.engine
def test_a_preset_runs_under_its_labels(tmp_path: Path, rpms_eval: Callable[..., Done]) -> None:
    done = rpms_eval(
        tmp_path / "run", "--preset", "scf", "--limit", "1", "--workers", "0", "--max-steps", "4",
        "--memory", str(refusals(tmp_path / "memory.jsonl", 0, ("mug 1", "look"))),
    )  # fmt: skip
    assert done.code == 0, done.err
    labels = ["D scf=off", "D scf=occupancy", "D scf=preconditions"]
    labels += ["C scf=off", "C scf=occupancy"]
    assert sorted(label for label, _ in keys(tmp_path / "run")) == sorted(labels)
    for line in lines(tmp_path / "run"):
        assert step_log_file(tmp_path / "run", line["condition"], line["task"]).is_file()
    dropped = {line["condition"]: line["dropped_scf"] for line in lines(tmp_path / "run")}
    assert dropped["D scf=off"] == 0 < dropped["D scf=occupancy"]


@pytest.mark.engine
def test_memory_can_be_learned_from_a_run_and_used_in_the_next(
    tmp_path: Path, rpms_eval: Callable[..., Done]
) -> None:
    words = ("--split", "generated_seen", "--conditions", "B", "--limit", "3", "--workers", "0")
    assert rpms_eval(tmp_path / "seen", *words).code == 0
    memory = tmp_path / "memory.jsonl"
    learned = subprocess.run(
        [sys.executable, "-m", "rpms", "learn", "--from-runs", str(tmp_path / "seen"),
         "--out", str(memory)],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert learned.returncode == 0, learned.stderr
    assert "from 3 episodes" in learned.stdout
    used = ("--conditions", "D", "--limit", "1", "--workers", "0", "--memory", str(memory))
    assert rpms_eval(tmp_path / "run", *used).code == 0
    assert lines(tmp_path / "run")[0]["recalled"] > 0
    moved = tmp_path / "moved.jsonl"
    memory.rename(moved)
    assert rpms_eval(tmp_path / "run", *used[:-1], str(moved)).code == 0
    done = rpms_eval(tmp_path / "run", *used[:-2])
    assert done.code == 2 and "hashes memory of D" in done.err


@pytest.mark.parametrize(
    ("model", "workers", "expected"),
    [
        ("openai:gpt-4", None, (None, 32)),
        ("openai:gpt-4", 4, (4, 32)),
        ("local:smollm2", None, (1, 1)),
        ("local:smollm2", 4, (1, 1)),
        ("local:smollm2", 0, (0, 1)),
    ],
)
def test_a_local_model_is_asked_by_one_episode_at_a_time(
    model: str, workers: int | None, expected: tuple[int | None, int]
) -> None:
    plan = make_plan("alfworld", "generated_unseen", {"D": RunContext(model=model)}, 1)
    execution = ExecutionOptions(workers=workers).suited_to(plan)
    assert (execution.workers, execution.concurrency) == expected
