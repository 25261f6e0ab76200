"""The figures measure what they say; how fast a machine is today is no matter for a test."""

from __future__ import annotations

from pathlib import Path

from rpms.graph import STAGES
from rpms.guard import judge
from tools import figures


def test_every_stage_that_is_on_has_its_time() -> None:
    times = figures.stage_times(episodes=1, steps=3)
    assert [*times] == [stage for stage in STAGES if stage != "guard_check"]
    assert {*figures.engine_times(games=1, steps=3)} == {"start a game", "one step"}


def test_every_rule_is_asked_and_every_other_call_rejected(tmp_path: Path) -> None:
    manual, belief = figures.write_manual(tmp_path), figures.make_belief()
    assert sum(len(rules) for rules in manual.policy.values()) == figures.RULES
    verdicts = [judge(manual, call, belief).verdict for call in figures.calls(20)]
    assert verdicts == ["refuse", "allow"] * 10
    assert {"median", "99th percentile"} <= {*figures.guard_times(200)}
