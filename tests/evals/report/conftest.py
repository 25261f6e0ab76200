"""A browser for the tests of the page, and a run to look at."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from rpms.evals.report import read_report
from rpms.evals.report.page import write_report
from rpms.nodes.prompt_examples import NEW_TASK
from tests.conftest import BROWSER
from tests.evals.sample_runs import SYSTEM, write_run

PATIENCE_MS = 120_000
"""A net for what would never come, on a machine that may be busy with other things."""
expect.set_options(timeout=PATIENCE_MS)

Open = Callable[..., Page]
COUNT_UNPACKED = """
window.unpacked = 0;
const Real = window.DecompressionStream;
window.DecompressionStream = class extends Real {
  constructor(kind) { super(kind); window.unpacked += 1; }
};
"""
"""A page that says how many logs it has unpacked."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=arguments)
        yield started
        started.close()  # with its event loop, which other tests must not find running


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    wins = {
        "A": [False] * 8 + [True] * 4,
        "B": [False, True] * 6,
        "D scf=off": [True] * 10 + [False] * 2,
    }
    lines = {
        ("A", 0): {
            "failure_mode": "model_error",
            "error": "401: no key for </td><b>you</b>",
            "error_place": PLACE,
        },
        ("A", 2): {"failure_mode": "wrong_termination", "steps": 3},
    }
    write_run(folder, wins, lines=lines)
    return write_report(read_report(folder))[-1]


PLACE = {
    "stage": "llm_call", "file": "/home/me/mine.py", "line": 7,
    "frames": "", "traceback": '  File "/home/me/mine.py", line 7, in ask\n    <b>you</b>\n',
}  # fmt: skip
"""Where an error was raised in somebody's own code."""


def prompt_of(number: int) -> list[str]:
    """Rules that stay, a state that changes, and a history that grows."""
    blocks = [
        "An example ends.", NEW_TASK, "[RULES - Always Follow]\n  [U-1] Look first.",
        "[Task Goal]\n  Goal: a mug",
        f"[Current State]\n  You are at shelf {number}.\n  Hands: empty",
        "[Past Experience]\n  OK: look", "[Weather]\n  Rain", "You are in a room.",
    ]  # fmt: skip
    turns = [f"{who} {n}" for n in range(1, number) for who in ("Action: look", "Nothing new.")]
    return [SYSTEM, "\n\n".join(blocks), *turns]


@pytest.fixture(scope="session")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose prompts have blocks, and a history."""
    report = read_report(write_run(tmp_path_factory.mktemp("run"), {"B": [True] * 3}))
    for episode in report.run.episodes.values():
        file = report.run.log_file(episode)
        log: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
        texts: dict[str, int] = {}
        for number, step in enumerate(log["steps"], start=1):
            roles = ["system", "user", *["assistant", "user"] * number]
            step["prompt"] = [
                [role, texts.setdefault(text, len(texts))]
                for role, text in zip(roles, prompt_of(number), strict=False)
            ]
        log["messages"] = list(texts)
        file.write_bytes(gzip.compress(json.dumps(log).encode()))
    return write_report(report)[-1]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens a page and, at the end, asks that it was silent: no error and no request."""
    heard: list[str] = []
    contexts = []

    def asked(file: Path) -> Callable[[Request], None]:
        """Notes every request but the one for the page itself."""

        def note(request: Request) -> None:
            if re.split(r"[?#]", request.url)[0] != file.as_uri():
                heard.append(f"request: {request.url}")

        return note

    def open_page(
        file: Path, address: str = "", scheme: str = "light", width: int = 1280, script: str = ""
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme  # type: ignore[arg-type]
        )  # fmt: skip
        if script:
            context.add_init_script(script)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: heard.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.on("request", asked(file))
        page.goto(f"{file.as_uri()}{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []
