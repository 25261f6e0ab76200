"""What a model's tokens cost, from a list that a person keeps.

A model that is not on the list has no price: None, which is not the same as nothing. Nothing is
what models cost that run in this process.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import expanded, read_yaml
from rpms.vocabulary.spelling import Strict

SHIPPED = Path(__file__).with_name("prices.yaml")
MILLION = 1_000_000
UNPAID = ("sim", "random", "first", "last", "local")
OWN_HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
_ADDRESSES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"),
}
_DATED = re.compile(r"-(20\d\d-?\d\d-?\d\d|latest)$")


class Rates(Strict, BaseModel):
    """US dollars per million tokens; ``host`` is where they hold, else the provider's own."""

    host: str = ""
    input: float = Field(ge=0, allow_inf_nan=False)
    cached: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)

    def cost(self, prompt: int, cached: int, output: int) -> float:
        """Dollars for one or many calls; ``cached`` is the part of ``prompt`` that was reused."""
        fresh = max(prompt - cached, 0)
        return (fresh * self.input + cached * self.cached + output * self.output) / MILLION


NOTHING = Rates(input=0, cached=0, output=0)


class _PriceList(Strict, BaseModel):
    date: str
    models: dict[str, Rates]


def rates_for(model: str, base_url: str = "") -> Rates | None:
    """The prices of a model as it is reached; None when no list has them."""
    provider, _, _ = model.partition(":")
    if provider in UNPAID:
        return NOTHING
    host = _host(provider, base_url)
    for prices in _lists():
        for name in (model, _DATED.sub("", model)):
            rates = prices.models.get(name)
            if rates and host == (rates.host or OWN_HOSTS.get(provider, "")):
                return rates
    return None


def _host(provider: str, base_url: str) -> str:
    """Where the calls go: as asked for, as the client's own variables say, or to the provider."""
    variables = (os.environ.get(name, "") for name in _ADDRESSES.get(provider, ()))
    address = base_url or next(filter(None, variables), "")
    return urlsplit(address).hostname or "" if address else OWN_HOSTS.get(provider, "")


def _lists() -> list[_PriceList]:
    own = os.environ.get("RPMS_PRICES")
    return [*([read_prices(expanded(own, "RPMS_PRICES"))] if own else []), read_prices(SHIPPED)]


@lru_cache(maxsize=8)
def read_prices(file: Path) -> _PriceList:
    """A price list, checked; read once."""
    try:
        return _PriceList.model_validate(read_yaml(file)[1])
    except RpmsError as error:
        raise RpmsError(f"cannot use the price list: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise RpmsError(f"price list {file}: {where}: {first['msg']}") from error
