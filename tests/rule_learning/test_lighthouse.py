"""A world without a hand-written Tier 3: its manual is learned, and then played with."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpms
from rpms.evals.run_files import read_run
from rpms.manual_learning import Study, learn_by_exploring
from rpms.nodes.manual import load_manual

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "lighthouse"
NAME = "bare_lighthouse.world:WORLD"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The example world with an empty Tier 3, and what can be learned of it in a moment."""
    folder = tmp_path_factory.mktemp("worlds")
    shutil.copytree(EXAMPLE, folder / "bare_lighthouse")
    tier = folder / "bare_lighthouse" / "rules" / "environment.yaml"
    tier.write_text("tier: environment\nactions: []\n", encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        learn_by_exploring(Study(rpms.get_environment(NAME), folder / "learned", steps=300), 8)
        yield folder / "learned"
    finally:
        sys.path.remove(str(folder))


def test_everything_it_says_is_learned(learned: Path) -> None:
    assert load_manual(NAME).actions == []
    actions = {rule.name: rule for rule in load_manual(NAME, str(learned)).actions}
    assert actions["open"].preconditions == ["at(place)", "closed(place)"]
    assert actions["open"].effects == ["open(place)"]
    assert all(rule.source == "learned" for rule in actions.values())


def test_with_learned_rules_less_is_refused_than_with_none(learned: Path, tmp_path: Path) -> None:
    arms = {
        "A": rpms.Variant(rpms.RunContext.for_condition("A")),
        "B learned": rpms.Variant(rpms.RunContext.for_condition("B"), rules=str(learned)),
    }
    rpms.evaluate(
        arms, out=tmp_path / "run", env=NAME, limit=9, show=False, effort=rpms.Effort(workers=0)
    )
    run = read_run(tmp_path / "run")
    refused = {arm: sum(one.invalid_actions for one in run.judged(arm)) for arm in arms}
    assert refused["B learned"] < refused["A"]
