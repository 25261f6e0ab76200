"""The card of a model that we tuned: a Markdown page whose YAML front matter has its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

CARDS = Path(__file__).with_name("adapters")
"""The folder of the adapters; the card of the model ``local:NAME`` is called ``NAME.md``."""
FENCE = "---\n"

Share = Annotated[float, Field(ge=0, le=1)]


class CardResults(BaseModel):
    """The results on a model's card.

    Attributes:
        split: the split of the tasks.
        tasks: their number.
        tunings: the number of tunings that the shares are means of.
        won: the share of tasks won, by condition.
        setup: the conditions of the measurement, if they differ from those of a local model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    split: str
    tasks: int
    tunings: int = 1
    won: dict[str, Share]
    setup: str = ""


def results_of(model: str) -> CardResults | None:
    """Return the results on the card of a model; None without a card, or if it has none."""
    name = model.removeprefix("local:").partition("?")[0]
    file = CARDS / f"{name}.md"
    if not model.startswith("local:") or "/" in name or not file.is_file():
        return None
    _, _, rest = file.read_text(encoding="utf-8").partition(FENCE)
    front = yaml.safe_load(rest.partition(f"\n{FENCE}")[0]) or {}
    return CardResults.model_validate(front["results"]) if "results" in front else None
