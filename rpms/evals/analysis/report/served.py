"""Pages of run folders for ``rpms view``; a page is rendered again when its run has grown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from rpms.evals.analysis.report import build_report
from rpms.evals.analysis.report.page import render_index, render_page
from rpms.evals.records.run_folder import EPISODES, MANIFEST, Run, read_run, slug
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, is_folder, stamp_of


class ServedRun:
    """One run folder; its run and its page are cached until the files change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._cached_run: tuple[object, Run] | None = None
        self._cached_page: tuple[Run, str] | None = None

    def run(self) -> Run:
        stamp = [stamp_of(self.folder / name) for name in (MANIFEST, EPISODES)]
        if self._cached_run is None or self._cached_run[0] != stamp:
            self._cached_run = stamp, read_run(self.folder)
        return self._cached_run[1]

    def page(self) -> str:
        """The report page; concurrent requests render it once."""
        with self._lock:
            run = self.run()
            if self._cached_page is None or self._cached_page[0] is not run:
                self._cached_page = run, render_page(build_report(run), served=True)
            return self._cached_page[1]


class ServedRuns:
    """All runs in some folders, including those that start later."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._runs: dict[str, ServedRun] = {}
        for folder in folders:
            if not _runs_in(folder):
                raise RpmsError(
                    f"no {MANIFEST} in {folder} or below it; give a folder that 'rpms eval' wrote"
                )

    def runs(self) -> dict[str, ServedRun]:
        """The runs by their name in the URL, in the order of the folders."""
        folders = dict.fromkeys(run for folder in self._folders for run in _runs_in(folder))
        self._runs = {
            name: self._runs.get(name) or ServedRun(run)
            for name, run in ((slug(str(run)), run) for run in folders)
        }
        return self._runs

    def index(self) -> str:
        """The page that lists the runs, the newest first."""
        rows: list[dict[str, Any]] = []
        for name, served in self.runs().items():
            row: dict[str, Any] = {"name": name, "folder": served.folder, "error": "",
                                   "created": "", "short": self._short(served.folder)}  # fmt: skip
            try:
                run = served.run()
                row |= {"run": run, "created": run.manifest.created}
            except (RpmsError, OSError) as error:
                row["error"] = str(error)
            rows.append(row)
        return render_index(sorted(rows, key=itemgetter("created"), reverse=True))

    def _short(self, folder: Path) -> str:
        """The path below the served folder; with several served folders, the full path."""
        if len(self._folders) > 1:
            return str(folder)
        below = folder.relative_to(self._folders[0])
        return str(below) if below.parts else folder.resolve().name


def _runs_in(folder: Path) -> list[Path]:
    if is_file(folder / MANIFEST):
        return [folder]
    if not is_folder(folder):
        return []
    return sorted(file.parent for file in folder.rglob(MANIFEST) if is_file(file))
