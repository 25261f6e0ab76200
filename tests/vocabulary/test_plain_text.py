from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from rpms.vocabulary.safe_text import valid, visible

# Also halves of characters, which no text file can hold.
ANY = st.text(st.characters(codec=None, categories=None))


@given(ANY)
def test_every_text_can_be_written_afterwards(text: str) -> None:
    assert valid(text).encode().decode() == valid(text) == valid(valid(text))


@given(st.text())
def test_what_was_valid_stays(text: str) -> None:
    assert valid(text) == text


def test_two_halves_are_one_character() -> None:
    assert valid("\ud83d\udd25") == "🔥"
    assert valid("a\ud83d b\udd25") == "a\ufffd b\ufffd"


@given(ANY)
def test_nothing_reaches_a_terminal_that_it_would_obey(text: str) -> None:
    shown = visible(text)
    assert all(
        unicodedata.category(sign) not in ("Cc", "Cs") for sign in shown if sign not in "\n\t"
    )
    assert shown.encode().decode() == shown


@given(st.recursive(ANY, st.lists))
def test_json_stays_the_same_document(data: object) -> None:
    assert json.loads(visible(json.dumps(data, ensure_ascii=False))) == data


def test_ordinary_text_stays() -> None:
    text = "Thought: naïve café, 中文 🔥\n\tAction: look"
    assert visible(text) == text
    assert visible("\x1b]0;title\x07 \x9b2J \u202e") == "\\u001b]0;title\\u0007 \\u009b2J \\u202e"
