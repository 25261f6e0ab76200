from __future__ import annotations

import pytest

from rpms.vocabulary.secrets import HIDDEN, redact, redact_known


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
