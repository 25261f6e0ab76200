"""Reading an episode in a real browser: transcript, prompt, raw step, panels that stay open."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.evals.report.conftest import Open
from tests.evals.sample_runs import SYSTEM, task_id

pytestmark = pytest.mark.browser

TASK = quote(task_id(1), safe="")
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
NO_COPYING = NO_CLIPBOARD + "document.execCommand = () => false;"
FORBIDDEN = "navigator.clipboard.writeText = () => Promise.reject(new Error('no'));"


def open_panel(page: Page, name: str) -> None:
    page.locator(f"[data-panel={name}] > summary").click()


def test_panels_stay_open_from_step_to_step(prompts: Path, opened: Open) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/1")
    for name in ("prompt", "belief", "rules-universal", "raw"):
        open_panel(page, name)
    open_panel(page, "reply")
    page.keyboard.press("j")
    expect(page.locator("#where")).to_have_text("Step 2 of 6")
    for name in ("prompt", "belief", "rules-universal", "raw"):
        expect(page.locator(f"[data-panel={name}]")).to_have_attribute("open", "")
    expect(page.locator("[data-panel=reply]")).not_to_have_attribute("open", "")
    page.keyboard.press("n")
    expect(page.locator("#where")).to_have_text("Step 1 of 6")
    expect(page.locator("[data-panel=belief] td").first).to_be_visible()


def test_the_prompt_has_coloured_blocks_and_marks_what_is_new(prompts: Path, opened: Open) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/1")
    open_panel(page, "prompt")
    expect(page.get_by_text("The first prompt of the episode")).to_be_visible()
    expect(page.locator(".prompt-text ins")).to_have_count(0)
    kinds = {
        "rules": "Look first.", "goal": "a mug", "state": "shelf 1", "memory": "OK: look",
        "other": "Rain", "example": "An example ends.", "system": "You act in a home",
    }  # fmt: skip
    for kind, words in kinds.items():
        expect(page.locator(f".prompt-text .b-{kind}").first).to_contain_text(words)
    expect(page.locator(".prompt-text .b-task")).to_have_text("You are in a room.")
    colours = page.locator(".legend .block").evaluate_all(
        "all => all.map(e => getComputedStyle(e).borderLeftColor)"
    )
    assert len({*colours}) >= 6
    page.keyboard.press("j")
    fresh = page.locator(".prompt-text ins")
    expect(fresh.first).to_have_text("  You are at shelf 2.")
    assert fresh.all_text_contents()[1:] == ["Action: look 1", "Nothing new. 1"]
    open_panel(page, "gone")
    expect(page.locator(".gone")).to_have_text("  You are at shelf 1.\n")
    page.get_by_label("Only what is new").check()
    expect(page.locator(".prompt-text .b-rules")).to_be_hidden()
    expect(page.locator(".prompt-text .b-state")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("#where")).to_have_text("Step 3 of 6")
    expect(page.locator(".prompt-text .b-rules")).to_be_hidden()


def test_a_long_prompt_has_no_scroll_bar_of_its_own(prompts: Path, opened: Open) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/6")
    for name in ("prompt", "raw"):
        open_panel(page, name)
    expect(page.locator(".raw")).to_contain_text('"condition": "B"')
    inner = page.locator("#steps-of pre").evaluate_all(
        "all => all.filter(e => e.scrollHeight > e.clientHeight + 1"
        " || e.scrollWidth > e.clientWidth + 1).length"
    )
    assert page.locator("#steps-of pre").count() > 10 and inner == 0


@pytest.mark.parametrize("script", ["", NO_CLIPBOARD, FORBIDDEN])
def test_a_step_can_be_copied_with_or_without_a_clipboard(
    prompts: Path, opened: Open, script: str
) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/2", script=script)
    page.get_by_role("button", name="Copy step as JSON").click()
    expect(page.locator(".copy", has_text="Copy step").get_by_role("status")).to_have_text(
        " copied"
    )
    page.evaluate("document.body.append(document.createElement('textarea'))")
    page.locator("body > textarea").focus()
    page.keyboard.press("Control+V")
    step = json.loads(page.locator("body > textarea").input_value())
    assert (step["condition"], step["task"], step["step"]) == ("B", task_id(1), 2)
    assert step["prompt"][0] == {"role": "system", "content": SYSTEM}
    assert step["result"] == "Nothing happens."


def test_where_nothing_may_be_copied_the_step_is_selected(prompts: Path, opened: Open) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/2", script=NO_COPYING)
    page.get_by_role("button", name="Copy step as JSON").click()
    expect(page.get_by_text("selected: press Ctrl+C")).to_be_visible()
    expect(page.locator(".raw")).to_be_visible()
    assert json.loads(page.evaluate("getSelection().toString()"))["step"] == 2


def test_the_whole_episode_as_one_transcript(prompts: Path, opened: Open) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/1")
    page.get_by_role("link", name="Transcript").click()
    turns = page.locator(".turn")
    expect(turns).to_have_count(6)
    expect(turns.nth(1)).to_contain_text("Nothing happens.")
    expect(turns.nth(1).locator(".badge")).to_have_text("refused")
    expect(turns.nth(3)).to_contain_text("belief drifted: holding: the belief says mug 1")
    expect(turns.nth(5)).to_contain_text("</script><script>window.hacked")
    assert page.evaluate("window.hacked") is None
    for _ in range(2):
        page.keyboard.press("j")
    expect(page).to_have_url(re.compile(f"#/transcript/B/{TASK}/3$"))
    expect(turns.nth(2).locator("a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#where")).to_have_text("Step 3 of 6")
    page.keyboard.press("t")
    expect(turns.nth(2).locator("a")).to_be_focused()
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile(quote(task_id(2), safe="") + "/1$"))
    expect(turns).to_have_count(6)
    page.get_by_role("button", name="Copy transcript").click()
    expect(page.get_by_text("copied")).to_be_visible()
