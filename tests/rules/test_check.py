from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.envs import environment_names, get_environment
from rpms.nodes.manual import Finding, check_manual

WORLD = get_environment("alfworld")
ENVIRONMENT, DOMAIN = "alfworld/environment.yaml", "alfworld/domain.yaml"


def findings(folder: Path) -> list[Finding]:
    return check_manual(folder / "alfworld", WORLD.goal_types(), WORLD.command_verbs(), folder)


@pytest.mark.parametrize("name", environment_names())
def test_the_project_s_own_manuals_have_no_findings(name: str) -> None:
    world = get_environment(name)
    assert check_manual(world.rules, world.goal_types(), world.command_verbs()) == []


def test_a_copy_has_none_either(rule_folder: Path) -> None:
    assert findings(rule_folder) == []


def test_without_a_world_only_the_files_are_judged() -> None:
    assert check_manual(WORLD.rules) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "rule", "problem"),
    [
        (DOMAIN, "id: D-CONT-002", "id: D-LOC-001", "D-LOC-001", "the id is used 2 times"),
        (ENVIRONMENT, "id: S-002", "id: U-FAIL-001", "U-FAIL-001", "the id is used 2 times"),
        (ENVIRONMENT, "[at(place), closed(place)]", "[near(place), closed(place)]", "O-ACT-002",
         "unknown predicate 'near' in 'near(place)'"),
        (ENVIRONMENT, "effects: [closed(place)]", "effects: [shut(place)]", "O-ACT-003",
         "unknown predicate 'shut' in 'shut(place)'"),
        (ENVIRONMENT, "when: [here_closed]", "when: [here_locked]", "OS-003",
         "unknown predicate 'here_locked' in 'here_locked'"),
        (ENVIRONMENT, "[switchable(object), here(object)]", "[switchable(object), here]",
         "O-ACT-009", "'here' should have 1 argument(s)"),
        (ENVIRONMENT, "[switchable(object), here(object)]", "[switchable(objekt), here(object)]",
         "O-ACT-009", "'switchable(objekt)' speaks of no parameter of 'use {object}'"),
        (ENVIRONMENT, '[not holding(object), "in(object, place)"]',
         '[not holding(object), "in(object, plaec)"]', "O-ACT-005",
         "'in(object, plaec)' speaks of no parameter of 'put {object} in/on {place}'"),
        (ENVIRONMENT, "at_hand: [[holding(thing)]", "at_hand: [[has(thing)]", "predicates",
         "'at_hand' cannot be built on 'has'"),
        (ENVIRONMENT, "at_hand: [[holding(thing)]", "at_hand: [[at_hand(thing)]", "predicates",
         "'at_hand' cannot be built on 'at_hand'"),
        (ENVIRONMENT, "at_hand: [[holding(thing)]", "at_hand: [[holding]", "predicates",
         "'holding' of 'at_hand' should have 1 argument(s)"),
        (ENVIRONMENT, "at_hand: [[holding", "place: [[at(thing)]]\n  at_hand: [[holding",
         "predicates", "'place' is a predicate already"),
        (DOMAIN, "[at(place), holding(object)]", "[at(place), has(object)]", "serves",
         "'free_hand' uses the unknown condition 'has' in 'has(object)'"),
        (DOMAIN, "[at(place), holding(object)]", "[at(place), holding]", "serves",
         "'holding' of 'free_hand' should have 1 argument(s)"),
        (DOMAIN, "[at(place), holding(object)]", '[at(place), "contains(place, gold)"]', "serves",
         "'free_hand' uses the unknown condition 'gold' in 'contains(place, gold)'"),
        (DOMAIN, "idle: look", "terms:\n  open: [[at(thing)]]\nidle: look", "terms",
         "'open' is a condition already"),
        (DOMAIN, "for: [pick_and_place_simple]", "for: [pick_and_place]", "O-PLACE-001",
         "unknown goal type 'pick_and_place'"),
        (DOMAIN, "  pick_and_place_simple: [", "  look_at: [a]\n  pick_and_place_simple: [",
         "procedures", "unknown goal type 'look_at'"),
        (DOMAIN, "  pick_and_place_simple: [find_object, take_object, place_object]\n", "",
         "procedures", "goal type 'pick_and_place_simple' has no procedure"),
        (ENVIRONMENT, "[at(place), closed(place)]", "[closed(place), open(place)]", "O-ACT-002",
         "preconditions contain 'open(place)' and 'closed(place)', which exclude each other"),
        (ENVIRONMENT, "[at(place), closed(place)]", "[at(place), not at(place)]", "O-ACT-002",
         "preconditions contain 'at(place)' and 'not at(place)', which exclude each other"),
        (ENVIRONMENT, "effects: [open(place)]", "effects: [open(place), closed(place)]",
         "O-ACT-002",
         "effects contain 'open(place)' and 'closed(place)', which exclude each other"),
        (ENVIRONMENT, "[holding(tool), blade(tool)", "[holding(tool), hand_empty", "O-ACT-010",
         "preconditions contain 'hand_empty' and 'holding(tool)', which exclude each other"),
        (ENVIRONMENT, "id: O-COOL-001", "id: D-COLD-001", "D-COLD-001",
         "a forbidden pattern names a rule that does not exist"),
        (ENVIRONMENT, "for: [pick_cool_then_place_in_recep]", "for: [pick_chill]", "O-COOL-001",
         "unknown goal type 'pick_chill'"),
        (ENVIRONMENT, "for: [pick_cool_then_place_in_recep]\n    action: put",
         "for: [pick_cool_then_place_in_recep]\n    action: stow", "O-COOL-001",
         "forbids the unknown action 'stow'"),
        (ENVIRONMENT, "where: {object: $object, place: fridge}", "where: {object: $object}",
         "O-COOL-001", "forbids every 'put' the goal demands"),
        (ENVIRONMENT, "syntax: close {place}", "syntax: open {place}", "O-ACT-003",
         "another action has the same syntax 'open {place}'"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_where_it_stands(
    spoil: Any, rule_folder: Path, file: str, old: str, new: str, rule: str, problem: str
) -> None:
    spoiled, _ = spoil(file, old, new)
    found = [f for f in findings(rule_folder) if f.file == spoiled and f.problem == problem]
    assert [f.rule for f in found if f.rule == rule] == [rule], findings(rule_folder)
    finding = next(f for f in found if f.rule == rule)
    line = spoiled.read_text().splitlines()[finding.line - 1]
    assert line in (f"  - id: {rule}", f"{rule}:")
    assert str(finding) == f"{spoiled}:{finding.line}: {rule}: {problem}"


@pytest.mark.parametrize(
    ("old", "new", "rule", "problem"),
    [
        ("idle: look\n", "", "idle", "missing; name one that can always be done, such as"),
        ("idle: look\n", "idle: dance\n", "idle", "'dance' is no action of the manual; name one"),
        ("\n  find_lamp:", "\n  find_lmap:", "serves", "nothing serves find_lamp; list under each"),
    ],
)
def test_what_the_guard_plays_by_must_be_there(
    spoil: Any, rule_folder: Path, old: str, new: str, rule: str, problem: str
) -> None:
    file, _ = spoil(DOMAIN, old, new)
    (found,) = findings(rule_folder)
    assert (found.file, found.rule) == (file, rule) and found.problem.startswith(problem)


def test_a_missing_action_rule_is_found(spoil: Any, rule_folder: Path) -> None:
    file, _ = spoil(
        ENVIRONMENT,
        "  - id: O-ACT-013\n    name: inventory\n    syntax: inventory\n"
        "    preconditions: []\n    effects: []\n",
        "",
    )
    (found,) = findings(rule_folder)
    assert found.problem == "the environment's action 'inventory' has no rule"
    assert file.read_text().splitlines()[found.line - 1] == "actions:"


def test_a_command_left_out_on_purpose_needs_a_reason(spoil: Any, rule_folder: Path) -> None:
    spoil(ENVIRONMENT, "  help: prints a list of commands", "  hlep: prints a list of commands")
    assert [f.problem for f in findings(rule_folder)] == [
        "the environment's action 'help' has no rule"
    ]
