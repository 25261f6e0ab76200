from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.vocabulary import secrets
from rpms.vocabulary.safe_text import HIDDEN, hide_secrets_of, redact, redact_known


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "DEEPINFRA_TOKEN", "MY_SECRET", "PROXY_PASSWORD", "AWS_ACCESS_KEY"]
)
def test_keys_of_the_environment_are_replaced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "plainly-nothing-special")
    text = "401: the key plainly-nothing-special, I repeat plainly-nothing-special, is wrong"
    assert redact(text) == f"401: the key {HIDDEN}, I repeat {HIDDEN}, is wrong"
    assert redact_known(text) == redact(text)


def test_a_key_that_begins_like_another_leaves_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_API_KEY", "abcdefgh")
    monkeypatch.setenv("B_API_KEY", "abcdefgh-and-more")
    assert redact_known("x abcdefgh-and-more y") == f"x {HIDDEN} y"


def test_short_values_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert redact("none of these") == "none of these"


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


def test_headers_and_addresses() -> None:
    assert redact("Authorization: Bearer abcdef0123456789") == f"Authorization: Bearer {HIDDEN}"
    assert redact("authorization: basic dXNlcjpwYXNz") == f"authorization: basic {HIDDEN}"
    assert redact("http://me:pass word@h/v1") == "http://me:pass word@h/v1"  # no address
    assert redact("no route to http://me:pass@host:8000/v1.") == (
        f"no route to http://{HIDDEN}@host:8000/v1."
    )
    assert redact("https://host/v1") == "https://host/v1"


@pytest.mark.parametrize(
    "text",
    ["Action: go to desk-lamp 1", "the desk-something-long", "a risk-averse-agent", "key-value",
     "Error code: 401 - {'error': {'message': 'not for you', 'type': 'scripted'}}"],
)  # fmt: skip
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


SECRET = st.text(string.ascii_letters + string.digits + "!$*+,-._~:@%", min_size=8, max_size=40)
PARAMETER = st.sampled_from(["api-key", "api_key", "key", "token", "access_token", "sig", "secret"])


@given(secret=SECRET, name=PARAMETER, before=st.text(), after=st.text())
def test_no_address_gives_its_secrets_away(secret: str, name: str, before: str, after: str) -> None:
    secret = f"planted{secret}"  # no part of any other text by chance
    for address in (
        f"https://me:{secret}@host:8000/v1",
        f"https://{secret}@host/v1",
        f"https://host/v1?{name}={secret}",
        f"https://host/v1?version=1&{name.upper()}={secret}&more=2",
    ):
        assert secret not in redact(f"{before} {address} {after}")
        assert "host" in redact(address)
        assert redact(redact(address)) == redact(address)


@given(secret=SECRET, around=st.text())
def test_what_an_address_carried_is_known_from_then_on(secret: str, around: str) -> None:
    secret = f"planted{secret}"
    hide_secrets_of(f"http://me:{secret}@host/v1")
    hide_secrets_of(f"http://host/v1?api-key={secret}2")
    try:
        assert secret not in redact_known(f"{around} {secret} {around} {secret}2")
    finally:
        secrets._of_addresses.clear()


@given(text=st.text())
def test_other_text_stays(text: str) -> None:
    assert redact_known(text) == text or any(value in text for value in secrets._values())


@given(text=st.text(st.characters(codec=None, categories=None)))
def test_what_is_left_can_be_written_to_a_file(text: str) -> None:
    assert redact(text).encode().decode() == redact(text)
