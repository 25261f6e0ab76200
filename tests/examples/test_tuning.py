"""The example that tunes: decisions share their beginnings in trees. Torch is not needed here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rpms.evals.records.run_folder import read_run
from rpms.evals.running.export_chat import export_chat
from tests.evals.sample_runs import write_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def import_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "tune", raising=False)


def test_every_reply_with_weight_is_one_example(tmp_path: Path) -> None:
    from tune import read_examples

    line = [
        {"role": "user", "content": "a mug"},
        {"role": "assistant", "content": "Action: look", "weight": 1},
        {"role": "user", "content": "the desk"},
        {"role": "assistant", "content": "Action: dance", "weight": 0},
        {"role": "user", "content": "Nothing happens."},
        {"role": "assistant", "content": "Action: take mug 1", "weight": 1},
    ]
    (tmp_path / "lines.jsonl").write_text(json.dumps({"messages": line}) + "\n")
    first, second = read_examples(tmp_path / "lines.jsonl")
    assert first["prompt"] == line[:1]
    assert [message["content"] for message in second["prompt"]] == [
        message["content"] for message in line[:-1]
    ]
    assert second["completion"] == [{"role": "assistant", "content": "Action: take mug 1"}]
    assert all(set(message) == {"role", "content"} for message in second["prompt"])


def test_a_run_s_export_gives_one_example_for_each_decision(tmp_path: Path) -> None:
    from tune import read_examples

    run = read_run(write_run(tmp_path / "run", {"D": [True, True]}, split="generated_seen"))
    written = export_chat(run, tmp_path / "lines.jsonl")
    examples = [*read_examples(tmp_path / "lines.jsonl")]
    assert len(examples) == written.targets > 0
    assert all(example["prompt"][-1]["role"] == "user" for example in examples)


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [(["--help"], 0, "--merge"), (["--help"], 0, "--adapter"), (["--model", "x"], 2, "--data")],
)
def test_options_are_read_without_torch(words: list[str], code: int, output: str) -> None:
    bare = [sys.executable, "-S", "-E", str(EXAMPLES / "tune.py")]  # no installed packages
    done = subprocess.run([*bare, *words], capture_output=True, text=True)
    assert done.returncode == code and output in done.stdout + done.stderr


def test_a_missing_package_is_an_error_of_one_line() -> None:
    bare = [sys.executable, "-S", "-E", str(EXAMPLES / "tune.py")]
    words = ["--model", "x.gguf", "--data", "y", "--out", "z"]
    done = subprocess.run([*bare, *words], capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "pip install transformers peft accelerate gguf" in done.stderr.splitlines()[-1]


def test_a_tree_holds_each_decision_once_and_whole() -> None:
    from tune import Decision, grow

    texts = ["ABCxy", "ABDuv", "ABDuvEz", "Qz", "ABCxy"]
    starts = [3, 3, 6, 1, 3]
    decisions = [
        Decision(tuple(map(ord, text)), start) for text, start in zip(texts, starts, strict=True)
    ]
    tree = grow(decisions)
    assert len(tree.tokens) == len({text[: n + 1] for text in texts for n in range(len(text))})

    def line(node: int) -> str:
        """The tokens that a token attends to, in the order of their positions."""
        seen = [k for k in range(node + 1) if node < tree.end[k]]
        assert [tree.depth[k] for k in seen] == [*range(len(seen))]
        return "".join(chr(tree.tokens[k]) for k in seen)

    learned = sorted((line(before), line(node)) for before, node in tree.learned)
    wanted = [
        (text[:n], text[: n + 1])
        for text, start in zip(texts, starts, strict=True)
        for n in range(start, len(text))
    ]
    assert learned == sorted(wanted)


def test_trees_keep_to_their_size_and_share_what_neighbours_share() -> None:
    from tune import Decision, plant

    episodes = [[(*range(100), *([1000 + e] * n), 7) for n in range(20)] for e in range(3)]
    decisions = [Decision(tokens, len(tokens) - 1) for episode in episodes for tokens in episode]
    trees = [*plant(decisions, 150)]
    assert all(len(tree.tokens) <= 150 for tree in trees)
    assert sum(len(tree.learned) for tree in trees) == len(decisions)
    assert sum(len(tree.tokens) for tree in trees) < len(decisions) * 10
    with pytest.raises(SystemExit, match="--tokens"):
        [*plant(decisions, 50)]
