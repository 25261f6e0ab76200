"""For everyone: an automatic accessibility check of every view, and a phone's width."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from rpms.evals.report import read_report
from rpms.evals.report.page import write_report
from tests.evals.report.conftest import Open
from tests.evals.sample_runs import task_id, write_run

pytestmark = pytest.mark.browser

TASK = quote(task_id(1), safe="")
VIEWS = {
    "results": ("#/results", "#table-main"),
    "episodes": ("#/episodes", "#list tbody tr"),
    "found": ("#/episodes?x=nothing+happens&g=refused", "#list a.hit"),
    "step": (f"#/episode/{quote('D scf=off')}/{TASK}/3", "#where"),
    "transcript": (f"#/transcript/B/{TASK}/2", ".turn"),
    "side by side": (f"#/compare/A/B/{TASK}/3", "#pair-3"),
}
PHONE = 390
SCREENS = [(1400, "light"), (1400, "dark"), (PHONE, "light")]
# Letters that stand together in the text but on two lines of the screen. A checksum is no word.
BROKEN_WORDS = """() => {
  const broken = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const parent = node.parentElement;
    if (!parent.checkVisibility() || parent.closest("svg, option, script")) continue;
    for (const word of node.data.matchAll(/\\b[A-Za-z]{2,30}\\b/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = [...range.getClientRects()].filter((r) => r.width > 1);
      if (new Set(lines.map((r) => Math.round(r.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""
# Everything that reaches beyond the screen, less the strip of steps, which is there to be pushed.
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility()
  && !e.closest(".strip, .skip, svg, .stacked thead")
  && e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => `${e.tagName}.${e.className}`)"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker itself; it is the test that brings it, the page holds nothing of it."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def open_everything(page: Page) -> None:
    """Closed panels hold nothing yet; what is opened fills itself in the next frame."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
@pytest.mark.parametrize("view", VIEWS)
def test_contrast_labels_and_structure(
    report: Path, opened: Open, axe: str, view: str, width: int, scheme: str
) -> None:
    address, landmark = VIEWS[view]
    page = opened(report, address, scheme=scheme, width=width)
    expect(page.locator(landmark).first).to_be_visible()
    open_everything(page)
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert found["passes"]
    assert [
        (problem["id"], node["target"], node["failureSummary"])
        for problem in found["violations"]
        for node in problem["nodes"]
    ] == []


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_coloured_and_marked_prompts(
    prompts: Path, opened: Open, axe: str, width: int, scheme: str
) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/2", scheme=scheme, width=width)
    expect(page.locator("#where")).to_be_visible()
    open_everything(page)
    expect(page.locator(".prompt-text ins").first).to_be_visible()
    open_everything(page)
    expect(page.locator(".gone del")).to_be_visible()
    page.evaluate(axe)
    assert page.evaluate("axe.run(document).then((found) => found.violations)") == []
    assert page.evaluate(TOO_WIDE) == []


def test_the_help_passes_the_same_check(report: Path, opened: Open, axe: str) -> None:
    page = opened(report, "#/episodes")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("list: next / previous row")
    page.evaluate(axe)
    assert page.evaluate("axe.run(document).then((found) => found.violations)") == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_overflows_or_breaks_on_a_phone(report: Path, opened: Open, view: str) -> None:
    address, landmark = VIEWS[view]
    page = opened(report, address, width=PHONE)
    expect(page.locator(landmark).first).to_be_visible()
    open_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(BROKEN_WORDS) == []


def test_long_names_fit_a_phone_too(tmp_path: Path, opened: Open) -> None:
    goal = "Your task is to determine the boiling point of an unknown substance. " * 8
    labels = {"D+offer": [True], "D under a name of many words": [False]}
    made = {name: {"rules": True, "memory": False} for name in labels}
    lines = {(name, 0): {"goal": goal, "failure_mode": "infrastructure_error"} for name in labels}
    folder = write_run(tmp_path, labels, conditions=made, lines=lines)
    file = write_report(read_report(folder))[-1]
    for address in ("#/results", "#/episodes", "#/compare"):
        page = opened(file, address, width=PHONE)
        expect(page.locator("main")).to_be_visible()
        assert page.evaluate(TOO_WIDE) == []


def test_the_focus_can_be_seen_on_every_control(report: Path, opened: Open) -> None:
    """Tab goes from control to control, and each shows that it has the focus."""
    page = opened(report, "#/episodes")
    seen = set()
    for _ in range(24):
        page.keyboard.press("Tab")
        name, style = page.evaluate(
            "(({tagName, name, id, textContent}) => [[tagName, name, id, textContent].join(),"
            " getComputedStyle(document.activeElement).outlineStyle])(document.activeElement)"
        )
        seen.add(name)
        assert style == "solid", name
    assert len(seen) > 18
