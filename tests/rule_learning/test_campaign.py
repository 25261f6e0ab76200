"""From a few generated homes to a checked manual."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.nodes.manual import load_manual
from rpms.rule_learning.campaign import explore
from rpms.rule_learning.hypotheses import Hypotheses
from rpms.rule_learning.predictions import Asked
from rpms.rule_learning.revising import revise
from rpms.rule_learning.transitions import Transition, replay
from rpms.rule_learning.truths import Compared
from rpms.rule_learning.writing import tier_of, write_evidence, write_tier
from rpms.rules.audit import audit
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.vocabulary.belief import empty_belief

ENV = get_environment("alfworld")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    rules = Hypotheses(explore(ENV, ENV.tasks("generated_seen", 3), seed=1, steps=400))
    write_tier(folder, tier_of(rules), "learned in a test")
    write_evidence(folder, rules)
    return folder


def test_it_passes_the_check(learned: Path) -> None:
    found = audit(ENV.rules, ENV.goal_types(), ENV.command_verbs(), over=learned)
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
    asked, compared = Asked(manual), Compared(ENV, manual)
    explore(ENV, ENV.tasks("generated_unseen", 2), 0, steps=150, watchers=[compared, asked])
    rates = asked.found.rates()
    assert rates.impossible > 0.9 and rates.possible > 0.9
    truths = compared.result()
    assert truths is not None
    assert truths.precision > 0.8
    assert truths.effect_precision == 1.0


def test_the_same_seed_learns_the_same() -> None:
    tasks = ENV.tasks("generated_seen", 1)
    one, other = (tier_of(Hypotheses(explore(ENV, tasks, 3, steps=120))) for _ in range(2))
    assert one == other


def test_a_wrong_rule_gives_way(tmp_path: Path) -> None:
    manual = load_manual(ENV.name)
    rule = next(one for one in manual.actions if one.name == "open")
    wrong = manual.environment.model_copy(
        update={
            "actions": [
                one.model_copy(update={"preconditions": [*one.preconditions, "holding(place)"]})
                if one.name == "open"
                else one.model_copy(update={"preconditions": []})
                if one.name == "close"
                else one
                for one in manual.actions
            ]
        }
    )
    changed = type(manual)(manual.universal, manual.domain, wrong)
    tier, corrections = revise(changed, _played())
    opened = next(one for one in tier["actions"] if one["name"] == "open")
    closed = next(one for one in tier["actions"] if one["name"] == "close")
    assert opened["preconditions"] == rule.preconditions
    assert "open(place)" in closed["preconditions"]
    assert len(corrections) == 2
    write_tier(tmp_path, tier, "revised in a test")
    written = {one.name: one for one in load_manual(ENV.name, str(tmp_path)).actions}
    assert written["open"].preconditions == rule.preconditions


def _played() -> list[Transition]:
    game = ENV.open_game()
    task = ENV.tasks("generated_seen", 1)[0]
    first = game.reset(task)
    turns = []
    for place in ("drawer 1", "drawer 2", "drawer 3"):
        for verb in ("go to", "open", "close", "close"):
            answer = game.step(f"{verb} {place}").observation
            turns.append((f"{verb} {place}", answer, ENV.failed(answer)))
    game.close()
    return list(replay(ENV, first, turns))
