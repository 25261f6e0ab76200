"""Replies and errors that try to steer the terminal."""

from __future__ import annotations

import io
import unicodedata

import pytest
from rich.table import Table

from rpms.vocabulary.output import open_console
from tests.command_line import Rpms
from tests.openai_server import Answer, OpenAIServer

# The window's title, the clipboard, a cleared screen, a link, the cursor one up, C1 and bidi.
HOSTILE = "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x1b]8;;http://x\x1b\\here\x1b[1A\x9b2J\u202eabc\r"


def obeyed(text: str) -> set[str]:
    """What of a text a terminal would not just show."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs") or c == "\u202e"} - {"\n"}


@pytest.mark.engine
def test_replies_and_errors_are_shown_and_not_obeyed(
    rpms: Rpms, openai_server: OpenAIServer
) -> None:
    words = ("run", "--model", "openai:m", "--base-url", openai_server.url, "--max-steps", "3")
    for more in (("--prompts", "--memories"), ("--json",)):
        openai_server.plays(f"Thought: {HOSTILE}\nAction: look {HOSTILE}", HOSTILE, "Action: look")
        done = rpms(*words, *more)
        assert done.code == 0 and "owned" in done.out and "\\u001b]0;" in done.out
        assert not obeyed(done.out + done.err)
    openai_server.plays(Answer(status=400, error=f"no: {HOSTILE} \ud83d"))
    done = rpms(*words)
    assert done.code == 2 and "no: " in done.err
    assert not obeyed(done.out + done.err)


def test_what_was_typed_is_repeated_as_text(rpms: Rpms) -> None:
    for words in ("run --task", "run --model", "report", "tasks --split", "run --condition", ""):
        done = rpms(*words.split(), HOSTILE)
        assert done.code == 2 and done.err.startswith("rpms: ")
        assert not obeyed(done.out + done.err)


def test_colours_are_ours_alone() -> None:
    """In a terminal too, in tables and titles as in lines."""
    out = io.StringIO()
    console = open_console(file=out, force_terminal=True, color_system="standard", width=200)
    table = Table(f"head {HOSTILE}", title=f"title {HOSTILE}")
    table.add_row(f"[bold]cell[/] {HOSTILE}")
    console.print(table, f"[red]line[/] {HOSTILE}")
    text = out.getvalue()
    assert "\x1b[31mline" in text and text.count("owned") == 4
    for sequence in ("\x1b]", "\x1b[2J", "\x1b[1A", "\x9b", "\x07", "\u202e", "\r"):
        assert sequence not in text
