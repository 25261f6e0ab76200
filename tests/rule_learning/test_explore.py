"""From a few generated homes to a checked manual, beside one that has more actions, too."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from rpms.envs import environment_names, get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.running.plan import choose_tasks
from rpms.rule_learning.audit import GoalPursuit, Predictions, RuleComparison, share
from rpms.rule_learning.evidence import ObservedUses
from rpms.rule_learning.explore import explore
from rpms.rule_learning.induction import Hypotheses
from rpms.rule_learning.learn import beside, learn_by_exploring, tier_of
from rpms.rules.check import check_manual
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import empty_belief

ENV = get_environment("alfworld")


class Learned(NamedTuple):
    folder: Path
    report: str


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Learned:
    folder, lines = tmp_path_factory.mktemp("learned"), list[str]()
    learn_by_exploring(ENV, folder, 3, seed=1, steps=300, report=lines.append)
    return Learned(folder, "\n".join(lines))


def test_it_passes_the_check(learned: Learned) -> None:
    problems = check_manual(ENV.rules, ENV.goal_types(), ENV.command_verbs(), over=learned.folder)
    assert problems == [] and learned.report.endswith(f"{learned.folder}: 0 problems")


def test_progress_only_goes_forward(learned: Learned) -> None:
    """In the second home places share a spot, and what was noted before is given up."""
    lines = re.findall(r"^scene (\d)/3: (\d+) commands, (\d+) of 14 actions", learned.report, re.M)
    homes, commands, worked = ([int(n) for n in column] for column in zip(*lines, strict=True))
    assert homes == [1, 2, 3] and worked == sorted(worked)
    assert all(after - before >= 250 for before, after in itertools.pairwise([0, *commands]))
    counts = json.loads((learned.folder / "evidence.json").read_text(encoding="utf-8"))
    kept = sum(action["accepted"] + action["rejected"] for action in counts.values())
    assert kept < commands[-1] - 100


def test_the_common_actions_are_right_after_three_homes(learned: Learned) -> None:
    actions = {rule.name: rule for rule in load_manual(ENV.name, str(learned.folder)).actions}
    assert actions["go_to"].preconditions == ["place(place)", "not at(place)"]
    assert actions["go_to"].effects == ["at(place)"]
    assert actions["go_to"].rejected_means_here == "place"
    assert {"hand_empty", "at(place)"} <= set(actions["take"].preconditions)
    assert actions["take"].effects[0] == "holding(object)"
    assert actions["take"].source == "learned"
    assert actions["take"].support and actions["take"].confidence
    assert actions["look"].preconditions == []


def test_what_never_worked_is_left_open(learned: Learned) -> None:
    manual = load_manual(ENV.name, str(learned.folder))
    unseen = [rule for rule in manual.actions if not rule.support]
    for rule in unseen:
        (only,) = rule.preconditions
        assert evaluate(parse_predicate(only), empty_belief(), manual.facts, {}) is None


def test_its_predictions_come_true_elsewhere(learned: Learned) -> None:
    manual = load_manual(ENV.name, str(learned.folder))
    predictions, comparison = Predictions(manual), RuleComparison(ENV, manual)
    watchers = [comparison, predictions]
    explore(ENV, ENV.tasks("generated_unseen", 1), 0, steps=90, watchers=watchers)
    rates = predictions.rates()
    assert rates.impossible > 0.9 and rates.possible > 0.9
    actions = comparison.result()
    assert actions is not None
    assert share(actions, "preconditions true") > 0.8
    assert share(actions, "effects true") == 1.0


def test_the_audit_pursues_what_tasks_lead_up_to() -> None:
    """Left to itself the explorer hardly ever comes to change a thing's state."""
    changing = [name for name in ENV.goal_types() if "_then_" in name]
    tasks = choose_tasks(ENV.name, "generated_unseen", 4, spread=True, types=changing)
    manual = load_manual(ENV.name)
    predictions = Predictions(manual)
    explore(ENV, tasks, 0, steps=400, watchers=[predictions], pursue=GoalPursuit(manual))
    outcomes = [predictions.outcomes(action) for action in ("heat", "cool", "clean")]
    assert sum(worked for worked, *_ in outcomes) and sum(o[3] for o in outcomes)


def test_the_same_seed_learns_the_same() -> None:
    tasks = ENV.tasks("generated_seen", 1)
    first, second = (tier_of(Hypotheses(explore(ENV, tasks, 3, steps=60))) for _ in range(2))
    assert first == second


def rule(name: str, syntax: str) -> ActionRule:
    return ActionRule(
        id=f"E-{name.upper()}", name=name, syntax=syntax, preconditions=[], effects=[]
    )


def test_a_tier_takes_the_place_of_all_actions_or_of_its_own() -> None:
    tier = tier_of(Hypotheses(ObservedUses(["open {place}", "look"])))
    assert tier["replaces"] is True
    assert beside(tier, [rule("OPEN", "open {place}")]) == tier
    part = beside(tier, [rule("unlock", "open {place}"), rule("sing", "sing")])
    assert "replaces" not in part
    assert [(action["id"], action["name"]) for action in part["actions"]] == [
        ("E-UNLOCK", "unlock"), ("L-LOOK", "look")
    ]  # fmt: skip


@pytest.mark.parametrize("world", environment_names())
def test_what_a_world_gives_to_learn_about_is_worded_as_in_its_manual(world: str) -> None:
    shipped = {action.syntax for action in load_manual(world).actions}
    learnable = set(get_environment(world).command_templates())
    assert learnable and (learnable <= shipped or shipped <= learnable)
