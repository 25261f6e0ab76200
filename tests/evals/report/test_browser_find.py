"""Finding steps in a real browser: by text, rule, memory and action; and rows by keyboard."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from rpms.evals.report import read_report
from rpms.evals.report.page import write_report
from tests.evals.report.conftest import COUNT_UNPACKED, Open
from tests.evals.sample_runs import slug, task_id, write_run

pytestmark = pytest.mark.browser


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


def test_a_search_unpacks_lazily_and_a_newer_one_ends_it(tmp_path: Path, opened: Open) -> None:
    folder = write_run(tmp_path, {name: [False] * 150 for name in "AC"})
    file = write_report(read_report(folder))[-1]
    page = opened(file, "#/episodes", script=COUNT_UNPACKED)
    assert page.evaluate("window.unpacked") == 0
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
