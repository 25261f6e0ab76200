"""The terms of reports, pages and docs, each explained once in ``glossary.yaml``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("glossary.yaml")


@cache
def read_glossary() -> dict[str, dict[str, str]]:
    sections: dict[str, dict[str, str]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return sections


@cache
def explanations() -> dict[str, str]:
    """The explanation of every term, by the term in lower case."""
    return {
        term.lower(): text for terms in read_glossary().values() for term, text in terms.items()
    }
