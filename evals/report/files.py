"""The report as files beside the run it tells about."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rpms.evals.report import Report
from rpms.evals.report.page import render_page
from rpms.vocabulary.errors import RpmsError


def write_report(report: Report, html: Path | None = None) -> list[Path]:
    """Write report.md, report.json and the page; returns where."""
    folder = report.run.folder
    page = html or folder / "report.html"
    texts = {
        folder / "report.md": report.as_markdown(),
        folder / "report.json": json.dumps(report.as_json(), ensure_ascii=False, indent=2) + "\n",
        page: render_page(report),
    }
    for file, text in texts.items():
        _write(file, text)
    return list(texts)


def _write(file: Path, text: str) -> None:
    """Whole or not at all, so that an open page is never half a page."""
    work = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        work.write_text(text, encoding="utf-8")
        work.replace(file)
    except OSError as error:
        work.unlink(missing_ok=True)
        raise RpmsError(f"cannot write {file}: {error.strerror}") from error
