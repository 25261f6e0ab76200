from __future__ import annotations

from pathlib import Path

import pytest

from rpms.models.prices import NOTHING, Rates, rates_for
from rpms.vocabulary.errors import RpmsError

GPT_4O = Rates(input=2.5, cached=1.25, output=10)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RPMS_PRICES", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def test_cached_tokens_are_part_of_the_prompt() -> None:
    rates = Rates(input=2.0, cached=0.5, output=8.0)
    assert rates.cost(1_000_000, 1_000_000, 0) == 0.5
    assert rates.cost(1_000, 400, 100) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 8) / 1e6)


@pytest.mark.parametrize("model", ["sim", "random", "first", "local:smollm2", "local:/x/y.gguf"])
def test_models_of_this_process_cost_nothing(model: str) -> None:
    assert rates_for(model) == NOTHING


@pytest.mark.parametrize("model", ["openai:gpt-9", "gpt-4o", "anthropic:gpt-4o", "community:A:b"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert rates_for(model) is None


def test_listed_models_with_and_without_a_date() -> None:
    assert rates_for("openai:gpt-4o") == rates_for("openai:gpt-4o-2024-08-06") == GPT_4O
    claude = rates_for("anthropic:claude-sonnet-4-5-20250929")
    assert claude is not None and claude.input > claude.cached > 0


def test_the_address_decides_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rates_for("openai:gpt-4o", "http://127.0.0.1:8000/v1") is None
    assert rates_for("openai:gpt-4o", "https://api.openai.com/v1") == GPT_4O
    groq = rates_for("openai:llama-3.3-70b-versatile", "https://api.groq.com/openai/v1")
    assert groq is not None and groq.output > 0
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    assert rates_for("openai:gpt-4o") is None


def test_a_price_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
models:
  openai:gpt-4o: {input: 7, cached: 6, output: 5}
  openai:mine: {host: 127.0.0.1, input: 1, cached: 1, output: 1}
"""
    (tmp_path / "prices.yaml").write_text(text)
    monkeypatch.setenv("RPMS_PRICES", str(tmp_path / "prices.yaml"))
    assert rates_for("openai:gpt-4o") == Rates(input=7, cached=6, output=5)
    assert rates_for("openai:gpt-4o", "http://127.0.0.1:1/v1") is None
    mine = rates_for("openai:mine", "http://127.0.0.1:1/v1")
    assert mine == Rates(host="127.0.0.1", input=1, cached=1, output=1)
    assert rates_for("openai:gpt-4o-mini") not in (None, GPT_4O)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("models: {openai:a: {input: -1, cached: 0, output: 1}}", r"openai:a\.input"),
        ("models: {openai:a: {input: 1, cashed: 0, output: 1}}", "cached|cashed"),
        ("[", "not valid YAML"),
    ],
)
def test_a_damaged_price_file_is_an_error_of_one_line(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices.yaml").write_text(text)
    monkeypatch.setenv("RPMS_PRICES", str(tmp_path / "prices.yaml"))
    with pytest.raises(RpmsError, match=reason) as caught:
        rates_for("openai:a")
    assert "\n" not in str(caught.value) and "prices.yaml" in str(caught.value)
