"""The report page in a real browser: what a reader does, and that nothing leaves the page."""

from __future__ import annotations

import random
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from rpms.evals.report import read_report
from rpms.evals.report.page import write_report
from tests.evals.report.conftest import COUNT_UNPACKED, PLACE, Open
from tests.evals.sample_runs import TYPES, task_id, write_log, write_run
from tests.evals.sample_runs import episode as episode_line

pytestmark = pytest.mark.browser

TASK = quote(task_id(1), safe="")


def rows(page: Page) -> int:
    return page.locator("#list tbody tr").count()


def choice(page: Page, name: str) -> Locator:
    return page.get_by_role("combobox", name=name, exact=True)


def test_the_page_opens_with_tables_and_plots(report: Path, opened: Open) -> None:
    page = opened(report)
    expect(page).to_have_title(re.compile("alfworld generated_unseen.*not a language model"))
    expect(page.locator("#view-results")).to_be_visible()
    expect(page.locator("#table-main .source")).to_contain_text("commit abc1234")
    row = page.locator("#table-main tbody tr").filter(has_text="B rules")
    expect(row).to_contain_text("50.0% [25.4, 74.6]")
    assert page.locator("svg[role=img]").count() >= 3
    assert page.locator("#view-episodes").is_hidden()


def test_contents_lead_to_tables(report: Path, opened: Open) -> None:
    page = opened(report)
    page.get_by_role("navigation", name="Tables").get_by_text("Failure modes").click()
    expect(page).to_have_url(re.compile("#/results/failures$"))
    expect(page.locator("#table-failures h2")).to_be_in_viewport()


def test_episodes_are_filtered_searched_and_sorted(report: Path, opened: Open) -> None:
    page = opened(report, "#/episodes")
    assert rows(page) == 36
    choice(page, "Condition").select_option("A")
    assert rows(page) == 12
    choice(page, "Outcome").select_option("lost")
    assert rows(page) == 7
    expect(page.locator("#found")).to_have_text("7 of 36 episodes: 0 won, 7 lost")
    choice(page, "Type").select_option(TYPES[2])
    assert rows(page) == 1
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#list tbody tr")).to_have_count(36)
    page.get_by_role("searchbox", name="Task or error").fill("401 KEY")
    assert rows(page) == 1
    expect(page.locator("#list tbody .badge")).to_have_text("model error")
    page.get_by_role("searchbox", name="Task or error").fill("")
    page.locator("[data-sort=steps]").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Steps")
    assert page.locator("#list tbody tr").first.locator("td").nth(5).text_content() == "3"
    page.locator("[data-sort=steps]").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Steps")
    assert page.locator("#list tbody tr").first.locator("td").nth(5).text_content() == "12"


def test_filters_live_in_the_address(report: Path, opened: Open) -> None:
    page = opened(report, "#/episodes")
    choice(page, "Condition").select_option("D scf=off")
    page.get_by_role("searchbox", name="Task or error").fill("shelf 1")
    count = rows(page)
    assert 0 < count < 12
    page.reload()
    assert rows(page) == count
    assert choice(page, "Condition").input_value() == "D scf=off"
    assert page.get_by_role("searchbox", name="Task or error").input_value() == "shelf 1"


def test_stepping_through_an_episode_with_the_keyboard(report: Path, opened: Open) -> None:
    page = opened(report, "#/episodes?c=B")
    page.locator("#list tbody tr").nth(1).get_by_role("link").click()
    where = page.locator("#where")
    expect(where).to_have_text("Step 1 of 6")
    page.keyboard.press("j")
    expect(where).to_have_text("Step 2 of 6")
    expect(page.get_by_text("Nothing happens.", exact=True)).to_be_visible()
    expect(page.locator(".badge", has_text="refused")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(where).to_have_text("Step 4 of 6")
    expect(page.locator(".drift")).to_contain_text("the belief says mug 1")
    expect(page.locator("tr.differs")).to_contain_text("holding")
    page.keyboard.press("k")
    expect(where).to_have_text("Step 3 of 6")
    expect(page.locator(".drift")).to_have_count(0)
    page.keyboard.press("End")
    page.keyboard.press("j")
    expect(where).to_have_text("Step 6 of 6")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"#/episodes\?c=B$"))
    assert rows(page) == 12


def test_a_step_shows_everything_that_led_to_it(report: Path, opened: Open) -> None:
    address = f"#/episode/{quote('D scf=off')}/{TASK}/3"
    page = opened(report, address)
    view = page.locator("#view-episode")
    expect(view).to_contain_text("You arrive at shelf 3.")
    expect(view.locator(".action")).to_have_text("go to shelf 3D")
    expect(view).to_contain_text("Your hands are empty at shelf 3.")
    memories = view.locator("section", has_text="Memories (3 recalled, 2 dropped)")
    for words in ("it may be closed", "the hand is full", "forbidden by the manual", "D-HEAT-001"):
        expect(memories).to_contain_text(words)
    view.get_by_text("Universal (1)").click()
    expect(view.locator("li", has_text="U-STATE-003")).to_contain_text("When holding an object")
    view.get_by_text("Prompt (2 messages)").click()
    expect(view.locator(".message pre").nth(1)).to_contain_text("Step 3. You arrive at shelf 3.")
    expect(view.locator("pre.reply")).to_have_text("Thought: look on.\nAction: go to shelf 3D")


def test_a_permalink_opens_the_same_step(report: Path, opened: Open) -> None:
    page = opened(report, f"#/episode/B/{TASK}/2")
    expect(page.locator("#where")).to_have_text("Step 2 of 6")
    page.locator(".strip button").nth(4).click()
    expect(page).to_have_url(re.compile("/5$"))
    page.reload()
    expect(page.locator("#where")).to_have_text("Step 5 of 6")
    expect(page.locator("[aria-current=step]")).to_have_text("5")


def test_foreign_text_stays_text(report: Path, opened: Open) -> None:
    """The last step's observation tries to run a script; so does an error message."""
    page = opened(report, f"#/episode/B/{TASK}/6")
    expect(page.locator("#view-episode")).to_contain_text("</script><script>window.hacked")
    page.goto(f"{report.as_uri()}#/episode/A/{quote(task_id(0), safe='')}/1")
    expect(page.locator(".notice", has_text="401")).to_contain_text("</td><b>you</b>")
    raised = page.locator(".panel", has_text="Where it was raised")
    expect(raised).to_contain_text("stage llm_call, /home/me/mine.py:7")
    expect(raised.locator("pre")).to_have_text(PLACE["traceback"])
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main b").count() == 0


def test_two_conditions_side_by_side(report: Path, opened: Open) -> None:
    page = opened(report, f"#/episode/A/{TASK}/1")
    page.get_by_role("link", name="B rules").click()
    expect(page.locator("#parting")).to_contain_text("They part at step 3.")
    parted = page.locator("tr.parted")
    expect(parted).to_have_count(1)
    expect(parted).to_contain_text("go to shelf 3A")
    expect(parted).to_contain_text("go to shelf 3B")
    expect(page.locator("#pair-9")).to_contain_text("(ended)")
    page.keyboard.press("k")
    expect(page.locator("#pair-2")).to_have_attribute("aria-current", "step")
    page.keyboard.press("d")
    expect(parted).to_have_attribute("aria-current", "step")
    page.reload()
    expect(parted).to_have_attribute("aria-current", "step")
    choice(page, "Second").select_option("D scf=off")
    expect(page.locator("#pairing")).to_contain_text("go to shelf 3D")
    page.keyboard.press("Tab")
    page.locator("h1:visible").click()
    page.keyboard.press("Escape")
    expect(page.locator("#view-episodes")).to_be_visible()


def test_help_and_theme(report: Path, opened: Open) -> None:
    page = opened(report, scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch between light and dark").click()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next / previous step")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_every_control_has_a_name_and_shows_focus(report: Path, opened: Open) -> None:
    page = opened(report, f"#/episode/B/{TASK}/1")
    page.locator("#where").wait_for()
    for role in ("button", "link", "combobox", "textbox", "searchbox"):
        for control in page.get_by_role(role).all():  # type: ignore[arg-type]
            name = control.evaluate(
                "e => (e.ariaLabel || e.labels?.[0]?.textContent || e.textContent || '').trim()"
            )
            assert name, control.evaluate("e => e.outerHTML")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_goal_of_a_paragraph_does_not_crowd_the_list(tmp_path: Path, opened: Open) -> None:
    goal = "Your task is to boil lead. " * 20
    folder = write_run(tmp_path, {"A": [True], "B": [True]}, lines={("A", 0): {"goal": goal}})
    page = opened(write_report(read_report(folder))[-1], "#/episodes?c=A")
    row = page.locator("#list tbody tr")
    expect(row).to_contain_text("Your task is to boil lead.")
    assert row.bounding_box()["height"] < 90  # type: ignore[index]
    row.get_by_role("link", name=task_id(0)).click()
    expect(page.locator("#view-episode h1")).to_have_text(task_id(0))
    expect(page.locator("#view-episode .goal")).to_have_text(goal.strip())


def test_a_missing_log_is_said(tmp_path: Path, opened: Open) -> None:
    folder = write_run(tmp_path, {"A": [True, False]}, logs=False)
    page = opened(write_report(read_report(folder))[-1], f"#/episode/A/{TASK}/1")
    expect(page.locator("#steps-of")).to_contain_text("no step log of this episode")
    page.goto(f"{page.url.split('#')[0]}#/episode/A/nowhere/1")
    expect(page.locator("#view-episode")).to_contain_text("no such episode")


def test_of_five_hundred_episodes_only_the_one_looked_at_is_unpacked(
    tmp_path: Path, opened: Open
) -> None:
    """With logs of 15 kB and more; episodes of `sim` leave 5 kB, 13 at most."""
    noise = random.Random(7)
    wins = {name: [noise.random() < 0.5 for _ in range(125)] for name in "ABCD"}
    folder = write_run(tmp_path, wins, logs=False)
    line = episode_line("A", 0, False)
    line["goal"] = "".join(noise.choices("abcdefghijklmnop", k=31_000))
    write_log(folder, line)
    log = next(folder.glob("steps/*/*.gz")).read_bytes()
    assert 15_000 < len(log) < 40_000
    report = read_report(folder)
    for episode in report.run.episodes.values():
        file = report.run.log_file(episode)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(log)
    file = write_report(report)[-1]
    assert file.stat().st_size > 500 * 20_000
    page = opened(file, "#/results/failures")
    page.add_init_script(COUNT_UNPACKED)
    page.goto(f"{file.as_uri()}?again#/episodes")
    # A screenful of rows at a time, and no log before its episode is opened.
    expect(page.locator("#list tbody tr")).to_have_count(200)
    assert page.evaluate("window.unpacked") == 0
    page.locator("#list tbody a").first.click()
    expect(page.locator("#where")).to_have_text("Step 1 of 12")
    assert page.evaluate("window.unpacked") == 1
