from __future__ import annotations

from pathlib import Path

import pytest

from rpms.models.prices import NOTHING, SHIPPED, Rates, rates_for, read_prices
from rpms.vocabulary.errors import RpmsError

DEEPINFRA = "https://api.deepinfra.com/v1/openai"
LLAMA = "openai:meta-llama/Meta-Llama-3.1-8B-Instruct"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RPMS_PRICES", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def own_list(file: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(text)
    monkeypatch.setenv("RPMS_PRICES", str(file))


def test_cached_tokens_are_part_of_the_prompt() -> None:
    rates = Rates(input=2.0, cached=0.5, output=8.0)
    assert rates.cost(1_000_000, 0, 0) == 2.0
    assert rates.cost(1_000_000, 1_000_000, 0) == 0.5
    assert rates.cost(1_000, 400, 100) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 8) / 1e6)


@pytest.mark.parametrize("model", ["sim", "random", "first", "local:smollm2", "local:/x/y.gguf"])
def test_what_runs_here_costs_nothing(model: str) -> None:
    assert rates_for(model) == NOTHING


@pytest.mark.parametrize("model", ["openai:gpt-9", "openai:m", "gpt-4o", "anthropic:gpt-4o", LLAMA])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert rates_for(model) is None


def test_known_models_with_and_without_a_date() -> None:
    plain = rates_for("openai:gpt-4o")
    assert plain is not None and plain.input > plain.cached > 0
    assert rates_for("openai:gpt-4o-2024-08-06") == plain
    assert rates_for("anthropic:claude-sonnet-4-5-20250929") == rates_for(
        "anthropic:claude-sonnet-4-5"
    )
    assert rates_for("openai:gpt-4o-mini") not in (None, plain)
    assert rates_for("openai:gpt-4o-audio-preview") is None


def test_the_address_decides_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rates_for(LLAMA, DEEPINFRA) is not None
    assert rates_for("openai:gpt-4o", "http://127.0.0.1:8000/v1") is None
    assert rates_for("openai:gpt-4o", "https://api.openai.com/v1") == rates_for("openai:gpt-4o")
    monkeypatch.setenv("OPENAI_BASE_URL", DEEPINFRA)
    assert rates_for("openai:gpt-4o") is None
    assert rates_for(LLAMA) is not None


def test_a_list_of_ones_own_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
date: "2026-01"
models:
  openai:gpt-4o: {input: 7, cached: 6, output: 5}
  openai:mine: {host: 127.0.0.1, input: 1, cached: 1, output: 1}
"""
    mini = rates_for("openai:gpt-4o-mini")
    own_list(tmp_path / "prices.yaml", text, monkeypatch)
    assert rates_for("openai:gpt-4o") == Rates(input=7, cached=6, output=5)
    assert rates_for("openai:mine", "http://127.0.0.1:1/v1") == Rates(
        host="127.0.0.1", input=1, cached=1, output=1
    )
    assert rates_for("openai:gpt-4o-mini") == mini is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {}", "date"),
        ("date: x\nmodels: {openai:a: {input: 1, output: 1}}", r"openai:a\.cached"),
        ("date: x\nmodels: {openai:a: {input: -1, cached: 0, output: 1}}", r"openai:a\.input"),
        ("date: x\nmodels: {openai:a: {input: 1, cashed: 0, output: 1}}", "cached|cashed"),
        ("[", "not valid YAML"),
        ("", "the file"),
        (None, "price list: cannot read"),
    ],
)
def test_a_damaged_list_is_one_line(
    text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_list(tmp_path / "prices.yaml", text or "", monkeypatch)
    if text is None:
        (tmp_path / "prices.yaml").unlink()
    with pytest.raises(RpmsError, match=said) as caught:
        rates_for("openai:a")
    assert "\n" not in str(caught.value) and "prices.yaml" in str(caught.value)


def test_the_shipped_list_says_how_far_to_trust_it() -> None:
    assert read_prices(SHIPPED).date
    assert "not checked" in " ".join(SHIPPED.read_text().replace("#", "").split())
    for name, entry in read_prices(SHIPPED).models.items():
        assert name.count(":") == 1 and 0 < entry.cached <= entry.input <= entry.output, name
