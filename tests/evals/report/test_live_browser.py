"""A run followed in a real browser, wide and narrow: it grows, and what is open stays open."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from rpms.commands.view_server import ViewServer
from rpms.evals.costs import Total
from rpms.evals.progress import FlightNotes
from rpms.evals.records import JobKey
from rpms.evals.report.live import Shelf
from tests.evals.report.conftest import PATIENCE_MS, Open
from tests.evals.report.test_live import add, growing
from tests.evals.sample_runs import task_id, write_run

pytestmark = pytest.mark.browser


WIDE, PHONE = 1400, 390
IN_FLIGHT = """() => {
  const real = window.fetch;
  window.fetch = async (what) => {
    const answer = await real(what);
    if (what !== "state") return answer;
    const flying = [5.4, 75, 7260].map((seconds) => ({ c: "A", task: "t", seconds }));
    return Response.json({ ...await answer.json(), flying });
  };
}"""
"""The state of the run as if episodes had been in flight for that long."""


@pytest.fixture
def followed(browser: Browser) -> Iterator[Open]:
    """Opens a page of these runs; nothing may leave the server or complain."""
    complaints: list[str] = []
    servers = []
    context = browser.new_context()

    def open_page(*folders: Path, address: str = "", width: int = WIDE) -> Page:
        server = ViewServer(Shelf(folders))
        servers.append(server)
        threading.Thread(target=server.serve_forever).start()
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda request: (
            None if request.url.startswith(f"http://127.0.0.1:{server.server_port}/")
            else complaints.append(f"request: {request.url}")))  # fmt: skip
        page.goto(server.address + address)
        return page

    yield open_page
    context.close()
    for server in servers:
        server.shutdown()
        server.server_close()
    assert complaints == []


def test_tables_and_the_list_follow_while_they_are_read(tmp_path: Path, followed: Open) -> None:
    page = followed(growing(tmp_path))
    main, rows = page.locator("#table-main tbody tr").first, page.locator("#list tbody tr")
    expect(main).to_contain_text("100.0%")
    expect(page.locator("#live")).to_contain_text("Stopped before its end")
    page.get_by_text("Protocol", exact=True).click()
    page.evaluate("window.row = document.querySelector('#table-main tbody tr')")
    FlightNotes(tmp_path).note([JobKey("A", "a <b>task</b> in flight")], Total(1234, 0.5))
    add(tmp_path, 1, False)
    expect(main).to_contain_text("50.0%")
    expect(page.locator("details.protocol").first).to_have_attribute("open", "")
    assert page.evaluate("window.row.isConnected"), "what is the same stays in its place"
    for words in ("Going on", "2 of 4 episodes", "1,234 tokens, $0.5000 so far"):
        expect(page.locator("#live")).to_contain_text(words)
    page.get_by_text("1 in flight").click()
    expect(page.locator("#live li")).to_contain_text("a <b>task</b> in flight")
    row = page.locator("#table-causes tbody tr").filter(has_text="belief_errors")
    row.get_by_role("link").click()
    expect(page.locator("#set")).to_contain_text("Where lost episodes went wrong: drift, A")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox", name="Task or error").fill("mug")
    page.locator("#list tbody a").first.focus()
    add(tmp_path, 2, False)
    expect(rows).to_have_count(2)
    expect(page.locator("#live details")).to_have_attribute("open", "")
    expect(page.locator("nav .count")).to_have_text("3")
    assert page.evaluate("document.activeElement.tagName") == "A"
    assert page.get_by_role("searchbox", name="Task or error").input_value() == "mug"
    page.locator("#list p.why a").first.click()
    expect(page.locator("#where")).to_have_text("Step 4 of 12")
    expect(page.locator("#view-episode p.why")).to_contain_text("the belief was wrong at step 4")
    page.go_back()
    page.locator("#unset").click()
    expect(rows).to_have_count(3)


def test_an_open_step_and_open_panels_stay(tmp_path: Path, followed: Open) -> None:
    address = f"#/episode/A/{quote(task_id(0), safe='')}/3"
    page = followed(growing(tmp_path), address=address, width=PHONE)
    expect(page.locator("#where")).to_have_text("Step 3 of 6")
    page.get_by_text(re.compile(r"^Prompt \(")).click()
    expect(page.locator("[data-panel=prompt]")).to_have_attribute("open", "")
    page.locator("#next").focus()
    add(tmp_path, 1, False)
    expect(page.locator("nav .count")).to_have_text("2")
    expect(page.locator("#where")).to_have_text("Step 3 of 6")
    expect(page.locator("[data-panel=prompt]")).to_have_attribute("open", "")
    assert page.evaluate("document.activeElement.id") == "next"
    page.keyboard.press("n")  # the next one of the list, which was not there at first
    expect(page.locator("#where")).to_have_text("Step 1 of 12")


def test_many_runs_are_listed_and_followed_and_trouble_is_said(
    tmp_path: Path, followed: Open
) -> None:
    growing(tmp_path / "one")
    write_run(tmp_path / "two", {"A": [True, False]})
    page = followed(tmp_path, width=PHONE)
    expect(page.locator("tbody tr")).to_have_count(2)
    add(tmp_path / "one", 1, False)
    expect(page.locator("tbody tr").first).to_contain_text("2 of 4")
    write_run(tmp_path / "three", {"A": [True]}, logs=False, created="2031-01-02T03:04:05")
    expect(page.locator("tbody tr").first).to_have_text(re.compile(r"three\s+2 Jan 2031"))
    expect(page.locator("tbody tr")).to_have_count(3)
    fits = "[document.documentElement, document.querySelector('.scroll')]"
    assert page.evaluate(f"{fits}.every((e) => e.scrollWidth <= e.clientWidth)"), "nothing is cut"
    for row in page.locator("tbody tr").all():
        assert (row.bounding_box() or {})["height"] < 50, "one line for each run"
    page.get_by_role("link", name="one").click()
    expect(page.locator("#live")).to_contain_text("2 of 4 episodes")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(IN_FLIGHT)
    times = [re.compile(f"for {words}$") for words in ("5 s", "1 min 15 s", "2 h 1 min")]
    expect(page.locator("#live li")).to_have_text(times)
    broken = "new Response('episodes.jsonl:1: torn', {status: 500})"
    page.evaluate(f"void (window.fetch = () => Promise.resolve({broken}))")
    expect(page.locator("#live")).to_contain_text("episodes.jsonl:1: torn")
    page.evaluate("void (window.fetch = () => Promise.reject(new TypeError()))")
    expect(page.locator("#live")).to_contain_text("'rpms view' does not answer")
    expect(page.locator("#table-main")).to_be_visible()
    page.get_by_role("link", name="All runs").click()
    expect(page.locator("h1")).to_have_text("Runs")
    page.evaluate("void (window.fetch = () => Promise.reject(new TypeError()))")
    expect(page.locator("#live")).to_contain_text("'rpms view' does not answer")
