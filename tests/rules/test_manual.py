from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.envs.alfworld.goals import parse_goal
from rpms.envs.manuals import load_manual
from rpms.rules import Manual, Rejection, explain_rejection
from rpms.rules.manual import ActiveRules
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.goal import GoalSpec
from tests.envs.playing import believing

MANUAL = load_manual("alfworld")
STATE_CHANGE = {"D-TRANS-001", "D-TRANS-003"}

# goal sentence -> the domain rules of its type, besides those of all types and the locality
BY_TYPE = {
    "put a cd in safe": {"O-PLACE-001"},
    "look at cd under the desklamp": {"D-EXAM-001", "D-EXAM-003"},
    "put a clean cd in safe": STATE_CHANGE | {"O-CLEAN-001"},
    "put a hot cd in safe": STATE_CHANGE | {"D-HEAT-001"},
    "put a cool cd in safe": STATE_CHANGE | {"O-COOL-001"},
    "put two cd in safe": {"O-TWO-001", "O-TWO-002"},
}


# goal sentence -> the actions that only such a goal takes
TAKEN = {
    "put a cd in safe": set(),
    "look at cd under the desklamp": {"use"},
    "put a clean cd in safe": {"clean"},
    "put a hot cd in safe": {"heat"},
    "put a cool cd in safe": {"cool"},
    "put two cd in safe": set(),
}
EVERY_GOAL = {"go_to", "open", "take", "put", "examine", "look"}


# Sentences that the lines of the actions say already.
SAID_BY_ACTIONS = {rule.id for rule in MANUAL.domain.rules if rule.scope == "all"}


def active(sentence: str = "put a cd in safe", **fields: Any) -> ActiveRules:
    return MANUAL.active(parse_goal(sentence), believing(**fields))


def ids(lines: list[Any]) -> set[str]:
    assert len({line["id"] for line in lines}) == len(lines)
    return {line["id"] for line in lines}


@pytest.mark.parametrize(("sentence", "own"), BY_TYPE.items())
def test_the_active_rules_of_each_type(sentence: str, own: set[str]) -> None:
    rules = active(sentence)
    goal = parse_goal(sentence)
    home = {rule.id for rule in MANUAL.domain.here if goal["type"] in rule.goal_types}
    home |= {"D-LOC-003", "O-LOC-012"} | ({"O-LOC-010"} if "desklamp" in sentence else set())
    assert ids(rules["domain"]) == (own | home | {"D-CONT-001", "D-CONT-002"}) - SAID_BY_ACTIONS
    # No instrument has to be carried along here: Tier 1 says what it requires.
    assert ids(rules["universal"]) == {rule.id for rule in MANUAL.universal.rules} - {"U-INSTR-001"}
    taken = {rule.id for rule in MANUAL.actions if rule.name in EVERY_GOAL | TAKEN[sentence]}
    others = {rule.id for rule in MANUAL.actions if rule.printed} - taken
    assert ids(rules["environment"]) >= taken and not ids(rules["environment"]) & others


@pytest.mark.parametrize("sentence", BY_TYPE)
def test_the_actions_that_a_type_of_goal_takes(sentence: str) -> None:
    goal = parse_goal(sentence)
    assert MANUAL.needed_for(goal["type"]) == EVERY_GOAL | TAKEN[sentence]
    every = {rule.id for rule in MANUAL.actions if rule.printed and MANUAL.knows(rule)}
    whole = MANUAL.active(goal, empty_belief(), scope="all")
    assert ids(whole["environment"]) >= every
    some = MANUAL.active(goal, empty_belief())
    assert ids(some["environment"]) < ids(whole["environment"])
    # With the whole manual an action's line also has the warning that a sentence gives.
    lines = {line["id"]: line["text"] for line in whole["environment"]}
    warned = {rule.id: f" | CRITICAL: {rule.critical}" for rule in MANUAL.actions
              if rule.critical_in}  # fmt: skip
    for line in some["environment"]:
        assert lines[line["id"]] == line["text"] + warned.get(line["id"], "")
    assert ids(whole["domain"]) - ids(some["domain"]) <= SAID_BY_ACTIONS
    rest = {"environment": [], "domain": []}
    assert {**whole, **rest} == {**some, **rest}


def test_a_warning_that_is_said_once_is_said_by_a_rule_for_the_same_goals() -> None:
    """What an action's line leaves to a sentence must stand in every prompt with that line."""
    texts = {rule.id: rule for rule in MANUAL.domain.rules}
    for rule in MANUAL.actions:
        if rule.critical_in:
            said = texts[rule.critical_in]
            types = [
                kind
                for kind in MANUAL.domain.procedures
                if rule.name
                in {MANUAL.domain.advances.get(step) for step in MANUAL.domain.procedures[kind]}
            ]
            assert types and all({"all", kind} & {*said.goal_types} for kind in types)


def test_where_nothing_says_what_serves_a_step_every_action_may_be_needed(tmp_path: Path) -> None:
    every = {rule.name for rule in MANUAL.actions}
    assert MANUAL.needed_for("juggle") == every
    (tmp_path / "domain.yaml").write_text(
        "procedures: {juggle: [find_object, throw_object]}", encoding="utf-8"
    )
    unserved = load_manual("alfworld", str(tmp_path))
    assert unserved.needed_for("juggle") == every
    (tmp_path / "domain.yaml").write_text(
        "procedures: {juggle: [find_object, throw_object]}\n"
        "applicable: {throw_object: [{action: slice, because: why not}]}\n"
        "urgent: [{action: inventory, because: why not, for: [juggle]}]\n",
        encoding="utf-8",
    )
    served = load_manual("alfworld", str(tmp_path))
    # Freeing the hand is a step of no procedure: it may come up under any goal.
    assert {"slice", "inventory", "put"} <= served.needed_for("juggle") < every
    assert "take" not in served.needed_for("juggle")
    assert "inventory" not in served.needed_for("pick_and_place_simple")


def test_a_sentence_of_tier_1_is_printed_only_where_it_holds(tmp_path: Path) -> None:
    by_need = {rule.id: {*rule.requires} for rule in MANUAL.universal.rules}
    goal = parse_goal("put a cd in safe")

    def printed(manual: Manual) -> set[str]:
        return ids(manual.active(goal, empty_belief())["universal"])

    for features in ([], ["places"], ["places", "numbered names"], ["one hand", "instruments"]):
        text = f"features: {features}\n".replace("'", "")
        (tmp_path / "environment.yaml").write_text(text, encoding="utf-8")
        manual = load_manual("alfworld", str(tmp_path))
        assert printed(manual) == {rule for rule, need in by_need.items() if need <= {*features}}
    assert {rule for rule, need in by_need.items() if not need} > {"U-FAIL-001", "O-FAIL-003"}


@pytest.mark.parametrize("world", ["alfworld", "scienceworld"])
def test_what_tier_1_requires_some_world_has(world: str) -> None:
    manual = load_manual(world)
    required = {feature for rule in manual.universal.rules for feature in rule.requires}
    assert {*manual.environment.features} <= required
    lines = manual.active(parse_goal("put a cd in safe"), empty_belief())["universal"]
    numbered = "numbered names" in manual.environment.features
    assert ("U-SEARCH-005" in ids(lines)) == numbered == (world == "alfworld")


def test_every_domain_rule_is_active_for_some_goal() -> None:
    seen: set[str] = set()
    for sentence in BY_TYPE:
        for kinds in MANUAL.domain.categories.values():
            goal = GoalSpec(**{**parse_goal(sentence), "object": kinds[0]})
            seen |= ids(MANUAL.active(goal, empty_belief(), scope="all")["domain"])
    written = [rule.id for rule in MANUAL.domain.rules]
    written += [rule.id for rule in MANUAL.domain.likely_places]
    written += [rule.id for rule in MANUAL.domain.here]
    assert seen == set(written)


@pytest.mark.parametrize(
    ("thing", "rule", "first"),
    [
        ("apple", "D-LOC-001", "fridge -> countertop -> diningtable -> cabinet"),
        ("laptop", "D-LOC-003", "desk -> shelf -> drawer -> sidetable -> bed -> sofa"),
    ],
)
def test_only_the_locality_of_the_goal_s_own_object_is_shown(
    thing: str, rule: str, first: str
) -> None:
    shown = {r["id"]: r["text"] for r in active(f"put a {thing} in shelf")["domain"]}
    mine = [name for name in shown if "-LOC-" in name and thing in shown[name]]
    assert mine[0] == rule and not any("shelf is" in text for text in shown.values())
    assert shown[rule].startswith(f"{thing} is usually at: {first}")


def test_the_home_s_own_places_are_named_in_the_order_to_try_them() -> None:
    places = ["countertop 2", "countertop 10", "countertop 1", "fridge 1", "desk 1"]
    texts = {r["id"]: r["text"] for r in active("put a apple in desk", places=places)["domain"]}
    assert texts["D-LOC-001"] == (
        "apple is usually at: fridge 1 -> countertop 1, countertop 2, countertop 10"
    )
    assert texts["O-DEST-001"] == "The apple goes to (one of): desk 1"
    assert "O-LOC-011" not in texts  # this home has none of those
    lacking = ("diningtable", "cabinet")
    assert not any(kind in text for kind in lacking for text in texts.values())


def test_where_no_home_is_known_the_kinds_are_named() -> None:
    texts = {r["id"]: r["text"] for r in active()["domain"]}
    assert texts["O-LOC-012"] == "cd is sometimes at: dresser -> coffeetable -> diningtable"
    assert texts["O-DEST-001"] == "The cd goes to (one of): safe"


def test_a_look_task_is_told_where_lamps_are_likely_and_what_to_hold() -> None:
    places = ["desk 1", "sidetable 1", "bed 1"]
    texts = {r["id"]: r["text"]
            for r in active("look at cd under the desklamp", places=places)["domain"]}  # fmt: skip
    assert texts["O-LOC-010"] == "desklamp is usually at: desk 1 -> sidetable 1"
    assert texts["O-EXAM-004"].startswith("Hold the cd, be where the desklamp was seen")


def test_every_portable_kind_is_in_one_category_and_has_a_likely_place() -> None:
    portable = MANUAL.facts.affordances["portable"]
    assert all(len(MANUAL.categories_of(kind)) <= 1 for kind in portable)
    # The rest are things that no goal asks for.
    assert {kind for kind in portable if not MANUAL.localities_of(kind)} <= {"footstool"}
    assert MANUAL.localities_of("zeppelin") == []
    assert MANUAL.localities_of("apple")[0].places[0] == "fridge"


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({}, {"S-002": "Hands empty - can pick up an object."}),
        ({"holding": ["mug 2"]},
         {"OS-001": "Holding mug 2 - no other object can be taken until it is put down."}),
        ({"location": "safe 1", "containers": {"safe 1": "closed"}},
         {"S-002": "Hands empty - can pick up an object.",
          "OS-003": "safe 1 is closed - open it before looking, taking or putting."}),
        ({"location": "safe 1", "containers": {"safe 1": "open", "safe 2": "closed"}},
         {"S-002": "Hands empty - can pick up an object."}),
    ],
)  # fmt: skip
def test_the_lines_of_the_situation(fields: dict[str, Any], lines: dict[str, str]) -> None:
    assert {line["id"]: line["text"] for line in active(**fields)["situation"]} == lines


def test_a_rejected_action_is_explained_once() -> None:
    belief = believing(holding=["mug 1"], location="desk 1", spots={"desk 1": ["desk 1"]})
    action = "take cd 1 from safe 1"
    rejected = Rejection(action, "was rejected", explain_rejection(MANUAL, action, belief))
    goal = parse_goal("put a cd in safe")
    lines = MANUAL.active(goal, belief, rejected)["situation"]
    texts = {line["id"]: line["text"] for line in lines}
    assert texts["OS-004"] == (
        "'take cd 1 from safe 1' was rejected: it needs your hand to be empty, and you hold mug 1; "
        "it needs you to be at safe 1, and you are at desk 1."
    )
    # This line, and no other, is about the last action.
    assert [line["id"] for line in lines if line.get("last_action")] == ["OS-004"]
    assert "OS-004" not in {line["id"] for line in MANUAL.active(goal, belief)["situation"]}


def test_a_condition_on_the_last_action_can_be_denied(tmp_path: Path) -> None:
    line = "situations: [{id: OS-004, when: [not last_failed], text: All is well.}]"
    (tmp_path / "environment.yaml").write_text(line, encoding="utf-8")
    manual = load_manual("alfworld", str(tmp_path))
    goal, belief = parse_goal("put a cd in safe"), empty_belief()
    shown = [ids(manual.active(goal, belief, refused)["situation"])
             for refused in (None, Rejection("look", "was rejected", "x"))]  # fmt: skip
    assert shown == [{"S-002", "OS-004"}, {"S-002"}]


def test_critical_rules_say_so_and_actions_read_as_syntax_needs_and_warning() -> None:
    goal = parse_goal("put a hot mug in shelf")
    rules = MANUAL.active(goal, believing(), scope="all")
    texts = {line["id"]: line["text"] for line in (*rules["domain"], *rules["environment"])}
    assert texts["D-HEAT-001"].startswith("CRITICAL: ")
    assert not texts["D-TRANS-001"].startswith("CRITICAL: ")
    assert texts["O-ACT-006"].startswith(
        "heat <object> with <place> | needs you to hold <object>; you to be at <place>; "
        "<place> to be a microwave | CRITICAL: Single-step and atomic. The object stays in hand."
    )
    assert texts["O-ACT-002"] == "open <place> | needs you to be at <place>; <place> to be closed"
    assert texts["O-ACT-012"] == "look"
