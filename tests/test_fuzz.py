"""Hostile words and files: whatever comes in, the answer is a result or one line, and it ends.

``make fuzz`` draws other cases every time (``RPMS_FUZZ_SEED``), and as many as one likes
(``RPMS_FUZZ_CASES``). A case that fails is named by its kind and number, which with the seed make
the same case again.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

import pytest

from rpms.commands import main as cli
from tests.fuzz.cases import KINDS, TREE, Case

SEED = os.environ.get("RPMS_FUZZ_SEED", "17")
CASES = int(os.environ.get("RPMS_FUZZ_CASES", "500"))
GROUP = 200
RETRY_DEADLINE_S = 120
ROOM = 4 << 30
"""What a case may take of memory; reading a device to its end would take all there is."""
SHOWN = 5


class Hung(BaseException):
    """Nobody catches it by the way."""


def groups() -> Iterator[tuple[str, range]]:
    """The numbers of all cases by kind, in pieces that test workers can share."""
    for kind, (_, share) in KINDS.items():
        count = -(-CASES * share // 1000)
        for start in range(0, count, GROUP):
            yield kind, range(start, min(start + GROUP, count))


def outcome(case: Case, monkeypatch: pytest.MonkeyPatch) -> str:
    """Empty if all is well, else what went wrong."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with monkeypatch.context() as patch:
        for name, value in case.variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["rpms", *case.words])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(sys, "excepthook", sys.excepthook)  # the command sets its own
        try:
            cli.main()
        except SystemExit as ending:
            code = ending.code
        except (Exception, Hung):
            return traceback.format_exc()[-1500:]
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    if code not in (0, 2) or "Traceback" in "".join(texts):
        return f"exit code {code}: {texts}"[:1500]
    return "" if code == 0 or "rpms: " in texts[1] else f"nothing was said: {texts}"[:1500]


def hung(signal_number: int, frame: FrameType | None) -> NoReturn:
    raise Hung


@pytest.fixture
def alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """No network, no key, no official games, and nothing written outside a folder of its own."""
    monkeypatch.setattr(cli, "app", TREE)  # built once, not for every case
    shared = tmp_path_factory.getbasetemp()
    for name in ("HOME", "ALFWORLD_DATA", "RPMS_CACHE"):
        monkeypatch.setenv(name, str(shared / f"fuzz-{name.lower()}"))
    for name in [*os.environ]:
        if name.endswith("_API_KEY") or name in ("RPMS_PRICES", "RPMS_RESPONSE_CACHE"):
            monkeypatch.delenv(name)
    monkeypatch.setattr("socket.socket.connect", refused)
    before = signal.signal(signal.SIGALRM, hung)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.signal(signal.SIGALRM, before)


def refused(*_: object) -> NoReturn:
    raise OSError("a case reached for the network")


@pytest.mark.parametrize(("kind", "numbers"), [*groups()], ids=str)
@pytest.mark.usefixtures("alone")
def test_hostile_input_gets_a_result_or_one_line(
    kind: str, numbers: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, _ = KINDS[kind]
    failed = []
    for number in numbers:
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        signal.alarm(RETRY_DEADLINE_S)
        case = make(Random(f"{SEED}:{kind}:{number}"), folder)
        wrong = outcome(case, monkeypatch)
        signal.alarm(0)
        if wrong:
            failed.append(f"{kind} {number}, seed {SEED}: {case}\n{wrong}")
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder, ignore_errors=True)  # nothing of a case stays
    assert not failed, f"{len(failed)} of {len(numbers)} cases:\n" + "\n".join(failed[:SHOWN])
