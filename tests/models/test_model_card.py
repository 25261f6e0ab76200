"""The results on the card of a model that we tuned."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from rpms.models import weights
from rpms.models.weights import results_of

ROW = "{split: test, tasks: 20, tunings: 3, won: {A: 0.25, D+verify: 0.9}}"


def card(folder: Path, front: str) -> None:
    (folder / "tuned.md").write_text(f"---\nlicense: apache-2.0\n{front}---\n# Tuned\n", "utf-8")


def test_the_results_are_those_of_the_front_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "CARDS", tmp_path)
    card(tmp_path, f"results: {ROW}\n")
    results = results_of("local:tuned?threads=2")
    assert results and results.won == {"A": 0.25, "D+verify": 0.9}
    assert (results.split, results.tasks, results.tunings) == ("test", 20, 3)


def test_without_a_card_or_results_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "CARDS", tmp_path / "cards")
    (tmp_path / "cards").mkdir()
    card(tmp_path, f"results: {ROW}\n")
    card(tmp_path / "cards", "")
    for name in ("local:tuned", "local:other", "local:../tuned", "openai:tuned", "sim"):
        assert results_of(name) is None, name


def test_a_percentage_is_no_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "CARDS", tmp_path)
    card(tmp_path, f"results: {ROW.replace('0.9', '90')}\n")
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        results_of("local:tuned")
