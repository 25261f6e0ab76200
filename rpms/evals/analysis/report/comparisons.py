"""The pairs of arms that a report tests: those of the plan, or all arms with those asked for."""

from __future__ import annotations

from typing import NamedTuple

from rpms.evals.analysis.arm_differences import ArmOfRun, arm_differences
from rpms.evals.records.run_folder import Run

PARTS = {"state_block": "state", "memory": "memory", "rules": "rules"}
"""Settings that switch a whole part of the agent, and the part's name."""
IMPLIED = {"rules": "state_block", "memory": "state_block", "memory_method": "memory_file",
           "commit": "manual"}  # fmt: skip
"""A change of the first always changes the second, so the second is not counted."""


class Comparison(NamedTuple):
    """Two arms. If they differ in one of PARTS only, ``part`` is the one that the second has."""

    first: str
    second: str
    part: str = ""


def comparisons(run: Run) -> list[Comparison]:
    """The pairs that the verdict tests: those of the plan, or all arms with those asked for.

    An arm in no pair of the plan is compared with the first arm.
    """
    arms, against = run.conditions, run.against
    if against:
        pairs = [
            (first, second)
            for number, first in enumerate(against)
            for second in arms
            if second not in against[: number + 1]
        ]
    else:
        pairs = [pair for pair in run.manifest.compare if {*pair} <= {*arms}]
        compared = {arm for pair in pairs for arm in pair}
        pairs += [(arms[0], arm) for arm in arms[1:] if arm not in compared]
    return [Comparison(first, second, _part(run, first, second)) for first, second in pairs]


def _part(run: Run, first: str, second: str) -> str:
    """The part of the agent that the second arm has beyond the first, if they differ only in it."""
    added = _changes(run, first, second)
    part = next(iter(added)) if len(added) == 1 else ""
    return part if part in PARTS and run.settings(second).get(part) else ""


def _changes(run: Run, first: str, second: str) -> set[str]:
    """The settings in which two arms differ, without those that another difference implies."""
    names = {*arm_differences(ArmOfRun(run.manifest, first), ArmOfRun(run.manifest, second))}
    return names - {IMPLIED[name] for name in names if name in IMPLIED}
