from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rpms.memory_store import parse_entry


def test_the_papers_entries_are_valid_and_survive_a_round_trip(
    paper_entries: list[dict[str, Any]],
) -> None:
    for data in paper_entries:
        entry = parse_entry(data)
        again = entry.model_dump(mode="json")
        assert {key: again[key] for key in data} == data
        assert parse_entry(again) == entry


def test_a_critical_failure_weighs_double(paper_entries: list[dict[str, Any]]) -> None:
    del paper_entries[3]["retrieval_weight"]
    assert parse_entry(paper_entries[3]).retrieval_weight == 2.0
    assert parse_entry(paper_entries[1]).retrieval_weight == 1.0


@pytest.mark.parametrize(
    ("field", "value"),
    [("actions", []), ("success_count", 0), ("type", "sucess"), ("unknown", 1), ("id", "")],
)
def test_wrong_fields_are_refused(
    paper_entries: list[dict[str, Any]], field: str, value: object
) -> None:
    with pytest.raises(ValidationError):
        parse_entry({**paper_entries[0], field: value})
