"""Run folders as they grow: what a page that follows them is given.

Files are read again when they have changed, but no more often than pays: the tables of a large
run take longer than an episode does, and whoever reads them needs no new ones every second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from rpms.evals.progress import read_in_flight
from rpms.evals.report import build_report
from rpms.evals.report.page import log_name, render_index, render_page
from rpms.evals.run_folder import EPISODES, MANIFEST, Run, read_run, slug
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_file, is_folder, stamp_of

PATIENCE = 4.0
"""Nothing is made anew before so many times as long as making it took the last time."""


Content = TypeVar("Content")


class Aging(Generic[Content]):
    """Something made from files: made again after they changed, but not at once."""

    def __init__(self, make: Callable[[], Content]) -> None:
        """Nothing is made before somebody asks."""
        self._make = make
        self._lock = threading.Lock()
        self._latest: tuple[Content, str] | None = None
        self._not_before = 0.0

    def version(self, stamp: str) -> str:
        """Of which state of the files it would be now; ``stamp`` marks the present one."""
        if self._latest is None or time.monotonic() >= self._not_before:
            return stamp
        return self._latest[1]

    def get(self, stamp: str) -> tuple[Content, str]:
        """It, and the state of the files that it was made from."""
        with self._lock:
            version = self.version(stamp)
            if self._latest is None or version != self._latest[1]:
                began = time.monotonic()
                self._latest = self._make(), version
                ended = time.monotonic()
                self._not_before = ended + PATIENCE * (ended - began)
            return self._latest


class Followed:
    """One run folder, read again as it grows."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read before somebody asks."""
        self.folder = folder
        self._run = Aging(lambda: read_run(folder))
        self._report = Aging(lambda: build_report(self.run()[0]))

    def run(self) -> tuple[Run, str]:
        """What is there now, and a stamp of the files."""
        stamps = (stamp_of(self.folder / name) for name in (MANIFEST, EPISODES))
        return self._run.get("-".join(f"{changed:x}.{size:x}" for changed, size in stamps))

    def page(self) -> str:
        """The report page, as of now."""
        # By what was read and not by what lies there: both are made anew only after a while.
        return render_page(*self._report.get(self.run()[1]))

    def state(self) -> dict[str, Any]:
        """How the run stands: progress, what it has cost, and what is in flight."""
        (run, version), flight, now = self.run(), read_in_flight(self.folder), time.time()
        tokens, usd = (flight.tokens, flight.usd) if flight else _spent(run)
        return {
            "version": self._report.version(version),
            "going": flight is not None,
            "done": run.done,
            "planned": run.planned,
            "tokens": tokens,
            "usd": usd,
            "flying": [
                {"c": key.condition, "task": key.task, "seconds": max(0.0, now - since)}
                for key, since in (flight.episodes if flight else ())
            ],
        }

    def log(self, name: str) -> bytes | None:
        """An episode's step log by the name on the page; None for anything else.

        The name is only compared with those of finished episodes, so no other file is reached.
        """
        run, _ = self.run()
        for episode in run.episodes.values():
            if log_name(run, episode) == name:
                try:
                    return run.log_file(episode).read_bytes()
                except OSError:
                    return None
        return None


def _spent(run: Run) -> tuple[int | None, float | None]:
    """What sessions wrote down when they ended; nothing is known of killed ones."""
    bills = [session.spent for session in run.manifest.sessions if session.spent]
    paid = [bill.usd for bill in bills if bill.usd is not None]
    return sum(bill.tokens for bill in bills) if bills else None, sum(paid) if paid else None


class Shelf:
    """All runs of some folders; one that is begun while they are watched is seen as well."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Refused where a folder holds no run."""
        self._folders = folders
        self._known: dict[str, Followed] = {}
        for folder in folders:
            if not _runs_in(folder):
                raise RpmsError(
                    f"no {MANIFEST} in {folder} or below it; give a folder that 'rpms eval' wrote"
                )

    def runs(self) -> dict[str, Followed]:
        """By a name for the address, in the order they were given."""
        folders = dict.fromkeys(run for folder in self._folders for run in _runs_in(folder))
        self._known = {
            name: self._known.get(name) or Followed(run)
            for name, run in ((slug(str(run)), run) for run in folders)
        }
        return self._known

    def index(self) -> str:
        """A page that lists the runs and how they stand, the newest first."""
        rows: list[dict[str, Any]] = []
        for name, followed in self.runs().items():
            folder = followed.folder
            row: dict[str, Any] = {"name": name, "folder": folder, "error": "", "created": ""}
            row["short"] = self._short(folder)
            try:
                run, _ = followed.run()
                row |= followed.state() | {"run": run, "created": run.manifest.created}
            except (RpmsError, OSError) as error:
                row["error"] = str(error)
            rows.append(row)
        return render_index(sorted(rows, key=itemgetter("created"), reverse=True))

    def _short(self, folder: Path) -> str:
        """Its name below the one folder that was given; of several each in full."""
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
