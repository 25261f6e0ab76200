"""``rpms learn`` and ``rpms memory``: nothing is lost, and nothing is learned unasked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rpms.commands.main import app
from rpms.envs import get_environment
from rpms.evals.analysis.frames import load
from rpms.evals.running.plan_file import read_plan
from rpms.memory_store import Note, read_header, read_notes, read_snapshot, write_snapshot
from tests.command_line import Rpms
from tests.evals.sample_runs import lines_of
from tests.openai_server import Answer, OpenAIServer
from tests.paper_entries import refusals

FEW = ("--limit", "3", "--workers", "0")
ROUNDS = ("--split", "generated_seen", "--rounds", "2", "--workers", "0")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of learning; the runs lie beside the snapshot."""
    out = tmp_path_factory.mktemp("learn") / "memory.jsonl"
    done = CliRunner().invoke(app, ["learn", *ROUNDS, "--limit", "3", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round whose episodes were cut short: the methods compare lost episodes, too."""
    out = tmp_path_factory.mktemp("lost") / "memory.jsonl"
    words = ["learn", "--split", "generated_seen", "--workers", "0", "--limit", "4"]
    done = CliRunner().invoke(app, [*words, "--max-steps", "8", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.engine
def test_rounds_leave_growing_snapshots_and_ordinary_runs(learned: Path, rpms: Rpms) -> None:
    sizes = []
    for number in (1, 2):
        file = learned.with_suffix(f".round{number}.jsonl")
        stats = json.loads(rpms("memory", "stats", file, "--json").out)
        assert stats["rounds"] == number and stats["env"] == "alfworld"
        often = "1 round" if number == 1 else "2 rounds"
        source = f"sim, alfworld generated_seen, 3 tasks, {often} of condition B, commit "
        assert stats["sources"][0].startswith(source) and len(stats["sources"]) == 1
        assert stats["learned_by"] == ["sim"]
        sizes.append(stats["entries"])
    assert sizes[0] <= sizes[1]
    assert learned.read_bytes() == learned.with_suffix(".round2.jsonl").read_bytes()
    report = json.loads(rpms("report", f"{learned}.runs/round2", "--json").out)
    assert report["played"] == report["planned"] == 3
    (row,) = report["tables"]["main"]["rows"]
    assert row["condition"] == "B rules" and row["errors"] == 0
    shown = rpms("memory", "show", learned, "--type", "success", "--limit", "2").out.splitlines()
    assert [json.loads(line)["type"] for line in shown] == ["success"] * 2
    assert rpms("memory", "check", learned).out.startswith(f"{learned}: ok,")
    broken = learned.with_name("broken.jsonl")
    text = learned.read_text().splitlines()
    text[4] = text[4][:40]
    broken.write_text("\n".join(text) + "\n")
    for command in (("memory", "check", broken), ("run", "--memory", broken)):
        done = rpms(*command)
        assert done.code == 2 and f"{broken}:5:" in done.err and done.err.count("\n") == 1


@pytest.mark.engine
def test_a_finished_round_is_not_played_again_and_never_overwritten(
    learned: Path, rpms: Rpms
) -> None:
    runs = sorted(Path(f"{learned}.runs").rglob("episodes.jsonl"))
    before = [file.read_bytes() for file in (*runs, learned)]
    assert len(runs) == 2
    words = ("learn", *ROUNDS, "--out", learned)
    other = rpms(*words, "--limit", "3", "--max-steps", "9")
    assert other.code == 2 and "max_steps: 0 before, 9 now" in other.err
    assert other.err.count("\n") == 1
    assert rpms(*words, "--limit", "3").code == 0
    # A folder grows and never shrinks: with fewer tasks it is learned from as it is.
    assert "from 6 episodes" in rpms(*words, "--limit", "1").out
    assert [file.read_bytes() for file in (*runs, learned)] == before


@pytest.mark.engine
def test_what_recorded_runs_taught_is_used_wherever_the_file_lies(
    learned: Path, rpms: Rpms, tmp_path: Path
) -> None:
    memory, run = tmp_path / "memory.jsonl", tmp_path / "run"
    done = rpms("learn", "--from-runs", f"{learned}.runs", "--out", memory)
    assert done.code == 0 and "from 6 episodes" in done.out
    assert memory.read_text().splitlines()[1:] == learned.read_text().splitlines()[1:]
    few = ("--conditions", "D", "--limit", "1", "--workers", "0", "--max-steps", "4")
    use = ("eval", "--out", run, *few)
    assert rpms(*use, "--memory", memory).code == 0
    assert load(run).episodes.recalled[0] > 0
    moved = memory.rename(tmp_path / "moved.jsonl")
    assert rpms(*use, "--memory", moved).code == 0
    done = rpms(*use)
    assert done.code == 2 and "hashes memory of D" in done.err


@pytest.mark.engine
def test_the_outcome_of_every_memory_is_printed_on_request(rpms: Rpms, tmp_path: Path) -> None:
    outcomes = {
        ("mug 1", "look"): "scf: recorded while holding something",
        (
            "none",
            "go to fridge 1",
        ): "arbitration by O-ACT-001: the sub-goal find_object needs 'go to fridge 1'",
        ("none", "open fridge 1"): "shown",
        # Once it stands at another place of that kind, nobody knows whether both are at one spot.
        ("none", "open cabinet 1"): "warned by O-ACT-002: check first that you are at cabinet 1; ",
    }
    memory = refusals(tmp_path / "memory.jsonl", 9, *outcomes)
    done = rpms("run", "--task", "9", "--condition", "D", "--memories", "--max-steps", "4",
                "--set", "memory_form=recorded", "--memory", memory)  # fmt: skip
    assert done.code == 0
    shown = " ".join(done.out.split())
    for (_, action), outcome in outcomes.items():
        assert f"failure 1.00 {action} {outcome}" in shown


def played(out: Path, number: int = 1) -> list[dict[str, Any]]:
    return lines_of(Path(f"{out}.runs") / f"round{number}")


@pytest.mark.engine
def test_a_failed_episode_costs_the_others_nothing_and_is_played_again(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    goals = [t["goal"] for t in get_environment("alfworld").tasks("generated_seen", 3)]
    assert len(set(goals)) == 3

    def rule(request: dict[str, Any]) -> Answer:
        broken = goals[1] in json.dumps(request["messages"])
        return Answer(status=400, error="no such thing") if broken else Answer("Action: look")

    openai_server.plays_by(rule)
    out = tmp_path / "m.jsonl"
    words = ("learn", "--out", out, *FEW, "--max-steps", "2", "--model", "openai:m",
             "--base-url", openai_server.url)  # fmt: skip
    done = rpms(*words)
    assert done.code == 2 and "from 2 episodes" in done.out
    assert (
        "1 episode ended in an error; the memory is learned from the others. Run the same"
        in done.err
    )
    bad = next(line for line in played(out) if line["failure_mode"] == "model_error")
    assert f"not learned from: {bad['task']}: " in done.err and "no such thing" in done.err
    header = read_header(out)
    assert header.learned_by == ["openai:m"] and "2 of 3 episodes" in header.sources[0]
    openai_server.plays("Action: look")
    done = rpms(*words)
    assert done.code == 0 and "from 3 episodes" in done.out and "error" not in done.err
    assert [line["task"] for line in played(out)[3:]] == [bad["task"]]
    assert "of 3 episodes" not in read_header(out).sources[0]


@pytest.mark.engine
def test_a_policy_and_ones_own_rules_are_named_by_the_memory(tmp_path: Path, rpms: Rpms) -> None:
    out, own = tmp_path / "m.jsonl", tmp_path / "rules"
    words = ("learn", "--out", out, "--limit", "1", "--workers", "0")
    policy = ("--condition", "E", "--model", "first")
    assert rpms(*words, *policy, "--allow", "a policy's memory").code == 0
    header, entries = read_snapshot(out)
    assert header.learned_by == ["first"] and entries
    assert header.sources[0].startswith("first, alfworld generated_seen, 1 tasks, 1 round of")
    assert (
        "condition E, with memory, guard procedure (allowed: a policy's memory)"
        in (header.sources[0])
    )
    own.mkdir()
    (own / "mine.yaml").write_text("tier: mine\nrules: [{id: L-001, text: Sing.}]")
    without = ("--set", "without_rules=domain,O-ACT-001")
    other = tmp_path / "other.jsonl"
    assert rpms(*words, "--out", other, "--rules", own, *without).code == 0
    header, entries = read_snapshot(other)
    assert entries and f"condition B rules {own} without domain,O-ACT-001" in header.sources[0]


@pytest.mark.engine
def test_rivals_are_learned_without_a_model_and_evaluated_beside_ours(
    tmp_path: Path, rpms: Rpms, learned: Path
) -> None:
    for method in ("rpms", "trajectories", "awm"):
        out = tmp_path / f"m.{method}.jsonl"
        done = rpms("learn", "--method", method, "--out", out, "--from-runs", f"{learned}.runs")
        assert done.code == 0 and "from 6 episodes" in done.out, done.err
    header = read_header(tmp_path / "m.awm.jsonl")
    assert (header.method, header.learned_by, header.written_by) == ("awm", ["sim"], "")
    assert header.sources[0].startswith("sim, alfworld generated_seen, 3 tasks")
    assert header.sources[0].endswith("; AWM's workflows, by rule") and "by rule" in done.out
    words = ("eval", "--plan", "rivals", "--memory", tmp_path / "m.{method}.jsonl", "--limit",
             "1", "--workers", "0", "--max-steps", "1", "--out", tmp_path / "run")  # fmt: skip
    done = rpms(*words)
    assert done.code == 2 and "no memory of method 'expel'" in done.err
    assert done.err.count("\n") == 1
    note = Note(id="n", kind="insight", text="Put the object in the microwave.")
    write_snapshot(tmp_path / "m.expel.jsonl", "alfworld", [note], method="expel")
    assert rpms(*words).code == 0
    episodes = load(tmp_path / "run").episodes.set_index("condition")
    assert len(episodes) == 13 and not episodes.error.any()
    rivals = [name for name in episodes.index if name.endswith(("expel", "awm"))]
    assert rivals and episodes.recalled[rivals].all()
    assert episodes.recalled["D memory=reflexion"] == 0


@pytest.mark.engine
def test_the_named_model_writes_the_texts(
    tmp_path: Path, rpms: Rpms, learned: Path, openai_server: OpenAIServer
) -> None:
    def rule(request: dict[str, Any]) -> Answer:
        if "ADD: a new insight" in json.dumps(request["messages"]):
            return Answer("ADD: Look first.\nADD: Look first.")
        return Answer("Workflow 1: find it\ngo to {place}\ntake {object} from {place}")

    openai_server.plays_by(rule)
    server = ("--base-url", openai_server.url)
    runs = ("--from-runs", f"{learned}.runs/round1")
    model = ("--model", "openai:writer")
    for method in ("expel", "awm"):
        out = tmp_path / f"m.{method}.jsonl"
        done = rpms("learn", "--method", method, "--out", out, *runs, *server, *model)
        assert done.code == 0, done.err
        header = read_header(out)
        assert (header.method, header.written_by) == (method, "openai:writer")
        assert header.learned_by == ["sim"] and f": {header.entries} entr" in done.out
        assert header.sources[0].endswith(", written by openai:writer")
        assert len(read_notes(out, "alfworld", method)) == header.entries > 0
        assert bool(header.unread) == (method == "expel") == ("could not be read" in done.err)
    out, asked = tmp_path / "m.trajectories.jsonl", len(openai_server.requests)
    done = rpms("learn", "--method", "trajectories", "--out", out, *runs, *server, *model)
    assert done.code == 0 and read_header(out).written_by == ""
    assert len(openai_server.requests) == asked, "no text was to be written"


CALL = 107  # tokens of one call
PLAYED = ("--limit", "2", "--max-steps", "3", "--workers", "0", "--concurrency", "1")


@pytest.mark.engine
def test_one_budget_holds_over_all_rounds(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    """Six calls a round: nine stop the second one."""
    openai_server.plays(Answer(usage=(100, 7)))
    out = tmp_path / "m.jsonl"
    words = ("learn", "--rounds", "2", *PLAYED, "--model", "openai:m", "--base-url",
             openai_server.url, "--out", out)  # fmt: skip
    for _ in range(2):
        done = rpms(*words, "--budget-tokens", 9 * CALL)
        assert done.code == 2 and "stopped: budget of 963 tokens spent (963 " in done.err
        assert len(openai_server.requests) == 9 and not out.exists()
    assert len(played(out)) == 2
    assert rpms(*words, "--budget-tokens", 99 * CALL).code == 0
    assert len(played(out, 2)) == 2 and out.exists()


@pytest.mark.engine
@pytest.mark.parametrize("method", ["expel", "langmem"])
def test_the_texts_that_a_model_writes_are_within_the_budget(
    method: str, tmp_path: Path, rpms: Rpms, lost: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(usage=(100, 7)))
    out = tmp_path / "m.jsonl"
    words = ("learn", "--method", method, "--from-runs", f"{lost}.runs", "--model", "openai:m",
             "--base-url", openai_server.url, "--out", out)  # fmt: skip
    done = rpms(*words, "--budget-usd", "1")
    assert done.code == 2 and "--budget-usd needs a price" in done.err
    assert not openai_server.requests
    done = rpms(*words, "--budget-tokens", CALL + 1)
    assert done.code == 2 and "stopped: budget of 108 tokens spent" in done.err
    assert len(openai_server.requests) == 2 and not out.exists()


@pytest.mark.engine
def test_a_sample_can_be_learned_from(tmp_path: Path, rpms: Rpms) -> None:
    world, out = get_environment("alfworld"), tmp_path / "m.jsonl"
    few = ("--limit", "6", "--spread", "--max-steps", "1", "--workers", "0")
    assert rpms("learn", *few, "--out", out).code == 0
    goals = {task["id"]: task["goal"] for task in world.tasks(world.learning_split)}
    kinds = {world.parse_goal(goals[line["task"]])["type"] for line in played(out)}
    assert kinds == {*world.goal_types()}


@pytest.mark.engine
def test_learning_and_a_single_episode_follow_a_plan(tmp_path: Path, rpms: Rpms) -> None:
    out = tmp_path / "m.jsonl"
    words = ("--plan", "paper", "--limit", "1", "--workers", "0", "--out", out)
    assert rpms("learn", *words).code == 0
    manifest = json.loads((tmp_path / "m.jsonl.runs" / "round1" / "manifest.json").read_text())
    fixed = read_plan("paper").settings
    assert {name: manifest["conditions"]["B"][name] for name in fixed} == fixed
    done = rpms(
        "run", "--plan", "paper", "--split", "generated_unseen", "--condition", "B", "--prompts"
    )
    assert done.code == 0 and "9. cool {obj} with {recep}" in done.out
    assert "10. examine" not in done.out and "] inventory" not in done.out
