"""Look up the prices of a model's tokens in the package genai-prices, which contains a list.

A model that is not listed has the price None. Models that run in this process cost 0.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import expanded, read_yaml
from rpms.vocabulary.spelling import Strict

MILLION = 1_000_000
UNPAID = ("sim", "random", "first", "last", "local")
# The address of each provider, and the environment variables that replace it.
PROVIDERS = {
    "openai": ("https://api.openai.com", "OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"),
}


class Rates(Strict, BaseModel):
    """US dollars per million tokens at ``host``, by default the provider's own."""

    host: str = ""
    input: float = Field(ge=0, allow_inf_nan=False)
    cached: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)

    def cost(self, prompt: int, cached: int, output: int) -> float:
        """Return the dollars for calls; ``cached`` is the part of ``prompt`` that was reused."""
        fresh = max(prompt - cached, 0)
        return (fresh * self.input + cached * self.cached + output * self.output) / MILLION


NOTHING = Rates(input=0, cached=0, output=0)


class _PriceFile(Strict, BaseModel):
    date: str = ""
    models: dict[str, Rates]


def rates_for(model: str, base_url: str = "") -> Rates | None:
    """Return the prices of a model at its address, from ``RPMS_PRICES`` or from the list.

    None if neither has the model.
    """
    provider, _, name = model.partition(":")
    if provider in UNPAID:
        return NOTHING
    usual, *variables = PROVIDERS.get(provider, ("",))
    address = base_url or next(filter(None, map(os.environ.get, variables)), usual)
    if file := os.environ.get("RPMS_PRICES"):
        rates = read_prices(expanded(file, "RPMS_PRICES")).models.get(model)
        if rates and urlsplit(address).hostname == (rates.host or urlsplit(usual).hostname):
            return rates
    return listed_rates(name, address) if address else None


@lru_cache(maxsize=64)
def listed_rates(name: str, address: str) -> Rates | None:
    """Return the package's rates for a model at a provider's address.

    The rates are those of a single token. Some providers charge more for prompts above 200,000
    tokens; ours are shorter, but the tokens of many calls are priced together.
    """
    from genai_prices import Usage, calc_price  # importing its list takes a third of a second

    def rate(usage: Usage) -> float:
        return float(calc_price(usage, name, provider_api_url=address).total_price * MILLION)

    try:
        return Rates(
            input=rate(Usage(input_tokens=1)),
            cached=rate(Usage(input_tokens=1, cache_read_tokens=1)),
            output=rate(Usage(output_tokens=1)),
        )
    except LookupError:
        return None


@lru_cache(maxsize=8)
def read_prices(file: Path) -> _PriceFile:
    """Read and validate a user's price file, once."""
    try:
        return _PriceFile.model_validate(read_yaml(file)[1])
    except RpmsError as error:
        raise RpmsError(f"cannot use the price list: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise RpmsError(f"price list {file}: {where}: {first['msg']}") from error
