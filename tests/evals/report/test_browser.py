"""The report page in a real browser: read, searched, by keyboard, for everyone."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from rpms.evals.report import read_report
from rpms.evals.report.page import write_report
from tests.evals.report.conftest import COUNT_UNPACKED, PLACE, Open
from tests.evals.sample_runs import SYSTEM, TYPES, slug, task_id, write_run

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
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
FORBIDDEN = "navigator.clipboard.writeText = () => Promise.reject(new Error('no'));"


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
    expect(page.locator("#where")).to_have_text("Step 1 of 6")

    def press(keys: str, step: int) -> None:
        for key in keys.split():
            page.keyboard.press(key)
        expect(page.locator("#where")).to_have_text(f"Step {step} of 6")

    press("j", 2)
    expect(page.get_by_text("Nothing happens.", exact=True)).to_be_visible()
    expect(page.locator(".badge", has_text="refused")).to_be_visible()
    press("ArrowRight ArrowRight", 4)
    expect(page.locator(".drift")).to_contain_text("the belief says mug 1")
    expect(page.locator("tr.differs")).to_contain_text("holding")
    press("k", 3)
    expect(page.locator(".drift")).to_have_count(0)
    press("End j", 6)
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


def test_help_and_theme(report: Path, opened: Open, axe: str) -> None:
    page = opened(report, scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch between light and dark").click()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next / previous step")
    expect(page.get_by_role("dialog")).to_contain_text("list: next / previous row")
    check(page, axe)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


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


def test_a_step_can_be_copied(prompts: Path, opened: Open) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/2")
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


@pytest.mark.parametrize("script", [NO_CLIPBOARD, FORBIDDEN])
def test_where_nothing_may_be_copied_the_step_is_selected(
    prompts: Path, opened: Open, script: str
) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/2", script=script)
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


def change_log(folder: Path, condition: str, number: int, change: Callable[[Any], None]) -> None:
    file = folder / "steps" / slug(condition) / f"{slug(task_id(number))}.json.gz"
    log = json.loads(gzip.decompress(file.read_bytes()))
    change(log)
    file.write_bytes(gzip.compress(json.dumps(log).encode()))


def vetoed(log: Any) -> None:
    """The third step was asked again and insisted, against two rules; the fifth was unreadable."""
    reasons = [("O-ACT-001", "asked_again"), ("U-FAIL-001", "insisted")]
    log["steps"][2]["decisions"] = [
        {"step": 3, "proposal": "go to the moon", "verdict": verdict, "rule": rule,
         "reason": "there is no air", "mend": "", "played": ""}
        for rule, verdict in reasons
    ]  # fmt: skip
    log["steps"][2]["judged"] = [["O-ACT-001", "broken"], ["U-DO-002", "kept"]]
    log["steps"][4].update(action="", reply="I would rather not say (a+b).")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conditions in an order of their own, and the log of one episode damaged."""
    folder = tmp_path_factory.mktemp("run")
    lines = {
        ("B", 1): {"proposals": 7},
        ("A", 2): {"failure_mode": "model_error", "error": "500: overheated"},
    }
    write_run(folder, {"D": [True] * 3, "B": [False] * 3, "A": [True, True, False]}, lines=lines)
    change_log(folder, "B", 1, vetoed)
    report = read_report(folder)
    file = report.run.log_file(next(e for e in report.run.episodes.values() if e.condition == "D"))
    file.write_bytes(file.read_bytes()[:60])
    return write_report(report)[-1]


def find(page: Page, words: str) -> None:
    page.get_by_role("searchbox", name="Find in steps").fill(words)


def hits(page: Page) -> list[str]:
    """Where each link of a found step leads, as condition, task and step."""
    links = page.locator("#list a.hit").all()
    return ["/".join((link.get_attribute("href") or "").split("/")[2:]) for link in links]


def at(condition: str, number: int, step: int) -> str:
    return f"{condition}/{quote(task_id(number), safe='')}/{step}"


def test_a_refusal_is_found_where_it_happened(page_file: Path, opened: Open) -> None:
    page = opened(page_file, "#/episodes")
    find(page, "nothing  HAPPENS")
    expect(page.locator("#found")).to_have_text(
        "8 steps in 8 of 9 episodes: 4 won, 3 lost, 1 error; 1 without a readable log"
    )
    # Task by task, conditions in the order of the run; each in its second step and no other.
    expected = [at(c, n, 2) for n in range(3) for c in "DBA"]
    assert hits(page) == expected[1:]
    expect(page.locator("#list mark").first).to_have_text("Nothing happens")
    page.locator("#list a.hit").nth(1).click()
    expect(page.locator("#where")).to_have_text("Step 2 of 6")
    marked = "[...CSS.highlights.get('found')].map(String)"
    assert page.evaluate(marked) == ["Nothing happens"]
    page.keyboard.press("t")
    expect(page.locator(".turn")).to_have_count(6)
    assert page.evaluate(marked) == ["Nothing happens"]


def test_errors_thoughts_actions_and_odd_signs_are_found(page_file: Path, opened: Open) -> None:
    page = opened(page_file, "#/episodes?x=overheated")
    expect(page.locator("#found")).to_contain_text("1 step in 1 of 9 episodes")
    expect(page.locator(".hits")).to_contain_text("error 500: overheated")
    for words, where in (("(a+b).", "reply"), ("shelf 3B", "action"), ("<img src=x", "thought")):
        find(page, words)
        expect(page.locator(".hits li").first).to_contain_text(where)
        expect(page.locator("#list mark").first).to_have_text(words)
    assert page.evaluate("window.hacked") is None
    find(page, "no such words anywhere")
    expect(page.locator("#found")).to_contain_text("0 steps in 0 of 9 episodes")


def test_steps_by_rule_veto_and_memory(page_file: Path, opened: Open) -> None:
    page = opened(page_file, "#/episodes?g=vetoed")
    expect(page.locator(".hits")).to_contain_text("veto go to the moon: there is no air")
    assert hits(page) == [at("B", 1, 3)]
    cases = {
        "g=insisted&r=u-fail": 1, "g=insisted&r=O-ACT-001": 0, "g=asked_again": 1, "g=broken": 1,
        "g=broken&r=U-DO": 0, "r=U-DO-002": 1, "g=unread": 1, "g=replaced": 0, "g=refused&c=A": 3,
        "r=S-002&c=B": 3 * 12, "m=scf": 2 * 6, "m=arbitration&r=D-HEAT-001": 2 * 6,
        "m=scf&r=D-HEAT-001": 0, "m=warned&r=E-ACT": 2 * 6, "m=budget": 0,
        "m=dropped&x=shelf 3D": 2,
    }  # fmt: skip
    for query, count in cases.items():
        page.goto(f"{page_file.as_uri()}#/episodes?{query}")
        told = re.compile(rf"^{count} steps? in (?!.*searching)")
        expect(page.locator("#found"), query).to_have_text(told)
    page.goto(f"{page_file.as_uri()}#/episodes?m=scf")
    expect(page.locator(".hits li").first).to_contain_text("memory dropped: scf the hand is full")


def test_rows_by_keyboard(page_file: Path, opened: Open) -> None:
    page = opened(page_file, "#/episodes")
    expect(page.locator(".hint")).to_contain_text("Enter opens")
    for key, row in (("j", 0), ("ArrowDown", 1), ("j", 2), ("k", 1), ("End", 8), ("Home", 0)):
        page.keyboard.press(key)
        expect(page.locator("#list a.row-link").nth(row)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#view-episode .about")).to_contain_text("B rules")
    page.keyboard.press("Escape")
    expect(page.locator("#list a.row-link").nth(1)).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Find in steps")).to_be_focused()
    page.keyboard.type("nothing happens")
    expect(page.locator("#list a.hit")).to_have_count(8)
    page.keyboard.press("Escape")
    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#where")).to_have_text("Step 2 of 12")
    page.keyboard.press("Escape")
    expect(page.locator("#list a.hit").first).to_be_focused()


def test_whoever_leaves_before_a_log_is_read_is_not_brought_back(
    page_file: Path, opened: Open
) -> None:
    page = opened(page_file, "#/episodes")
    page.evaluate("""() => {
      const read = Response.prototype.json;
      Response.prototype.json = async function () {
        const found = await read.call(this);
        await new Promise((free) => { window.free = free; });
        return found;
      };
    }""")
    page.locator("#list a.row-link").nth(1).click()
    expect(page.locator("#view-episode .about")).to_contain_text("B rules")
    # The log is there before the browser tells the page that the address has changed.
    page.evaluate("""async () => {
      while (!window.free) await new Promise((later) => setTimeout(later, 10));
      location.hash = "#/episodes";
      window.free();
    }""")
    expect(page.locator("#list a.row-link").nth(1)).to_be_focused()
    expect(page.locator("#view-episode")).to_be_hidden()
    assert page.url.endswith("#/episodes")


def test_conditions_keep_the_order_of_the_run(page_file: Path, opened: Open) -> None:
    page = opened(page_file, "#/episodes")
    wanted = ["D full", "B rules", "A baseline"]
    cells = page.locator("#list tbody td[data-label=Condition]")
    assert cells.all_text_contents() == wanted * 3
    page.locator("[data-sort=c]").click()
    expect(cells.nth(1)).to_have_text("D full")
    assert cells.all_text_contents() == [name for name in wanted for _ in range(3)]
    options = page.get_by_role("combobox", name="Condition", exact=True).locator("option")
    assert options.all_text_contents() == ["all", *wanted]
    page.goto(f"{page_file.as_uri()}#/episode/B/{quote(task_id(1), safe='')}/1")
    expect(page.locator(".crumbs")).to_contain_text("Side by side with D full, A baseline")


def test_logs_are_unpacked_when_asked_for_and_a_newer_search_ends_one(
    tmp_path: Path, opened: Open
) -> None:
    folder = write_run(tmp_path, {name: [False] * 150 for name in "AC"})
    file = write_report(read_report(folder))[-1]
    page = opened(file, "#/episodes", script=COUNT_UNPACKED)
    # A screenful of rows at a time, and no log before its episode is opened.
    expect(page.locator("#list tbody tr")).to_have_count(200)
    assert page.evaluate("window.unpacked") == 0
    page.locator("#list tbody a").first.click()
    expect(page.locator("#where")).to_have_text("Step 1 of 12")
    assert page.evaluate("window.unpacked") == 1
    page.goto(f"{file.as_uri()}?anew#/episodes")
    find(page, "nothing happens")
    expect(page.locator("#found")).to_have_text(re.compile("^300 steps in 300 of 300 .* lost$"))
    expect(page.locator("#list a.hit")).to_have_count(200)
    assert page.evaluate("window.unpacked") == 300
    find(page, "shelf 9A")
    expect(page.locator("#found")).to_have_text(re.compile("^150 steps in 150 of 300 .* lost$"))
    assert page.evaluate("window.unpacked") == 300
    page.evaluate(
        "location.hash = '#/episodes?x=you+arrive'; location.hash = '#/episodes?x=shelf+8C'"
    )
    expect(page.locator("#found")).to_have_text(re.compile("^150 steps in 150 of 300 .* lost$"))
    assert {*page.locator("#list mark").all_text_contents()} == {"shelf 8C"}
    # Of condition A no episode recalled anything, so its logs need not be looked at.
    page.goto(f"{file.as_uri()}?again#/episodes?m=scf")
    expect(page.locator("#found")).to_have_text(re.compile(r"^1800 steps in 150 of 300 .* lost$"))
    assert page.evaluate("window.unpacked") == 150


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker itself; it is the test that brings it, the page holds nothing of it."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def open_everything(page: Page) -> None:
    """Closed panels hold nothing yet; what is opened fills itself in the next frame."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


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


def check_screens(page: Page, axe: str) -> None:
    """Wide and narrow, light and dark, of which the latter changes nothing but colours."""
    check(page, axe)
    page.emulate_media(color_scheme="dark")
    check(page, axe, runOnly=["color-contrast"])
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": PHONE, "height": 900})
    check(page, axe)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    assert page.evaluate(TOO_WIDE) == []


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_for_everyone_and_fits_a_phone(
    report: Path, opened: Open, axe: str, view: str
) -> None:
    address, landmark = VIEWS[view]
    page = opened(report, address, width=1400)
    expect(page.locator(landmark).first).to_be_visible()
    open_everything(page)
    check_screens(page, axe)
    assert page.evaluate(BROKEN_WORDS) == []


def test_coloured_and_marked_prompts_are_for_everyone(
    prompts: Path, opened: Open, axe: str
) -> None:
    page = opened(prompts, f"#/episode/B/{TASK}/2", width=1400)
    expect(page.locator("#where")).to_be_visible()
    open_everything(page)
    expect(page.locator(".prompt-text ins").first).to_be_visible()
    open_everything(page)
    expect(page.locator(".gone del")).to_be_visible()
    check_screens(page, axe)


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
