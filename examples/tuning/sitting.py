"""One sitting of a tuning: where it goes on, how fast it is, when it saves and when it stops.

Nothing here needs torch, so that it can be read and tested anywhere.
"""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

BEGAN = monotonic()
"""When the program began: loading a model takes time, too."""
NOTE = "sitting.json"
REPORT_EVERY = 20
SAVE_EVERY_S = 300.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Sitting:
    """A plan's batches against the clock; those ``done`` by earlier sittings count, too."""

    def __init__(self, plan: list[list[int]], lengths: Sequence[int], minutes: float = 0) -> None:
        """A batch is numbers of lines, ``lengths`` are theirs; 0 ``minutes`` are no limit."""
        self.plan, self.done, self.first = plan, 0, 0
        self._ends = BEGAN + 60 * (minutes or float("inf"))
        self._sizes = [sum(lengths[line] for line in batch) for batch in plan]
        self._name = hashlib.sha256(json.dumps([plan, [*lengths]]).encode()).hexdigest()

    def go_on(self, folder: Path) -> None:
        """Begin where the sitting that was saved there ended; other lines are begun anew."""
        note = folder / NOTE
        saved = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
        self.done = self.first = saved["batches"] if saved.get("plan") == self._name else 0
        print(f"going on from {folder}, after {self.done} of {len(self.plan)} batches")

    def steps(self, save: Callable[[], None]) -> Iterator[int]:
        """The batches still to do, until time is up, or Ctrl-C or SIGTERM; saved at the end."""
        signals: list[int] = []
        usual = {each: signal.signal(each, lambda got, _: signals.append(got)) for each in SIGNALS}
        saved = monotonic()
        while self.done < len(self.plan) and not signals and monotonic() < self._ends:
            yield self.done
            self.done += 1
            if monotonic() - saved > SAVE_EVERY_S:
                save()
                saved = monotonic()
        save()
        for each, handler in usual.items():
            signal.signal(each, handler)

    def report(self, loss: float, seconds: float) -> None:
        """Say now and then how it goes, after so many seconds of training."""
        ended, total = self.done + 1, len(self.plan)
        if (self.done - self.first) % REPORT_EVERY == 0 or ended == total:
            speed = sum(self._sizes[self.first : ended]) / seconds
            pace = f"{speed:,.0f} tokens/s, {sum(self._sizes[ended:]) / speed / 60:.0f} min left"
            print(f"step {ended} of {total}, loss {loss:.4f}, {pace}", flush=True)

    def save(self, out: Path, write: Callable[[Path], None]) -> None:
        """Files are whole or as they were: a machine may go while they are written."""
        part = out / "part"
        part.mkdir(parents=True, exist_ok=True)
        write(part)
        size = sum(file.stat().st_size for file in part.iterdir()) / 1e6
        lines = sum(map(len, self.plan[: self.done]))
        note = {"plan": self._name, "batches": self.done, "lines": lines}
        (part / NOTE).write_text(json.dumps(note) + "\n", encoding="utf-8")
        for file in sorted(part.iterdir(), key=lambda file: file.name == NOTE):
            file.replace(out / file.name)
        part.rmdir()
        rest = "" if self.done == len(self.plan) else f"; the rest: --from {out}"
        print(f"saved: {out}, {size:.1f} MB, {self.done} of {len(self.plan)} batches{rest}")
