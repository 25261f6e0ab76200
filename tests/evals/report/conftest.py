"""A browser for the tests of the page, and a run to look at."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.page import write_page
from rpms.prompts.examples import NEW_TASK
from tests.conftest import BROWSER
from tests.evals.sample_runs import SYSTEM, write_run

PATIENCE_MS = 120_000
"""A net for what would never come, on a machine that may be busy with other things."""
expect.set_options(timeout=PATIENCE_MS)

Open = Callable[..., Page]
PARAGRAPH = "Your task is to determine the boiling point of an unknown substance. " * 8
PLACE = {
    "stage": "llm_call", "file": "/home/me/mine.py", "line": 7,
    "frames": "", "traceback": '  File "/home/me/mine.py", line 7, in ask\n    <b>you</b>\n',
}  # fmt: skip
"""Where an error was raised in somebody's own code."""
WINS = {
    "D scf=off": [True, True, True, False],
    "B": [False, True, False, False],
    "A": [False, False, False, True],
}
LINES: dict[tuple[str, int], dict[str, Any]] = {
    ("A", 0): {
        "failure_mode": "model_error", "error": "401: no key for </td><b>you</b>",
        "error_place": PLACE,
    },
    ("A", 2): {"failure_mode": "wrong_termination", "steps": 3},
    ("D scf=off", 3): {"goal": PARAGRAPH},
}  # fmt: skip


JUDGED = {("B", 1): {3: {"judged": [["O-ACT-001", "broken"], ["U-DO-002", "kept"]]}}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=arguments)
        yield started
        started.close()  # with its event loop, which other tests must not find running


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run that has everything, conditions in an order of their own."""
    folder = write_run(tmp_path_factory.mktemp("run"), WINS, lines=LINES, steps=JUDGED)
    report = read_report(folder)
    for episode in report.run.episodes.values():
        file = report.run.log_file(episode)
        if episode.condition == "B":
            log = json.loads(gzip.decompress(file.read_bytes()))
            prompted(log)
            if episode.index == 1:
                vetoed(log)
            file.write_bytes(gzip.compress(json.dumps(log).encode()))
        elif (episode.condition[0], episode.index) == ("D", 0):
            file.write_bytes(file.read_bytes()[:60])  # damaged after the run was read
    return write_page(report)


def prompted(log: dict[str, Any]) -> None:
    """Prompts with rules that stay, a state that changes, and a history that grows."""
    texts: dict[str, int] = {}
    for number, step in enumerate(log["steps"], start=1):
        blocks = [
            "An example ends.", NEW_TASK, "[RULES - Always Follow]\n  [U-1] Look first.",
            "[Task Goal]\n  Goal: a mug",
            f"[Current State]\n  You are at shelf {number}.\n  Hands: empty",
            "[Past Experience]\n  OK: look", "[Weather]\n  Rain", "You are in a room.",
        ]  # fmt: skip
        turns = [f"{who} {n}" for n in range(1, number) for who in ("Action: look", "Nothing new.")]
        roles = ["system", "user", *["assistant", "user"] * number]
        step["prompt"] = [
            [role, texts.setdefault(text, len(texts))]
            for role, text in zip(roles, [SYSTEM, "\n\n".join(blocks), *turns], strict=False)
        ]
    log["messages"] = list(texts)


def vetoed(log: dict[str, Any]) -> None:
    """The third step was retried and overridden; the fifth had no readable action."""
    reasons = [("O-ACT-001", "retried"), ("U-FAIL-001", "overridden")]
    log["steps"][2]["decisions"] = [
        {"step": 3, "proposal": "go to the moon", "verdict": verdict, "rule": rule,
         "reason": "there is no air", "repair": "", "played": ""}
        for rule, verdict in reasons
    ]  # fmt: skip
    log["steps"][4].update(action="", reply="I would rather not say (a+b).")
