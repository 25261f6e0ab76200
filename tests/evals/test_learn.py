"""What may be learned from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.running.learn import (
    check_usual,
    find_runs,
    gather,
    round_context,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import contexts, episode, write_run


def written(folder: Path, *labels: str, split: str = "generated_seen", **changes: Any) -> Path:
    wins = {label: [True, False, True] for label in labels}
    return write_run(folder, wins, logs=False, split=split, **changes)


def test_rounds_differ_in_seed_and_later_ones_sample() -> None:
    base = RunContext(model="openai:m", max_steps=9)
    first, second, third = (round_context(base, number) for number in (1, 2, 3))
    assert [c.seed for c in (first, second, third)] == [0, 1, 2]
    assert [c.temperature for c in (first, second, third)] == [0.0, 0.7, 0.7]
    assert {c.condition for c in (first, second, third)} == {"B"}
    assert first.model == "openai:m" and first.max_steps == 9
    assert round_context(base.with_(temperature=1.0), 2).temperature == 1.0
    assert round_context(base, 1, "E").guard == "procedure"


def test_rules_only_runs_of_a_learning_split_are_taken_and_named(tmp_path: Path) -> None:
    sessions = [{"commit": "abc1234"}, {"commit": "def5678"}]
    conditions = contexts("B")
    conditions["B"]["model"] = "openai:m"
    for number in (1, 2):
        folder = tmp_path / f"round{number}"
        written(folder, "B", model="openai:m", sessions=sessions, conditions=conditions)
    experience = gather(find_runs(tmp_path, "alfworld"))
    assert (
        len(experience.records) == 6
        and experience.rounds == 2
        and experience.agents == ["openai:m"]
    )
    assert experience.sources == [
        "openai:m, alfworld generated_seen, 3 tasks, 2 rounds of condition B, "
        "commit abc1234, def5678"
    ]


def test_failed_episodes_are_left_out_named_and_counted(tmp_path: Path) -> None:
    lines = {("B", n): {"failure_mode": "model_error", "error": "401 bad key"} for n in (1, 2)}
    folder = write_run(tmp_path, {"B": [True, False, False]}, lines=lines, split="valid_train")
    experience = gather(find_runs(folder, "alfworld"))
    assert len(experience.records) == 1 and "1 of 3 episodes" in experience.sources[0]
    assert len(experience.failed) == 2 and experience.failed[0].endswith(": 401 bad key")
    (tmp_path / "episodes.jsonl").write_text(json.dumps(episode("B", 1, False, **lines["B", 1])))
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(RpmsError, match=r"no episode to learn from .*401 bad key"):
        gather(find_runs(folder, "alfworld"))


@pytest.mark.parametrize(
    ("label", "split", "why"),
    [
        ("A", "generated_seen", "without rules"),
        ("D", "generated_seen", "with memory"),
        ("B+verify", "generated_seen", "guard verify"),
        ("B", "valid_unseen", "a test split"),
        ("B", "valid_seen", "a test split"),
        ("B", "generated_unseen", "a test split"),
    ],
)
def test_anything_else_needs_a_word_which_is_kept(
    tmp_path: Path, label: str, split: str, why: str
) -> None:
    runs = find_runs(written(tmp_path, label, split=split), "alfworld")
    with pytest.raises(RpmsError) as refused:
        gather(runs)
    assert why in str(refused.value) and "--allow" in str(refused.value)
    assert "\n" not in str(refused.value) and label in str(refused.value)
    with pytest.raises(RpmsError, match=why):
        check_usual("alfworld", split, runs[0].settings(label), "")
    check_usual("alfworld", split, runs[0].settings(label), "said so")
    experience = gather(runs, allowed="a policy of our own\nplays it")
    assert len(experience.records) == 3
    assert f"condition {label}" in experience.sources[0] and split in experience.sources[0]
    assert f"{why} (allowed: a policy of our own plays it)" in experience.sources[0]


def test_the_header_names_the_code_that_played_in_the_place_of_a_model(tmp_path: Path) -> None:
    (run,) = find_runs(written(tmp_path, "B"), "alfworld")
    stage = {"path": "rpms.evals.running.expert:STAGES", "hash": ""}
    run.manifest.swapped["B"] = {"nodes llm_call": stage}
    with pytest.raises(RpmsError, match=r"played by code, not by a model.*--allow"):
        gather([run])
    experience = gather([run], allowed="mistakes made on purpose")
    assert experience.agents == [stage["path"]]
    (source,) = experience.sources
    assert source.startswith(f"{stage['path']}, ") and "mistakes made on purpose" in source
    run.manifest.swapped["B"] = {"nodes scf": stage}  # another stage than the one that acts
    assert gather([run]).agents == [run.model("B")]


def test_one_condition_can_be_taken_out_of_a_whole_evaluation(tmp_path: Path) -> None:
    runs = find_runs(written(tmp_path, "A", "B", "D"), "alfworld")
    with pytest.raises(RpmsError, match="condition A: without rules"):
        gather(runs)
    experience = gather(runs, condition="B")
    assert len(experience.records) == 3 and "allowed" not in experience.sources[0]
    with pytest.raises(RpmsError, match=r"no condition 'E' in .*; it has A, B, D"):
        gather(runs, condition="E")


def test_runs_of_other_worlds_and_splits_are_passed_over(tmp_path: Path) -> None:
    written(tmp_path / "one", "B")
    written(tmp_path / "two", "B", split="valid_seen")
    assert len(find_runs(tmp_path, "alfworld")) == 2
    (run,) = find_runs(tmp_path, "alfworld", "valid_seen")
    assert run.folder.name == "two"
    with pytest.raises(RpmsError, match="of scienceworld; it has episodes of alfworld: give --env"):
        find_runs(tmp_path, "scienceworld")
    with pytest.raises(RpmsError, match=r"no manifest\.json in"):
        find_runs(tmp_path / "elsewhere", "alfworld")
