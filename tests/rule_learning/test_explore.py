"""From a few generated homes to a checked manual."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.nodes.manual import check_manual, load_manual
from rpms.rule_learning.audit import Comparison, Predictions, share
from rpms.rule_learning.explore import explore
from rpms.rule_learning.induction import Hypotheses
from rpms.rule_learning.tier_file import tier_of, write_tier
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.vocabulary.belief import empty_belief

ENV = get_environment("alfworld")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    rules = Hypotheses(explore(ENV, ENV.tasks("generated_seen", 3), seed=1, steps=400))
    write_tier(folder, tier_of(rules), "learned in a test")
    return folder


def test_it_passes_the_check(learned: Path) -> None:
    found = check_manual(ENV.rules, ENV.goal_types(), ENV.command_verbs(), over=learned)
    assert found == []


def test_the_common_actions_are_right_after_three_homes(learned: Path) -> None:
    actions = {rule.name: rule for rule in load_manual(ENV.name, str(learned)).actions}
    assert actions["go_to"].preconditions == ["place(place)", "not at(place)"]
    assert actions["go_to"].effects == ["at(place)"]
    assert actions["go_to"].refused_means_here == "place"
    assert {"hand_empty", "at(place)"} <= set(actions["take"].preconditions)
    assert actions["take"].effects[0] == "holding(object)"
    assert actions["take"].source == "learned"
    assert actions["take"].support and actions["take"].confidence
    assert actions["look"].preconditions == []


def test_what_never_worked_is_left_open(learned: Path) -> None:
    manual = load_manual(ENV.name, str(learned))
    for rule in manual.actions:
        if not rule.support:
            (only,) = rule.preconditions
            assert evaluate(parse_predicate(only), empty_belief(), manual.world, {}) is None


def test_its_predictions_come_true_elsewhere(learned: Path) -> None:
    manual = load_manual(ENV.name, str(learned))
    predictions, comparison = Predictions(manual), Comparison(ENV, manual)
    watchers = [comparison, predictions]
    explore(ENV, ENV.tasks("generated_unseen", 2), 0, steps=150, watchers=watchers)
    rates = predictions.rates()
    assert rates.impossible > 0.9 and rates.possible > 0.9
    actions = comparison.result()
    assert actions is not None
    assert share(actions, "preconditions true") > 0.8
    assert share(actions, "effects true") == 1.0


def test_the_same_seed_learns_the_same() -> None:
    tasks = ENV.tasks("generated_seen", 1)
    one, other = (tier_of(Hypotheses(explore(ENV, tasks, 3, steps=120))) for _ in range(2))
    assert one == other
