"""The report as files beside the run it tells about."""

from __future__ import annotations

import json
from pathlib import Path

from rpms.evals.report import Report
from rpms.evals.report.page import render_page
from rpms.vocabulary.files import refuse_special, write_whole


def write_report(report: Report, html: Path | None = None) -> list[Path]:
    """Write report.md, report.json and the page; returns where."""
    folder = report.run.folder
    page = html or folder / "report.html"
    refuse_special(page)
    texts = {
        folder / "report.md": report.as_markdown(),
        folder / "report.json": json.dumps(report.as_json(), ensure_ascii=False, indent=2) + "\n",
        page: render_page(report),
    }
    for file, text in texts.items():
        write_whole(file, text)  # an open page is never half a page
    return list(texts)
