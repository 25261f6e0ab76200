"""A report says whose memory it stands on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rpms.evals.report import build_report
from rpms.evals.run_folder import read_run
from tests.evals.sample_runs import contexts, write_run

SOURCE = "sim, alfworld generated_seen, 60 tasks, 3 rounds of condition B, commit abc1234"


def notes_of(folder: Path, model: str, learned_by: list[str], **changes: Any) -> dict[str, str]:
    labels = ["B", "D", "D memory_control=empty"]
    conditions = {name: {**made, "model": model} for name, made in contexts(*labels).items()}
    memory = {"sources": [SOURCE], "learned_by": learned_by, "entries": 9, "later": "ignored"}
    given = {
        "model": model,
        "conditions": conditions,
        "hashes": {"memory": dict.fromkeys(labels[1:], "m" * 64)},
        "memories": {"m" * 64: memory},
        **changes,
    }
    run = read_run(write_run(folder, {label: [True] for label in labels}, logs=False, **given))
    report = build_report(run)
    return {table.id: " ".join(table.notes) for table in report.tables}


def test_the_sources_are_printed_and_another_players_memory_is_called_that(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, "openai:m", ["sim"])
    assert f"Memory of D full: learned from {SOURCE}." in notes["memory"]
    assert (
        "Borrowed memory: what D full remembers was learned by sim, not by openai:m."
        in notes["main"]
    )


def test_a_models_own_memory_needs_no_warning(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, "openai:m", ["openai:m"])
    assert SOURCE in notes["memory"] and "Borrowed" not in notes["main"]


def test_one_of_several_players_is_not_enough(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, "openai:m", ["openai:m", "sim"])
    assert "learned by openai:m and sim, not by openai:m alone" in notes["main"]


def test_a_run_older_than_the_note_says_that_nobody_knows(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, "openai:m", [], memories={})
    assert "learned from sources that it does not name" in notes["memory"]
    assert "Borrowed" not in notes["main"]
