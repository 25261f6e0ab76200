"""Kinds that are alike, as an environment lists them: a mug is one of the dishes.

They are data of the environment, not rules: retrieval compares goals by them (d_gamma) under every
condition, and rules may be about them.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, read_yaml

CATEGORIES = "categories.yaml"
"""The file beside an environment's module; it need not exist."""
Categories = dict[str, list[str]]


def read_categories(folder: Path) -> Categories:
    """The kinds of each category of an environment, by the folder of its files."""
    file = folder / CATEGORIES
    if not is_file(file):
        return {}
    try:
        return TypeAdapter(Categories).validate_python(read_yaml(file)[1] or {})
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise RpmsError(f"{file}: {where}: a category is a list of kinds") from None
