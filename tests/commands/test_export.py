"""``rpms export`` from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rpms.commands import main as cli
from tests.evals.sample_runs import episode, slug, write_run

WINS = {"A": [True, False], "D": [True, True]}


def rpms(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["rpms", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return int(left.value.code or 0)


def test_a_line_for_each_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = write_run(tmp_path / "run", WINS), tmp_path / "new" / "out.jsonl"
    lost = episode("A", 1, False)
    (run / "steps" / slug("A") / f"{slug(lost['task'])}.json.gz").unlink()
    assert rpms(monkeypatch, "export", run, "--format", "atif", "--out", out) == 0
    assert len([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]) == 3
    told = capsys.readouterr().out
    assert "3 episodes; 1 have no step log that can be read and were left out" in told
    assert [file.name for file in out.parent.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--format", "csv", "--out", "x.jsonl"), "unknown format 'csv'; choose from atif, chat"),
        (("--format", "atif", "--out", "x.jsonl", "--conditions", "Z"), "no condition 'Z'"),
        (("--format", "atif", "--out", "manifest.json/x.jsonl"), "cannot write"),
        (("--format", "chat", "--out", "manifest.json/x.jsonl"), "cannot write"),
        (("--format", "chat", "--out", "x.jsonl", "--per", "word"), "unknown --per 'word'"),
        (("--format", "chat", "--out", "x.jsonl", "--expert"), "give either DIR"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(write_run(tmp_path, WINS))
    assert rpms(monkeypatch, "export", ".", *words) == 2
    err = capsys.readouterr().err
    assert told in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--format", "atif"), "give --format chat, not atif"),
        (
            ("--format", "chat", "--split", "valid_seen"),
            "nothing is trained on alfworld valid_seen",
        ),
        (("--format", "chat", "--conditions", "Z"), "unknown condition 'Z'"),
        (("--format", "chat", "--rules", "nowhere"), "nowhere"),
    ],
)
def test_what_the_expert_cannot_do_is_said_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    more = ("--limit", "2", "--workers", "0", "--out", tmp_path / "x.jsonl")
    assert rpms(monkeypatch, "export", "--expert", *words, *more) == 2
    err = capsys.readouterr().err
    assert told in err and err.count("\n") == 1


@pytest.mark.engine
def test_the_expert_writes_the_same_bytes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--format", "chat", "--conditions", "A,D,D", "--limit", "7", "--mistakes", "0.2")
    arm = ("--arm", "short:condition=B,without_rules=universal")
    for name in ("a.jsonl", "b.jsonl"):
        out = ("--workers", "0", "--out", tmp_path / name)
        assert rpms(monkeypatch, "export", "--expert", *words, *arm, *out) == 0
    first, *same = [tmp_path.joinpath(name).read_bytes() for name in ("a.jsonl", "b.jsonl")]
    assert [first] == same
    rows = [json.loads(line) for line in (tmp_path / "a.meta.jsonl").read_text().splitlines()]
    assert {row["condition"] for row in rows} == {"A", "D", "short"}
    told = capsys.readouterr()
    assert "7 of 7 episodes" in told.err
    assert f"{len(rows)} lines" in told.out
