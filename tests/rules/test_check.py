"""``rpms rules check``: what the schema alone cannot see, found where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.envs import environment_names, get_environment
from rpms.rules.check import Finding, check_manual

WORLD = get_environment("alfworld")
HEAT = "pick_heat_then_place_in_recep"


def findings(over: Path | None = None, *more: str) -> list[Finding]:
    """``more`` is both a type of goals and a command that the manual does not know."""
    types, verbs = [*WORLD.goal_types(), *more], [*WORLD.command_verbs(), *more]
    return check_manual(WORLD.rules, types, verbs, over=over)


@pytest.mark.parametrize("name", environment_names())
def test_the_project_s_own_manuals_have_no_findings(name: str) -> None:
    world = get_environment(name)
    assert check_manual(world.rules, world.goal_types(), world.command_verbs()) == []
    assert check_manual(world.rules) == []


def action(syntax: str = "hop {place}", needs: str = "", effects: str = "") -> str:
    return (
        f"actions:\n- {{id: E-HOP, name: hop, syntax: '{syntax}',\n"
        f"   preconditions: [{needs}], effects: [{effects}]}}"
    )


def forbidden(rule: str = "O-COOL-001", goal: str = HEAT, verb: str = "put") -> str:
    return (
        f"forbidden:\n- {{id: {rule}, for: [{goal}], action: {verb}, where: {{object: $object}}}}"
    )


def serving(condition: str, verb: str = "put") -> str:
    return f"applicable:\n  free_hand: [{{action: {verb}, when: [{condition}], because: so}}]"


ENVIRONMENT = [
    (action(needs="near(place)"), "E-HOP", "unknown predicate 'near' in 'near(place)'"),
    (action(effects="shut(place)"), "E-HOP", "unknown predicate 'shut' in 'shut(place)'"),
    (action(needs="here"), "E-HOP", "'here' should have 1 argument(s)"),
    (action(needs="at(plaec)"), "E-HOP", "'at(plaec)' speaks of no parameter of 'hop "
     "{place}'; a thing is named as there, or with a number (box 1)"),
    (action("open {it}"), "E-HOP", "another action has the same syntax 'open {it}'"),
    ("situations:\n- {id: S-9, when: [locked], text: Hm.}", "S-9",
     "unknown predicate 'locked' in 'locked'"),
    ("rules:\n- {id: U-FAIL-001, text: Hm.}", "U-FAIL-001", "the id is used 2 times"),
    ("predicates:\n  ready: [[has(thing)]]", "predicates", "'ready': unknown predicate 'has'"),
    ("predicates:\n  ready: [[ready(thing)]]", "predicates",
     "'ready': unknown predicate 'ready'"),
    ("predicates:\n  ready: [[holding]]", "predicates",
     "'ready': 'holding' should have 1 argument(s)"),
    ("predicates:\n  place: [[at(thing)]]", "predicates", "'place' is a predicate already"),
    (forbidden("D-COLD-001"), "D-COLD-001", "a forbidden pattern names a rule that does not exist"),
    (forbidden(goal="chill"), "O-COOL-001", "unknown goal type 'chill'"),
    (forbidden(verb="stow"), "O-COOL-001", "forbids the unknown action 'stow'"),
]  # fmt: skip
NAME_ONE = "name one that can always be done, for when nothing else is possible: 'idle: look'"
DOMAIN = [
    (serving("has(object)"), "applicable",
     "'free_hand': unknown predicate 'has' in 'has(object)'"),
    (serving("holding"), "applicable", "'free_hand': 'holding' should have 1 argument(s)"),
    (serving("'contains(place, gold)'"), "applicable",
     "'free_hand': unknown predicate 'gold' in 'contains(place, gold)'"),
    (serving("", "fly"), "applicable", "'free_hand' names the unknown action 'fly'"),
    ("applicable:\n  free_hand: [{action: look, because: 'so {thing}'}]", "applicable",
     "'free_hand': 'look' has no parameter 'thing'"),
    ("terms:\n  open: [[at(thing)]]", "terms", "'open' is a predicate already"),
    ("rules:\n- {id: D-NEW-001, for: [pick], text: Hm.}", "D-NEW-001", "unknown goal type 'pick'"),
    ("procedures:\n  look_at: [find_object]", "procedures", "unknown goal type 'look_at'"),
    ("advances:\n  take_object: fly", "advances",
     "'take_object' is advanced by the unknown action 'fly'"),
    ("idle: ''", "idle", f"missing; {NAME_ONE}"),
    ("idle: dance", "idle", f"'dance' is no action of the manual; {NAME_ONE}"),
    (f"procedures:\n  {HEAT}: [find_lmap]", "applicable", "no pattern for find_lmap; list actions, "
     "best first: 'find_lmap: [{action: NAME, because: WHY}]'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tier", "text", "rule", "problem"),
    [*(("environment", *row) for row in ENVIRONMENT), *(("domain", *row) for row in DOMAIN)],
)
def test_a_mistake_is_found_where_it_stands(
    tier: str, text: str, rule: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / f"{tier}.yaml"
    file.write_text(f"# mine\n{text}\n", encoding="utf-8")
    (finding, *_) = [
        finding
        for finding in findings(tmp_path)
        if finding.rule == rule and finding.problem.startswith(problem)
    ]
    assert str(finding).startswith(f"{finding.file}:{finding.line}: {rule}: {problem}")
    line = finding.file.read_text(encoding="utf-8").splitlines()[finding.line - 1]
    assert line.startswith((f"- {{id: {rule},", f"{rule}:"))
    assert finding.file == file or f"{rule}:" not in text


def test_every_type_of_goals_and_every_command_of_the_world_has_its_rule() -> None:
    assert [(finding.rule, finding.problem) for finding in findings(None, "juggle")] == [
        ("procedures", "goal type 'juggle' has no procedure"),
        ("actions", "the environment's action 'juggle' has no rule"),
    ]
