"""Generate docs/glossary.md: ``python -m tools.glossary_page``."""

from __future__ import annotations

from pathlib import Path

from rpms.evals.analysis.glossary import read_glossary

PAGE = Path(__file__).resolve().parents[1] / "docs" / "glossary.md"
HEAD = """# Glossary

The terms of reports, pages and these docs. On the report page the same sentence appears when the
pointer rests on a term. This page is made from `rpms/evals/analysis/glossary.yaml`.
"""


def page() -> str:
    parts = [HEAD]
    for section, terms in read_glossary().items():
        rows = "".join(f"| {term} | {text} |\n" for term, text in terms.items())
        parts.append(f"## {section}\n\n| term | meaning |\n|---|---|\n{rows}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
