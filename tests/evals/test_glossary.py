"""Every term of the report is explained once, on the page and in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from rpms.evals.analysis.glossary import explanations, read_glossary
from rpms.evals.analysis.report import read_report
from rpms.vocabulary.context import CONDITIONS, condition_title
from rpms.vocabulary.recall import RECALL_OUTCOMES
from rpms.vocabulary.turn import ActionVerdict
from tools import glossary_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def test_the_page_is_made_from_the_file() -> None:
    assert PAGE.read_text(encoding="utf-8") == glossary_page.page(), "python -m tools.glossary_page"


def test_a_term_is_explained_once_in_a_sentence() -> None:
    terms = [term.lower() for section in read_glossary().values() for term in section]
    assert len(terms) == len(set(terms)) == len(explanations())
    assert not [text for text in explanations().values() if not text.endswith((".", ".'"))]


PLAIN = {"", "condition", "tasks", "first", "second", "rules", "memory"}


@pytest.mark.engine
def test_every_column_of_a_real_report_is_explained(real_run: Path) -> None:
    report = read_report(real_run)
    arms = {condition_title(name).lower() for name in report.run.conditions}
    # The table of types has a column for each type.
    tables = [table for table in report.tables if table.id != "types"]
    columns = {column.lower() for table in tables for column in table.columns}
    assert len(columns) > 30
    assert sorted(columns - arms - PLAIN - explanations().keys()) == []


def test_conditions_outcomes_and_verdicts_are_explained() -> None:
    terms = [
        *map(condition_title, CONDITIONS),
        *filter(None, RECALL_OUTCOMES),
        *get_args(ActionVerdict),
    ]
    assert not [term for term in terms if term.lower() not in explanations()]
