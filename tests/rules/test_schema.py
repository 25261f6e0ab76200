"""The JSON Schema of rule files takes what we load, and refuses what we refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rpms.rules.schema import TIERS, json_schema

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file
    for folder in ("rpms", "tests", "docs")
    for tier in TIERS
    for file in (ROOT / folder).rglob(f"{tier}.yaml")
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_rule_file_of_ours_fits(file: Path) -> None:
    jsonschema.validate(yaml.safe_load(file.read_text(encoding="utf-8")), json_schema(file.stem))


@pytest.mark.parametrize(
    "wrong",
    [
        {"polcy": []},
        {"policy": [{"id": "P-X", "action": "refund", "neds": ["given(x)"]}]},
        {"actions": [{"id": "T-X", "name": "x", "arguments": 5}]},
        {"actions": [{"id": "T-X", "name": "x", "answers": "inside"}]},
    ],
)
def test_a_mistake_is_found(wrong: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, json_schema("environment"))
