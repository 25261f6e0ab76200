"""The real ``langgraph dev`` on a port of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.processes import RETRY_DEADLINE_S, wait_until


class Server(NamedTuple):
    url: str
    log: Path


def free_port() -> int:
    """Below those that the system hands out: no other test's server is given it meanwhile."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def is_up(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return bool(httpx.get(f"{url}/ok", timeout=10).json()["ok"])
    return False


@contextmanager
def langgraph_dev(
    folder: Path, config: Mapping[str, Any], *options: str, cwd: Path, **variables: str
) -> Iterator[Server]:
    """Serve what a configuration lists, until it is asked to stop; its files are in the folder."""
    file, log, port = folder / "langgraph.json", folder / "log.txt", str(free_port())
    file.write_text(json.dumps(config), encoding="utf-8")
    words = ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", port, *options]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", "dev", "--config", str(file), *words],
            cwd=cwd, stdout=out, stderr=subprocess.STDOUT,
            env={**os.environ, "LANGSMITH_TRACING": "false", **variables},
        )  # fmt: skip
    server = Server(f"http://127.0.0.1:{port}", log)
    try:
        wait_until(lambda: is_up(server.url), process)
        yield server
        process.send_signal(signal.SIGINT)
        process.wait(RETRY_DEADLINE_S)
    finally:
        print(log.read_text())  # shown where a test fails
        process.kill()
        process.wait()
