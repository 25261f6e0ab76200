"""Replies and errors that try to steer the terminal."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest
from rich.table import Table

from rpms.vocabulary.output import open_console, print_wrapped, quantity, with_article
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


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three four five six", ["one two three four", "five six"]),
        ("  - a point that is longer\n  1  and a step of it",
         ["  - a point that is", "    longer", "  1  and a step of", "     it"]),
        ("    deep and far too long a line", ["    deep and far too", "    long a line"]),
        ("look at /a/very/long/path/of/a/file/somewhere",
         ["look at", "/a/very/long/path/of/a/file/somewhere"]),
        ("[not] markup\n\n  end ", ["[not] markup", "", "  end"]),
        ("\u6f22\u5b57\u6f22\u5b57 \u6f22\u5b57\u6f22\u5b57 \u6f22\u5b57 x",
         ["\u6f22\u5b57\u6f22\u5b57 \u6f22\u5b57\u6f22\u5b57", "\u6f22\u5b57 x"]),
    ],
)  # fmt: skip
def test_wrapped_lines_keep_their_indent_and_no_word_is_broken(
    text: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal; what goes elsewhere is not wrapped at all."""
    monkeypatch.setenv("COLUMNS", "20")
    terminal, pipe = Terminal(), io.StringIO()
    print_wrapped(text, terminal)
    print_wrapped(text, pipe)
    plain = "".join(re.split(r"\x1b\[[0-9;]*m", terminal.getvalue()))
    assert plain == "\n".join([*lines, ""]) and pipe.getvalue() == f"{text}\n"


def test_colours_outlive_a_wrapped_line() -> None:
    out = io.StringIO()
    open_console(file=out, force_terminal=True, color_system="standard", width=9).print(
        "  [red]some words[/]"
    )
    assert out.getvalue() == "  \x1b[31msome\x1b[0m\n  \x1b[31mwords\x1b[0m\n"


def test_one_is_not_many() -> None:
    assert [quantity(n, "memory") for n in (0, 1, 2)] == ["0 memories", "1 memory", "2 memories"]
    assert quantity(1234, "damaged line") == "1,234 damaged lines"
    assert with_article("infrastructure error") == "an infrastructure error"
    assert with_article("model error") == "a model error"
