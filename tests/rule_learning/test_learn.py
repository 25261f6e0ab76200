"""``rpms rules learn`` and ``audit``; a world without a Tier 3 of its own is played with one."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpms as api
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.tables import Table
from rpms.evals.records.run_folder import read_run
from rpms.rule_learning.audit import audit_manual
from rpms.rule_learning.learn import learn_by_exploring
from rpms.vocabulary.errors import RpmsError
from tests.command_line import Rpms
from tests.evals.sample_runs import analysis_of

NAME = "rpms.commands.world_template.world:WORLD"
BARE = "bare_world.world:WORLD"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The example world with an empty Tier 3, and what can be learned of it in a moment."""
    folder = tmp_path_factory.mktemp("worlds")
    shutil.copytree(api.get_environment(NAME).folder, folder / "bare_world")
    tier = folder / "bare_world" / "rules" / "environment.yaml"
    tier.write_text("tier: environment\nactions: []\n", encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        learn_by_exploring(api.get_environment(BARE), folder / "learned", 6, steps=250)
        yield folder / "learned"
    finally:
        sys.path.remove(str(folder))


def test_everything_it_says_is_learned(learned: Path) -> None:
    assert load_manual(BARE).actions == []
    actions = {rule.name: rule for rule in load_manual(BARE, str(learned)).actions}
    assert actions["open"].preconditions == ["not unclosed(place)"]
    assert actions["open"].effects == ["open(place)"]
    assert all(rule.source == "learned" for rule in actions.values())
    counts = json.loads((learned / "evidence.json").read_text(encoding="utf-8"))
    assert counts["open {place}"]["accepted"] > 0


def test_with_learned_rules_less_is_refused_than_with_none(learned: Path, tmp_path: Path) -> None:
    arms = {
        "A": api.Variant(api.RunContext.for_condition("A")),
        "B learned": api.Variant(api.RunContext.for_condition("B"), rules=str(learned)),
    }
    api.evaluate(
        arms,
        out=tmp_path / "run",
        env=BARE,
        limit=4,
        show=False,
        execution=api.ExecutionOptions(workers=0),
    )
    run = read_run(tmp_path / "run")
    refused = {
        arm: sum(analysis_of(run, each).invalid_actions for each in run.judged(arm)) for arm in arms
    }
    assert refused["B learned"] < refused["A"]


def test_a_world_without_readable_rules_gets_predictions(learned: Path) -> None:
    audit = audit_manual(api.get_environment(BARE), learned, "play", 1)
    _, why, table = audit.described()
    assert audit.as_json()["shares"].keys() == {"possible", "impossible", "open"}
    assert "only predictions are audited" in str(why) and isinstance(table, Table)
    assert "open" in [row[0].text for row in table.rows] and table.rows[-1][0].text == "all"
    with pytest.raises(RpmsError, match="is no folder"):
        audit_manual(api.get_environment(BARE), learned / "missing", "play", 1)


def test_only_the_named_actions_count(rpms: Rpms) -> None:
    words = ["rules", "audit", "--env", NAME, "--split", "play", "--games", "1", "--only"]
    lines = rpms(*words, "open, take").out.partition("───\n")[2].splitlines()
    assert {line.split()[0] for line in lines if line.strip()} == {"all", "open", "take"}
    done = rpms(*words, "nothing")
    assert done.code == 2 and "--only nothing: no such action was tried" in done.err


def test_without_a_word_it_is_not_judged_on_test_tasks(
    rpms: Rpms, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits: list[str] = []

    def audit_manual(env: api.Environment, folder: Path | None, split: str, *_: object) -> None:
        splits.append(split)
        raise RpmsError("that was all")

    monkeypatch.setattr("rpms.rule_learning.audit.audit_manual", audit_manual)
    for name in ("alfworld", "scienceworld"):
        rpms("rules", "audit", "--env", name)
    assert splits == ["generated_unseen", "dev"]
