"""The two pictures of the README, made anew from a real run: ``python -m tools.screenshots``.

The built-in planner plays a few generated homes, so that anybody gets the same pictures without a
key. A headless browser, the one that the tests use, opens the report of that run.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rpms import evaluate
from rpms.evals.report import Report
from rpms.evals.report.page import write_report
from rpms.evals.run_folder import read_log
from rpms.vocabulary.errors import RpmsError

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TASKS = 24
WIDTH, HEIGHT = 1200, 1040
QUALITY = 75
PATIENCE_MS = 120_000


def play(folder: Path) -> Report:
    """A run of the four conditions with the built-in planner."""
    return evaluate(out=folder, limit=TASKS, spread=True, show=False)


def telling_step(report: Report) -> str:
    """The address of a step of a won episode at which one memory is dropped and another stays."""
    run = report.run
    for episode in filter(lambda episode: episode.success, run.judged("D")):
        log = read_log(run.log_file(episode)) or {}
        for number, step in enumerate(log.get("steps", []), start=1):
            fates = {bool(recall["dropped_by"]) for recall in step.get("recalls", [])}
            if fates == {True, False}:
                return f"#/episode/D/{quote(episode.task, safe='')}/{number}"
    raise RpmsError("no won episode of this run dropped one memory and kept another")


def take(page: Path, views: dict[str, str], browser: str, images: Path) -> list[Path]:
    """A picture of each address of the page, by the name of the view that it opens."""
    from playwright.sync_api import sync_playwright

    images.mkdir(parents=True, exist_ok=True)
    pictures = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        started = playwright.chromium.launch(executable_path=browser, args=arguments)
        for name, address in views.items():
            context = started.new_context(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light",
                reduced_motion="reduce",
            )  # fmt: skip
            opened = context.new_page()
            opened.goto(f"{page.as_uri()}{address}")
            opened.locator(f"#view-{name}").wait_for(state="visible", timeout=PATIENCE_MS)
            opened.wait_for_load_state("networkidle")
            # Playwright itself writes no WebP, which is a third of a PNG's size.
            shot = context.new_cdp_session(opened).send(
                "Page.captureScreenshot", {"format": "webp", "quality": QUALITY}
            )
            pictures.append(images / f"{name}.webp")
            pictures[-1].write_bytes(base64.b64decode(shot["data"]))
            context.close()
        started.close()
    return pictures


def main(argv: Sequence[str] | None = None) -> int:
    """Play, open the report, and write the pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of the README anew.")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder for them")
    images: Path = parser.parse_args(argv).out
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser found; looked for {', '.join(BROWSERS)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        report = play(Path(folder, "run"))
        page = write_report(report)[-1]
        views = {"results": "#/results", "episode": telling_step(report)}
        for file in take(page, views, browser, images):
            print(f"{file} ({file.stat().st_size // 1000} kB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
