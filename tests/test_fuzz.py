"""Odd words and damaged files: the answer is a result or one line, and no traceback.

``make fuzz`` draws other cases every time (``RPMS_FUZZ_SEED``), and as many as one likes
(``RPMS_FUZZ_CASES``). The seed, the kind and the number of a case make the same case again.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pytest
from typer.main import get_command

from rpms.commands import main as cli
from rpms.envs import get_environment

SEED = os.environ.get("RPMS_FUZZ_SEED", "17")
CASES = int(os.environ.get("RPMS_FUZZ_CASES", "200"))
TREE = get_command(cli.app)
WORDS = (
    "-1", "0", "1", "3.5", "1e999", "nan", str(10**40), "9" * 5000, "٣", "", " ", "--", "=", ",",
    ":", "@", "%s", "{0}", "a\nb", "\x1b[31mred", "💥", "x" * 300, "a\udc80b", "..", "~nouser/x",
    "@nowhere", "nowhere/below/it", "a/" * 2000, "null", "off", "A", "A,,B", "Z", "D+verify+x",
    "os:getcwd", "no.such:thing", "x:scf=off", "x:condition=Z", "sim", "local:nowhere?ctx=-1",
    "openai:", "alfworld", "generated_seen", "valid_unseen", "nowhere.yaml", "http://[::1",
)  # fmt: skip
# Words behind these commands keep them from playing, and from asking the network.
STOPPED = {
    "run": ("--split", "nowhere"), "eval": ("--out", "out", "--split", "nowhere"),
    "learn": ("--out", "memory.jsonl", "--split", "nowhere"), "demo": ("--conditions", "nowhere"),
    "export": ("--out", "out.jsonl", "--nowhere"), "models pull": ("--nowhere",),
    "rules audit": ("--split", "nowhere"), "rules learn": ("--nowhere",),
}  # fmt: skip
JUNK = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\n", b"\t", b"{", b"]", b'"', b"NaN", b": ", b"&a ")


def commands(tree: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command by its name: a new one is drawn at once."""
    if not hasattr(tree, "commands"):
        yield " ".join(above), tree
        return
    for name, command in sorted(tree.commands.items()):
        yield from commands(command, (*above, name))


def word_case(chance: Random) -> list[str]:
    """A command with some of its options, and odd values."""
    name, command = chance.choice(COMMANDS)
    words = name.split()
    options = [option for option in command.params if "--help" not in option.opts]
    for option in chance.sample(options, k=min(len(options), chance.choice((0, 1, 1, 2, 5)))):
        if option.param_type_name == "argument":
            words.append(chance.choice(WORDS))
            continue
        words.append(chance.choice([*option.opts, *option.secondary_opts]))
        if not getattr(option, "is_flag", False):
            words.append(chance.choice(WORDS))
    return [*words, *STOPPED.get(name, ())]


COMMANDS = [*commands(TREE)]


def file_case(chance: Random) -> list[str]:
    """A file of the user's that lost, doubled or gained some bytes, and a command that reads it."""
    world = get_environment("alfworld")
    source, name, line = chance.choice((
        (world.memory, "own.jsonl", "memory stats own.jsonl"),
        (world.memory, "own.jsonl", "memory check own.jsonl"),
        (world.rules / "domain.yaml", "rules/domain.yaml", "rules check --rules rules"),
        (world.rules / "environment.yaml", "rules/environment.yaml", "rules show --rules rules"),
    ))  # fmt: skip
    data = source.read_bytes()
    for _ in range(chance.choice((1, 1, 2, 8))):
        start, end = sorted(chance.choices(range(len(data) + 1), k=2))
        data = chance.choice((
            data[:start], data[:start] + chance.choice(JUNK) + data[start:],
            data[:start] + data[min(end, start + 20) :], data[: start + 20] + data[start:],
        ))  # fmt: skip
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(data)
    return line.split()


def problem(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Empty if the command answered as it should."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["rpms", *words])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(sys, "excepthook", sys.excepthook)  # the command sets its own
        try:
            cli.main()
        except SystemExit as ending:
            code = ending.code
        except Exception:
            return traceback.format_exc()[-1500:]
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    if code not in (0, 2) or "Traceback" in "".join(texts):
        return f"exit code {code}: {texts}"[:1500]
    return "" if code == 0 or "rpms: " in texts[1] else f"no error was printed: {texts}"[:1500]


def no_network(*_: object) -> NoReturn:
    raise OSError("a case reached for the network")


@pytest.mark.parametrize("make", [word_case, file_case])
def test_odd_input_gets_a_result_or_one_line(
    make: Callable[[Random], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "app", TREE)  # built once, not for every case
    monkeypatch.setattr("socket.socket.connect", no_network)
    for name in ("HOME", "ALFWORLD_DATA", "RPMS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    failed = []
    for number in range(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        words = make(Random(f"{SEED}:{make.__name__}:{number}"))
        if wrong := problem(words, monkeypatch):
            failed.append(f"{make.__name__} {number}, seed {SEED}: {words}\n{wrong}")
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder)
    assert not failed, f"{len(failed)} of {CASES} cases:\n" + "\n".join(failed[:5])
