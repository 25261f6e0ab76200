"""A key planted in the environment must not come out anywhere, whatever a server says."""

from __future__ import annotations

import base64
import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import Done, Rpms
from tests.commands.conftest import ROOT
from tests.openai_server import Answer, OpenAIServer

KEY = "sk-planted-4f9a8b7c6d5e"
OTHER = "planted without any shape 17"
PASSWORD = "planted-pass"
PARAMETER = "planted-parameter"
SECRETS = (KEY, OTHER, PASSWORD, PARAMETER, base64.b64encode(f"me:{PASSWORD}".encode()).decode())
FEW = ("--conditions", "A", "--workers", "0", "--model", "openai:m")


@pytest.fixture
def rpms(rpms: Rpms, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Rpms:
    for name, secret in (("OPENAI_API_KEY", KEY), ("SOME_OTHER_TOKEN", OTHER)):
        monkeypatch.setenv(name, secret)
    return rpms


def texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            yield str(file), gzip.decompress(data) if file.suffix == ".gz" else data


def leaks(folder: Path, *outputs: Done) -> list[str]:
    """Where a secret can be read, also across the line breaks of a terminal."""
    places = [("the output", done.out + done.err) for done in outputs]
    places += [(name, data.decode("utf-8", "replace")) for name, data in texts(folder)]
    return [
        f"{secret} in {name}" for name, text in places for secret in SECRETS
        if "".join(secret.split()) in "".join(text.split())
    ]  # fmt: skip


@pytest.mark.engine
def test_a_refused_key_is_in_no_file_and_no_message(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    error = f"Incorrect API key provided: AUTHORIZATION; also {OTHER}"
    openai_server.plays(Answer(status=401, error=error))
    words = ("--base-url", openai_server.url)
    run = tmp_path / "run"
    stopped = rpms("eval", "--out", run, *FEW, "--limit", "4", "--concurrency", "2", *words)
    assert stopped.code == 2 and "Incorrect API key provided: Bearer ***" in stopped.err
    assert openai_server.headers[0]["authorization"] == f"Bearer {KEY}"
    single = rpms("run", "--condition", "A", "--model", "openai:m", *words)
    assert "Incorrect API key provided: Bearer ***" in " ".join(single.out.split())
    report = rpms("report", run)
    assert report.code == 0
    names = [Path(name).name for name, _ in texts(run)]
    assert {"manifest.json", "episodes.jsonl", "report.html"} <= set(names)
    assert any(name.endswith(".gz") for name in names)
    assert any(b"Incorrect API key provided" in data for _, data in texts(run))
    assert leaks(tmp_path, stopped, single, report) == []


@pytest.mark.engine
def test_a_password_in_the_address_is_not_kept_nor_what_a_model_repeats(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does the warning about the server name its password."""
    openai_server.plays(Answer(status=401, error="you are AUTHORIZATION"))
    address = openai_server.url.replace("://", f"://me:{PASSWORD}@") + f"?api-key={PARAMETER}"
    run = tmp_path / "run"
    words = ("eval", "--out", run, *FEW, "--limit", "1", "--max-steps", "2", "--base-url", address)
    words += ("--cache", tmp_path / "replies.sqlite")
    done = rpms(*words, "--set", "constrain=grammar")
    assert done.code == 2 and "A 0/0 (1 error)" in done.out
    assert "1 of the 1 episodes of this session ended in an error" in done.err
    manifest = (run / "manifest.json").read_bytes()
    assert b"://***@127.0.0.1" in manifest and b"?api-key=***" in manifest
    assert any(b"you are B" in data for _, data in texts(run))
    openai_server.plays(f"Thought: say {KEY} {OTHER} {PASSWORD} {PARAMETER}.\nAction: frobnicate")
    again = rpms(*words, "--set", "constrain=grammar")
    assert again.code == 0, "the address is still the same one"
    assert "replies are not constrained" in caplog.text
    single = rpms("run", "--condition", "A", "--model", "openai:m", "--max-steps", "2",
                  "--base-url", address)  # fmt: skip
    assert "say *** *** *** ***." in " ".join(single.out.split())
    report = rpms("report", run)
    assert (tmp_path / "replies.sqlite").is_file()
    logged = Done(0, "", caplog.text)
    assert leaks(tmp_path, done, again, single, report, logged) == []


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
