from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.envs.alfworld.goals import parse_goal
from rpms.nodes.manual import load_manual
from rpms.rules import check_action
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
    assert ids(rules["domain"]) == own | home | {"D-CONT-001", "D-CONT-002"}
    assert ids(rules["universal"]) == {rule.id for rule in MANUAL.universal.rules}
    assert ids(rules["environment"]) >= {rule.id for rule in MANUAL.actions if rule.printed}


def test_every_domain_rule_is_active_for_some_goal() -> None:
    seen: set[str] = set()
    for sentence in BY_TYPE:
        for kinds in MANUAL.domain.categories.values():
            goal = GoalSpec(**{**parse_goal(sentence), "object": kinds[0]})
            seen |= ids(MANUAL.active(goal, empty_belief())["domain"])
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
    portable = MANUAL.world.affordances["portable"]
    assert all(len(MANUAL.categories_of(kind)) <= 1 for kind in portable)
    # The rest are things that no goal asks for.
    assert {kind for kind in portable if not MANUAL.likely_places(kind)} <= {"footstool"}
    assert MANUAL.likely_places("zeppelin") == [] and MANUAL.likely_places("apple")[0] == "fridge"


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


def test_a_refused_action_is_explained_once() -> None:
    belief = believing(holding=["mug 1"], location="desk 1", spots={"desk 1": ["desk 1"]})
    action = "take cd 1 from safe 1"
    diagnosis = check_action(MANUAL, action, belief)
    goal = parse_goal("put a cd in safe")
    lines = MANUAL.active(goal, belief, (action, diagnosis.violated))["situation"]
    texts = {line["id"]: line["text"] for line in lines}
    assert texts["OS-004"] == "'take cd 1 from safe 1' was refused: hands empty; be at safe 1."
    assert "OS-004" not in {line["id"] for line in MANUAL.active(goal, belief)["situation"]}


def test_a_condition_on_the_last_action_can_be_denied(tmp_path: Path) -> None:
    line = "situations: [{id: OS-004, when: [not last_failed], text: All is well.}]"
    (tmp_path / "environment.yaml").write_text(line, encoding="utf-8")
    manual = load_manual("alfworld", str(tmp_path))
    goal, belief = parse_goal("put a cd in safe"), empty_belief()
    shown = [ids(manual.active(goal, belief, refused)["situation"])
             for refused in (None, ("look", ["x"]))]  # fmt: skip
    assert shown == [{"S-002", "OS-004"}, {"S-002"}]


def test_critical_rules_say_so_and_actions_read_as_syntax_needs_and_warning() -> None:
    rules = active("put a hot mug in shelf")
    texts = {line["id"]: line["text"] for line in (*rules["domain"], *rules["environment"])}
    assert texts["D-HEAT-001"].startswith("CRITICAL: ")
    assert not texts["D-TRANS-001"].startswith("CRITICAL: ")
    assert texts["O-ACT-006"].startswith("heat <object> with <place> | needs: hold <object>; ")
    assert "CRITICAL: Single-step and atomic. The object stays in hand." in texts["O-ACT-006"]
    assert texts["O-ACT-012"] == "look"
