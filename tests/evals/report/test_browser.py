"""The report page in a real browser: read, searched, by keyboard, for everyone.

One window is opened, and every test loads the page into it anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.page import write_page
from rpms.vocabulary.safe_text import slug
from tests.evals.report.conftest import PARAGRAPH, PATIENCE_MS, PLACE, Open
from tests.evals.sample_runs import SYSTEM, TYPES, task_id, write_run

pytestmark = pytest.mark.browser

TASK = quote(task_id(1), safe="")
D = quote("D scf=off")
VIEWS = {
    "results": ("#/results", "#table-main"),
    "episodes": ("#/episodes?c=B", "#list a.row-link"),
    "step": (f"#/episode/B/{TASK}/3", "#where"),
    "transcript": (f"#/transcript/B/{TASK}/2", ".turn"),
    "side by side": (f"#/compare/A/B/{TASK}/3", "#pair-3"),
}


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page, and whatever it complains about or asks for besides itself."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, complaints = context.new_page(), list[str]()
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: complaints.append(request.url))
    yield page, complaints
    context.close()


@pytest.fixture
def opened(window: tuple[Page, list[str]], report: Path) -> Iterator[Open]:
    """Loads a page at an address, the steps of a task from the page of that task.

    At the end, asks that the pages were silent and fetched nothing.
    """
    page, complaints = window
    complaints.clear()
    loaded: set[str] = set()

    def load(address: str = "", file: Path = report) -> Page:
        page.goto("about:blank")
        steps = file.with_name("report-steps")
        loaded.update(each.as_uri() for each in (file, *steps.iterdir()))
        if of_task := re.match(
            r"#/(?:episode/[^/]+|transcript/[^/]+|compare/[^/]+/[^/]+)/([^/]+)", address
        ):
            file = steps / f"{slug(unquote(of_task[1]))}.html"
        page.goto(f"{file.as_uri()}{address}")
        # Chromium drops keys that come before a page was painted.
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        return page

    yield load
    assert [text for text in complaints if re.split(r"[?#]", text)[0] not in loaded] == []


def rows(page: Page) -> int:
    return page.locator("#list tbody tr").count()


def choice(page: Page, name: str) -> Locator:
    return page.get_by_role("combobox", name=name, exact=True)


def field(page: Page, name: str) -> Locator:
    return page.get_by_role("searchbox", name=name)


def press(page: Page, keys: str) -> None:
    for key in keys.split():
        page.keyboard.press(key)


def at(condition: str, number: int, step: int) -> str:
    return f"{quote(condition)}/{quote(task_id(number), safe='')}/{step}"


def test_the_page_opens_with_tables_and_a_plot(opened: Open) -> None:
    page = opened()
    expect(page).to_have_title(re.compile("alfworld generated_unseen.*not a language model"))
    expect(page.locator(".foot")).to_contain_text("commit abc1234")
    row = page.locator("#table-main tbody tr").filter(has_text="B rules")
    expect(row).to_contain_text("25.0% [4.6, 69.9]")
    expect(page.locator("#table-main img")).to_be_visible()
    expect(page.locator("#view-episodes")).to_be_hidden()
    page.get_by_role("navigation", name="Tables").get_by_text("Failure modes").click()
    expect(page).to_have_url(re.compile("#/results/failures$"))
    expect(page.locator("#table-failures h2")).to_be_in_viewport()
    press(page, "?")
    expect(page.get_by_role("dialog")).to_contain_text("list: next / previous row")
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.locator("#table-failures tbody tr").filter(has_text="timeout").locator("a").last.click()
    expect(page.locator("#set")).to_contain_text("Episodes of one figure: failure mode timeout")
    expect(page.locator("#list tbody tr")).to_have_count(1)


def test_the_plots_are_behind_a_fold(opened: Open) -> None:
    page = opened()
    pictures = page.locator("#plots img")
    expect(pictures.first).to_be_hidden()
    page.locator("#plots summary").click()
    expect(pictures.first).to_be_visible()
    assert pictures.count() == page.locator("#plots figcaption").count() >= 5
    widths = pictures.evaluate_all("all => all.map((image) => image.naturalWidth)")
    assert all(width > 200 for width in widths), "every image was read"


def test_broken_rules_are_counted_listed_and_told_at_their_step(opened: Open) -> None:
    page = opened("#/results/rules")
    row = page.locator("#table-rules tbody tr").filter(has_text="O-ACT-001")
    row.get_by_role("link").last.click()
    expect(page.locator("#set")).to_contain_text("broken O-ACT-001")
    expect(page.locator("#summary")).to_contain_text("1 of 12 episodes")
    page = opened(f"#/episode/{at('B', 1, 3)}")
    broken = page.locator(".panel .broken")
    expect(broken).to_have_count(1)
    expect(broken).to_contain_text("go to <place>")


def test_episodes_are_filtered_searched_and_sorted(opened: Open) -> None:
    page = opened("#/episodes")
    conditions = ["D scf=off", "B rules", "A baseline"]
    cells = page.locator("#list tbody td:nth-child(3)")
    assert cells.all_text_contents() == conditions * 4, "in the order of the run"
    assert choice(page, "Condition").locator("option").all_text_contents() == ["all", *conditions]
    page.locator("[data-sort=c]").click()
    expect(cells.nth(1)).to_have_text("D scf=off")
    assert cells.all_text_contents() == [name for name in conditions for _ in range(4)]
    page.locator("[data-sort=steps]").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Steps")
    steps = page.locator("#list tbody td:nth-child(6)").first
    expect(steps).to_have_text("3")
    page.locator("[data-sort=steps]").click()
    expect(steps).to_have_text("12")
    choice(page, "Condition").select_option("A")
    assert rows(page) == 4
    choice(page, "Outcome").select_option("lost")
    expect(page.locator("#summary")).to_have_text("2 of 12 episodes: 0 won, 2 lost")
    choice(page, "Type").select_option(TYPES[2])
    field(page, "Task or error").fill("shelf 2")
    assert rows(page) == 1
    page.reload()
    assert rows(page) == 1 and choice(page, "Condition").input_value() == "A"
    assert field(page, "Task or error").input_value() == "shelf 2"
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#list tbody tr")).to_have_count(12)
    field(page, "Task or error").fill("401 KEY")
    assert rows(page) == 1
    expect(page.locator("#list tbody .badge")).to_have_text("model error")
    # A task whose goal is a paragraph is listed by its name.
    field(page, "Task or error").fill("boiling")
    page.locator("#list tbody tr").get_by_role("link", name=task_id(3)).click()
    expect(page.locator("#view-episode h1")).to_have_text(task_id(3))
    expect(page.locator("#view-episode .goal")).to_have_text(PARAGRAPH.strip())


def test_stepping_through_an_episode_with_the_keyboard(opened: Open) -> None:
    page = opened("#/episodes?c=B")
    page.locator("#list tbody tr").nth(1).get_by_role("link").first.click()
    where = page.locator("#where")
    expect(where).to_have_text("Step 1 of 6")
    press(page, "j")
    expect(where).to_have_text("Step 2 of 6")
    expect(page.get_by_text("Nothing happens.", exact=True)).to_be_visible()
    expect(page.locator(".badge", has_text="rejected")).to_be_visible()
    press(page, "ArrowRight ArrowRight")
    expect(where).to_have_text("Step 4 of 6")
    expect(page.locator(".belief-error")).to_contain_text("the belief says mug 1")
    press(page, "k")
    expect(page.locator(".belief-error")).to_have_count(0)
    expect(page.locator(".panel", has_text="Decision")).to_contain_text("there is no air")
    press(page, "End j")
    expect(where).to_have_text("Step 6 of 6")
    press(page, "Escape")
    expect(page).to_have_url(re.compile(r"report.html#/episodes$"))
    page = opened(f"#/episode/B/{TASK}/2")
    expect(where).to_have_text("Step 2 of 6")
    page.locator(".strip button").nth(4).click()
    expect(page).to_have_url(re.compile("/5$"))
    page.reload()
    expect(page.locator("[aria-current=step]")).to_have_text("5")


def test_a_step_shows_everything_that_led_to_it(opened: Open) -> None:
    page = opened(f"#/episode/{D}/{TASK}/3")
    view = page.locator("#view-episode")
    expect(view).to_contain_text("You arrive at shelf 3.")
    expect(view.locator(".action")).to_have_text("go to shelf 3D")
    expect(view).to_contain_text("Your hands are empty at shelf 3.")
    expect(view.locator("section", has_text="True state")).to_contain_text("microwave 1")
    expect(view.locator(".crumbs")).to_contain_text("Side by side with B rules, A baseline")
    memories = view.locator("section", has_text="Memories (3 candidates, 1 shown)")
    for words in ("it may be closed", "the hand is full", "forbidden by the manual", "D-HEAT-001"):
        expect(memories).to_contain_text(words)
    view.get_by_text("Universal (1)").click()
    expect(view.locator("li", has_text="U-STATE-003")).to_contain_text("When holding an object")
    view.get_by_text("Prompt (2 messages)").click()
    expect(view.locator(".message pre").nth(1)).to_contain_text("Step 3. You arrive at shelf 3.")
    expect(view.locator("pre.reply")).to_have_text("Thought: look on.\nAction: go to shelf 3D")
    view.get_by_text("Raw JSON").click()
    # What was opened stays open from step to step, what was closed stays closed.
    page.locator("[data-panel=reply] > summary").click()
    press(page, "j")
    expect(page.locator("#where")).to_have_text("Step 4 of 6")
    for name in ("prompt", "rules-universal", "raw"):
        expect(page.locator(f"[data-panel={name}]")).to_have_attribute("open", "")
    expect(page.locator("[data-panel=reply]")).not_to_have_attribute("open", "")


def test_foreign_text_stays_text_and_trouble_is_said(opened: Open) -> None:
    """The last step's observation tries to run a script; so does an error message."""
    page = opened(f"#/episode/B/{TASK}/6")
    expect(page.locator("#view-episode")).to_contain_text("</script><script>window.hacked")
    page = opened(f"#/episode/A/{quote(task_id(0), safe='')}/1")
    expect(page.locator(".notice", has_text="401")).to_contain_text("</td><b>you</b>")
    raised = page.locator(".panel", has_text="Traceback")
    expect(raised).to_contain_text("stage llm_call, /home/me/mine.py:7")
    expect(raised.locator("pre")).to_have_text(PLACE["traceback"])
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img:not(.plots img), main b").count() == 0
    page = opened(f"#/episode/{D}/{quote(task_id(0), safe='')}/1")
    expect(page.locator("#steps-of")).to_contain_text("is missing or damaged.")
    page.evaluate("location.hash = '#/episode/A/nowhere/1'")
    expect(page.locator("#view-episode")).to_contain_text("no such episode")


def test_two_conditions_side_by_side(opened: Open) -> None:
    page = opened(f"#/episode/A/{TASK}/1")
    page.get_by_role("link", name="B rules").click()
    expect(page.locator("#divergence")).to_contain_text("diverge at step 3.")
    diverged = page.locator("tr.diverged")
    expect(diverged).to_have_count(1)
    expect(diverged).to_contain_text("go to shelf 3A")
    expect(diverged).to_contain_text("go to shelf 3B")
    expect(page.locator("#pair-9")).to_contain_text("(ended)")
    press(page, "k")
    expect(page.locator("#pair-2")).to_have_attribute("aria-current", "step")
    press(page, "d")
    expect(diverged).to_have_attribute("aria-current", "step")
    page.reload()
    expect(diverged).to_have_attribute("aria-current", "step")
    choice(page, "Second").select_option("D scf=off")
    expect(page.locator("#pairing")).to_contain_text("go to shelf 3D")
    page.locator("h1:visible").click()
    press(page, "Escape")
    expect(page).to_have_url(re.compile(r"report.html#/episodes$"))


def test_the_prompt_has_coloured_blocks_marks_what_is_new_and_can_be_copied(opened: Open) -> None:
    page = opened(f"#/episode/B/{TASK}/1")
    page.locator("[data-panel=prompt] > summary").click()
    expect(page.get_by_text("This is the first prompt")).to_be_visible()
    expect(page.locator(".prompt-text ins")).to_have_count(0)
    kinds = {
        "rules": "Look first.", "goal": "a mug", "state": "shelf 1", "memory": "OK: look",
        "other": "Rain", "example": "An example ends.", "system": "You act in a home",
        "task": "You are in a room.",
    }  # fmt: skip
    for kind, words in kinds.items():
        expect(page.locator(f".prompt-text .b-{kind}").first).to_contain_text(words)
    press(page, "j")
    fresh = page.locator(".prompt-text ins")
    expect(fresh.first).to_have_text("  You are at shelf 2.")
    assert fresh.all_text_contents()[1:] == ["Action: look 1", "Nothing new. 1"]
    page.evaluate("document.body.append(document.createElement('textarea'))")
    field = page.locator("body > textarea")

    def copied(title: str) -> str:
        button = page.locator(f"button:text-is('{title}')")
        button.click()
        expect(button.locator("+ [role=status]")).to_have_text(" copied")
        field.fill("")
        press(page, "Control+V")
        return field.input_value()

    prompt = copied("Copy prompt")
    assert prompt.startswith(f"system:\n{SYSTEM}") and "\n\nuser:\n" in prompt
    press(page, "Escape")
    step = json.loads(copied("Copy step as JSON"))
    assert (step["condition"], step["task"], step["step"]) == ("B", task_id(1), 2)
    assert step["prompt"][0] == {"role": "system", "content": SYSTEM}
    page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error()))")
    page.get_by_role("button", name="Copy step as JSON").click()
    expect(page.get_by_text("does not allow copying")).to_be_visible()


def test_the_whole_episode_as_one_transcript(opened: Open) -> None:
    page = opened(f"#/episode/B/{TASK}/1")
    page.get_by_role("link", name="Transcript").click()
    turns = page.locator(".turn")
    expect(turns).to_have_count(6)
    expect(turns.nth(1)).to_contain_text("Nothing happens.")
    expect(turns.nth(1).locator(".badge")).to_have_text("rejected")
    expect(turns.nth(2)).to_contain_text("overridden: go to the moon [U-FAIL-001] there is no air")
    expect(turns.nth(3)).to_contain_text("belief error: holding: the belief says mug 1")
    expect(turns.nth(5)).to_contain_text("</script><script>window.hacked")
    press(page, "j j")
    expect(page).to_have_url(re.compile(f"#/transcript/B/{TASK}/3$"))
    expect(turns.nth(2).locator("a")).to_be_focused()
    press(page, "Enter")
    expect(page.locator("#where")).to_have_text("Step 3 of 6")
    press(page, "t")
    expect(turns.nth(2).locator("a")).to_be_focused()
    press(page, "n")
    expect(page).to_have_url(re.compile(f"#/transcript/A/{TASK}/1$"))
    expect(turns).to_have_count(12)


def test_rows_by_keyboard(opened: Open) -> None:
    page = opened("#/episodes")
    expect(page.locator(".hint")).to_contain_text("Enter opens it")
    links = page.locator("#list a.row-link")
    for key, row in (("j", 0), ("ArrowDown", 1), ("j", 2), ("k", 1), ("End", 11), ("Home", 0)):
        press(page, key)
        expect(links.nth(row)).to_be_focused()
    press(page, "ArrowDown Enter")
    expect(page.locator("#view-episode .about")).to_contain_text("B rules")
    page = opened("#/episodes")
    press(page, "/")
    expect(field(page, "Task or error")).to_be_focused()


def test_a_long_list_comes_in_parts(opened: Open, tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [False] * 201}, logs=False)
    page = opened("#/episodes", file=write_page(read_report(folder)))
    expect(page.locator("#list tbody tr")).to_have_count(200)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("#list tbody tr")).to_have_count(201)


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker itself; it is the test that brings it, the page holds nothing of it."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def check(page: Page, axe: str, **options: Any) -> None:
    """The checker finds nothing wrong; of what is right it need not name every place."""
    page.evaluate(axe)
    checked = page.evaluate(
        "options => axe.run(document, options)", {"resultTypes": ["violations"], **options}
    )
    assert checked["passes"]
    assert [
        (problem["id"], node["target"], node["failureSummary"])
        for problem in checked["violations"]
        for node in problem["nodes"]
    ] == []


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible(opened: Open, axe: str, view: str) -> None:
    """In the light theme, and in the dark one, which changes colours only."""
    address, landmark = VIEWS[view]
    page = opened(address)
    expect(page.locator(landmark).first).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    check(page, axe)
    page.emulate_media(color_scheme="dark")
    check(page, axe, runOnly=["color-contrast"])
    page.emulate_media(color_scheme="light")


def test_the_focus_can_be_seen_on_every_control(opened: Open) -> None:
    """Tab goes from control to control, and each shows that it has the focus."""
    page = opened("#/episodes")
    controls = set()
    for _ in range(16):
        press(page, "Tab")
        name, style = page.evaluate(
            "(({tagName, name, id, textContent}) => [[tagName, name, id, textContent].join(),"
            " getComputedStyle(document.activeElement).outlineStyle])(document.activeElement)"
        )
        controls.add(name)
        assert style == "solid", name
    assert len(controls) > 12
