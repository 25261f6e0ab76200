"""The causes of lost episodes in a run: of each episode its line, and all of them as a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from rpms.evals.causes import NOT_RECORDED, Cause, find_cause, place_of
from rpms.evals.records import Episode
from rpms.evals.report.source import names, source_of
from rpms.evals.rule_compliance import judging_manual
from rpms.evals.run_folder import Run, read_log
from rpms.evals.tables import Cell, Table, counted, label
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import FailureMode

KEPT = 20_000
"""So many causes are kept in memory: a run that is watched is read again and again."""


def cause_of(run: Run, episode: Episode) -> Cause | None:
    """Where an episode went wrong; None if it was won."""
    if episode.success or episode.failure_mode is None:
        return None
    file, settings = run.log_file(episode), run.manifest.conditions[episode.condition]
    try:
        written = file.stat().st_mtime_ns
    except OSError:
        written = 0
    manual = (str(settings.get(name) or "") for name in ("rules_dir", "without_rules"))
    return _read(file, written, episode.failure_mode, episode.error, run.manifest.env, *manual)


@lru_cache(maxsize=KEPT)
def _read(
    file: Path, written: int, mode: FailureMode, error: str, env: str, *settings: str
) -> Cause:
    """One log is read once, as long as it is not written anew."""
    log = (read_log(file) if written else None) or {}
    known = dict(zip(("rules_dir", "without_rules"), settings, strict=True))
    try:
        manual = judging_manual(env, known)
    except RpmsError:  # the rules of that arm are gone; only names of actions are taken from them
        manual = judging_manual(env, {})
    try:
        return find_cause(mode, error, log.get("steps", []), manual)
    except (KeyError, TypeError, ValueError, AttributeError):  # a log of another shape
        return NOT_RECORDED


def cause_table(run: Run) -> Table | None:
    """Causes down, conditions across; None where nothing was lost."""
    lost = {
        name: [(cause, e) for e in run.played(name) if (cause := cause_of(run, e))]
        for name in run.conditions
    }
    kinds = {cause.kind for found in lost.values() for cause, _ in found}
    if not kinds:
        return None

    def row(title: str, chosen: Sequence[str]) -> list[Cell]:
        cells = ([e for cause, e in lost[name] if cause.kind in chosen] for name in lost)
        return [label(title), *map(counted, cells)]

    rows = [row(kind, [kind]) for kind in sorted(kinds, key=lambda kind: (place_of(kind), kind))]
    rows.append(row("not won", [*kinds]))
    notes = [
        "The one cause of each episode that was not won, from its step log: what ended it, or what "
        "came first after its last progress. The page names the step of every one."
    ]
    return Table(
        "causes", "Where lost episodes went wrong", source_of(run),
        ["cause", *map(names, run.conditions)], rows, notes=notes, total=True,
    )  # fmt: skip
