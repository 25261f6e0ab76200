"""A key planted in the environment must not come out anywhere, whatever a server says."""

from __future__ import annotations

import base64
import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.openai_server import Answer, OpenAIServer

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-planted-4f9a8b7c6d5e"
OTHER = "planted without any shape 17"
PASSWORD = "planted-pass"
SECRETS = (KEY, OTHER, PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode())
Rpms = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def rpms(tmp_path: Path) -> Rpms:
    planted = {"OPENAI_API_KEY": KEY, "SOME_OTHER_TOKEN": OTHER}
    env = {**os.environ, **planted, "RPMS_RESPONSE_CACHE": str(tmp_path / "replies.sqlite")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rpms.cli", *words],
            cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    return run


def texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            yield str(file), gzip.decompress(data) if file.suffix == ".gz" else data


def leaks(folder: Path, *done: subprocess.CompletedProcess[str]) -> list[str]:
    """Where a secret can be read, also across the line breaks of a terminal."""
    found = [("what was said", one.stdout + one.stderr) for one in done]
    found += [(name, data.decode("utf-8", "replace")) for name, data in texts(folder)]
    return [
        f"{secret} in {name}" for name, text in found for secret in SECRETS
        if "".join(secret.split()) in "".join(text.split())
    ]  # fmt: skip


@pytest.mark.engine
def test_a_refused_key_is_in_no_file_and_no_message(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    error = f"Incorrect API key provided: AUTHORIZATION; also {OTHER}"
    openai_server.plays(Answer(status=401, error=error))
    words = ("--model", "openai:m", "--base-url", openai_server.url)
    run = tmp_path / "run"
    few = ("--conditions", "A", "--limit", "5", "--workers", "1", "--concurrency", "2")
    stopped = rpms("eval", "--out", str(run), *few, *words)
    assert stopped.returncode == 2 and "Incorrect API key provided: Bearer ***" in stopped.stderr
    assert openai_server.headers[0]["authorization"] == f"Bearer {KEY}"
    single = rpms("run", "--condition", "A", *words)
    assert "Incorrect API key provided: Bearer ***" in " ".join(single.stdout.split())
    report = rpms("report", str(run))
    assert report.returncode == 0
    names = [Path(name).name for name, _ in texts(run)]
    assert {"manifest.json", "episodes.jsonl", "report.html", "report.json"} <= set(names)
    assert any(name.endswith(".gz") for name in names)
    assert any(b"Incorrect API key provided" in data for _, data in texts(run))
    assert leaks(run, stopped, single, report) == []


@pytest.mark.engine
def test_a_password_in_the_address_is_not_kept(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    openai_server.plays(Answer(status=401, error="you are AUTHORIZATION"))
    address = openai_server.url.replace("://", f"://me:{PASSWORD}@")
    run = tmp_path / "run"
    words = ("--conditions", "A", "--limit", "1", "--workers", "0", "--model", "openai:m")
    done = rpms("eval", "--out", str(run), *words, "--base-url", address)
    assert done.returncode == 2 and "A 0/0 (1 errors)" in done.stdout
    assert "1 of the 1 episodes played now ended in an error" in done.stderr
    assert b"://***@127.0.0.1" in (run / "manifest.json").read_bytes()
    assert any(b"you are B" in data for _, data in texts(run))
    again = rpms("eval", "--out", str(run), *words, "--base-url", address)
    assert "other settings" not in again.stderr, "the address is still the same one"
    assert "1 of the 1 episodes" in again.stderr and again.returncode == 2
    assert leaks(run, done, again) == []


def test_the_traceback_of_a_bug_is_printed_without_keys() -> None:
    program = (
        "import sys, rpms.cli as cli\n"
        "def broken(**options): raise ValueError('sent ' + sys.argv[1])\n"
        "cli.app = broken\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, KEY], cwd=ROOT, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "ValueError: sent ***" in done.stderr
    assert KEY not in done.stderr
