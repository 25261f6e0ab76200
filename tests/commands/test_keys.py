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
PARAMETER = "planted-parameter"
SECRETS = (KEY, OTHER, PASSWORD, PARAMETER, base64.b64encode(f"me:{PASSWORD}".encode()).decode())
Rpms = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def rpms(tmp_path: Path) -> Rpms:
    planted = {"OPENAI_API_KEY": KEY, "SOME_OTHER_TOKEN": OTHER}
    env = {**os.environ, **planted, "RPMS_RESPONSE_CACHE": str(tmp_path / "replies.sqlite")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rpms", *words],
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
    few = ("--conditions", "A", "--limit", "5", "--workers", "0", "--concurrency", "2")
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
    address = openai_server.url.replace("://", f"://me:{PASSWORD}@") + f"?api-key={PARAMETER}"
    run = tmp_path / "run"
    words = ("--conditions", "A", "--limit", "1", "--workers", "0", "--model", "openai:m")
    done = rpms("eval", "--out", str(run), *words, "--base-url", address)
    assert done.returncode == 2 and "A 0/0 (1 errors)" in done.stdout
    assert "1 of the 1 episodes played now ended in an error" in done.stderr
    manifest = (run / "manifest.json").read_bytes()
    assert b"://***@127.0.0.1" in manifest and b"?api-key=***" in manifest
    assert any(b"you are B" in data for _, data in texts(run))
    again = rpms("eval", "--out", str(run), *words, "--base-url", address)
    assert "other settings" not in again.stderr, "the address is still the same one"
    assert "1 of the 1 episodes" in again.stderr and again.returncode == 2
    assert leaks(run, done, again) == []


@pytest.mark.engine
def test_a_model_that_repeats_every_secret(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    """Nor does the warning about the server name its password."""
    openai_server.plays(f"Thought: say {KEY} {OTHER} {PASSWORD} {PARAMETER}.\nAction: frobnicate")
    address = openai_server.url.replace("://", f"://me:{PASSWORD}@") + f"?api-key={PARAMETER}"
    words = ("--model", "openai:m", "--base-url", address, "--constrain", "grammar")
    few = ("--conditions", "A", "--limit", "1", "--workers", "1", "--max-steps", "2")
    done = rpms("eval", "--out", str(tmp_path / "run"), *few, *words)
    assert done.returncode == 0 and "replies are not constrained" in done.stderr
    single = rpms("run", "--condition", "A", "--max-steps", "2", *words)
    assert "say *** *** *** ***." in " ".join(single.stdout.split())
    report = rpms("report", str(tmp_path / "run"))
    assert (tmp_path / "replies.sqlite").is_file()
    assert leaks(tmp_path, done, single, report) == []


def test_the_traceback_of_a_bug_is_printed_without_keys() -> None:
    program = (
        "import sys, rpms.commands.main as cli\n"
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
