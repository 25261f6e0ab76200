"""docs/api.md names everything that ``import rpms`` offers; outputs are told by their docstring."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import rpms
from rpms import EpisodeOutput
from rpms.graph.run import Options
from tools import settings_table

REFERENCE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """A table of the document by its first column."""
    table = REFERENCE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {first.strip("`"): rest for first, *rest in cells}


def test_every_public_name_is_there() -> None:
    code = " ".join(re.findall(r"`([^`\n]+)`", REFERENCE))
    assert not [name for name in rpms.__all__ if not re.search(rf"\b{name}\b", code)]


def test_every_option_setting_and_output_is_there() -> None:
    assert list(rows("option")) == list(Options.__annotations__)
    # Python 3.13 keeps docstrings without their indentation, earlier ones with it.
    outputs = re.findall(r"^    (\w+): ", str(inspect.getdoc(EpisodeOutput)), re.M)
    assert outputs == list(EpisodeOutput.__annotations__)
    assert settings_table.with_table(REFERENCE) == REFERENCE, "python -m tools.settings_table"


def test_every_public_name_has_a_docstring() -> None:
    objects = {name: getattr(rpms, name) for name in rpms.__all__}
    members = {
        f"{name}.{part}": value
        for name, thing in objects.items()
        if inspect.isclass(thing) and thing.__module__.startswith("rpms.")
        for part, value in vars(thing).items()
        if inspect.isfunction(value) and not part.startswith("_")
    }
    undocumented = [
        name
        for name, value in {**objects, **members}.items()
        if callable(value) and not inspect.getdoc(value)
    ]
    assert undocumented == []
