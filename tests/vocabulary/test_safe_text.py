from __future__ import annotations

import json
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.vocabulary import safe_text
from rpms.vocabulary.safe_text import (
    HIDDEN,
    hide_secrets_of,
    known_secrets,
    redact,
    redact_known,
    valid,
    visible,
)  # fmt: skip

# Also halves of characters, which no text file can hold.
ANY = st.text(st.characters(codec=None, categories=None))


@given(ANY)
def test_every_text_can_be_written_and_shown_afterwards(text: str) -> None:
    for whole in (valid(text), redact(text), visible(text)):
        assert whole.encode().decode() == whole
    assert valid(text) == valid(valid(text))
    assert all(
        unicodedata.category(sign) not in ("Cc", "Cs")
        for sign in visible(text)
        if sign not in "\n\t"
    )


@given(st.text())
def test_other_text_stays(text: str) -> None:
    assert valid(text) == text
    assert redact_known(text) == text or any(value in text for value in known_secrets())


def test_two_halves_are_one_character() -> None:
    assert valid("\ud83d\udd25") == "🔥"
    assert valid("a\ud83d b\udd25") == "a\ufffd b\ufffd"


@given(st.lists(ANY, max_size=5))
def test_json_stays_the_same_document(data: list[str]) -> None:
    assert json.loads(visible(json.dumps([data], ensure_ascii=False))) == [data]


def test_control_characters_are_written_out() -> None:
    text = "Thought: naïve café, 中文 🔥\n\tAction: look"
    assert visible(text) == text
    assert visible("\x1b]0;title\x07 \x9b2J \u202e") == "\\u001b]0;title\\u0007 \\u009b2J \\u202e"


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "DEEPINFRA_TOKEN", "MY_SECRET", "PROXY_PASSWORD", "AWS_ACCESS_KEY"]
)
def test_keys_of_the_environment_are_replaced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "plainly-nothing-special")
    monkeypatch.setenv("ANOTHER_API_KEY", "plainly-nothing")  # the other begins like it
    monkeypatch.setenv("SHORT_API_KEY", "none")  # too short to be a key
    text = "401: none, key plainly-nothing-special, I repeat plainly-nothing-special, is wrong"
    assert redact(text) == f"401: none, key {HIDDEN}, I repeat {HIDDEN}, is wrong"
    assert redact_known(text) == redact(text)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-Ab12Cd34Ef56", "sk-planted-0123456789", "sk-ab12****************wxyz",
        "gsk_0123456789abcdef", "hf_0123456789abcdef", "AIzaSyA0123456789abcdef",
    ],
)  # fmt: skip
def test_what_looks_like_a_key_is_replaced(secret: str) -> None:
    assert redact(f"Incorrect API key provided: {secret}. See ...").count(secret) == 0
    assert HIDDEN in redact(f"'{secret}'")
    assert redact_known(f"'{secret}'") == f"'{secret}'"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abcdef0123456789", f"Authorization: Bearer {HIDDEN}"),
        ("authorization: basic dXNlcjpwYXNz", f"authorization: basic {HIDDEN}"),
        ("no route to http://me:pass@host:8000/v1.", f"no route to http://{HIDDEN}@host:8000/v1."),
        *((text, text) for text in (
            "http://me:pass word@h/v1", "https://host/v1", "Action: go to desk-lamp 1",
            "the desk-something-long", "a risk-averse-agent", "key-value",
            "Error code: 401 - {'error': {'message': 'not for you', 'type': 'scripted'}}",
        )),
    ],
)  # fmt: skip
def test_headers_addresses_and_ordinary_words(text: str, redacted: str) -> None:
    assert redact(text) == redacted


SECRET = st.text(string.ascii_letters + string.digits + "!$*+,-._~:@%", min_size=8, max_size=40)
PARAMETER = st.sampled_from(["api-key", "api_key", "key", "token", "access_token", "sig", "secret"])


@given(secret=SECRET, name=PARAMETER, around=st.text())
def test_no_address_gives_its_secrets_away(secret: str, name: str, around: str) -> None:
    secret = f"planted{secret}"  # no part of any other text by chance
    for address in (
        f"https://me:{secret}@host:8000/v1",
        f"https://{secret}@host/v1",
        f"https://host/v1?{name}={secret}",
        f"https://host/v1?version=1&{name.upper()}={secret}&more=2",
    ):
        assert secret not in redact(f"{around} {address} {around}")
        assert "host" in redact(address)
        assert redact(redact(address)) == redact(address)
    hide_secrets_of(f"http://me:{secret}@host/v1")
    hide_secrets_of(f"http://host/v1?api-key={secret}2")
    try:  # known from then on, wherever they turn up
        assert secret not in redact_known(f"{around} {secret} {around} {secret}2")
    finally:
        safe_text._of_addresses.clear()
