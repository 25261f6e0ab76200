"""The timing of the guard measures decisions of both kinds over the manual that it says."""

from __future__ import annotations

from pathlib import Path

from rpms.guard import judge
from tools.guard_timing import RULES, calls, make_belief, measure, write_manual


def test_every_rule_is_asked_and_every_other_call_refused(tmp_path: Path) -> None:
    manual, belief = write_manual(tmp_path), make_belief()
    assert sum(len(rules) for rules in manual.policy.values()) == RULES
    verdicts = [judge(manual, call, belief).verdict for call in calls(20)]
    assert verdicts == ["refuse", "allow"] * 10
    figures = measure(200)
    assert figures["share refused"] == 0.5
    assert 0 < figures["median ms"] <= figures["99th percentile ms"]
