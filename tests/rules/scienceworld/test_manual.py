"""The ScienceWorld manual: complete, within the paper's size, and right about the focus."""

from __future__ import annotations

import re
import zipfile
from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.adapter import ENVIRONMENT
from rpms.envs.scienceworld.simulator import _jar
from rpms.envs.scienceworld.tasks import catalogue, description
from rpms.prompts.blocks import load_system, render_rules
from rpms.rules import Rejection, forbidden_by
from rpms.rules.manual import RULES_FOLDER
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.goal import GoalSpec
from tests.envs.playing import believing

MANUAL = load_manual("scienceworld")
FAMILIES = ["F1", "F2", "F3", "F4"]
PROMPTS = RULES_FOLDER.parent / "envs" / "scienceworld" / "prompts"

# What the simulator's own `help` prints, and `teleport`, which it adds where that is allowed.
HELP = """
    activate OBJ, close OBJ, connect OBJ to OBJ, deactivate OBJ, disconnect OBJ, dunk OBJ in OBJ,
    eat OBJ, flush OBJ, focus on OBJ, go OBJ, inventory, look around, look at OBJ, look in OBJ,
    mix OBJ, move OBJ to OBJ, open OBJ, pick up OBJ, pour OBJ in OBJ, put down OBJ, read OBJ,
    reset task, task, teleport OBJ, use OBJ on OBJ, wait, wait1
"""
COMMANDS = [command.strip() for command in HELP.split(",")]


def goal(family: str, thing: str, destination: str = "") -> GoalSpec:
    return GoalSpec(sentence="", type=family, object=thing, state=None, count=1,
                    destination=destination, signature="")  # fmt: skip


def ids(lines: list[Any]) -> list[str]:
    return [line["id"] for line in lines]


def test_each_command_of_the_simulator_is_taught_or_left_out_for_a_reason() -> None:
    taught = {re.sub(r" ?\{\w+\}.*", "", rule.syntax) for rule in MANUAL.actions}
    for command in COMMANDS:
        words = re.sub(r" ?OBJ.*", "", command)
        spoken = {"go": "go to", "teleport": "teleport to"}.get(words, words)
        left_out = MANUAL.environment.not_taught.get(words.split()[0])
        assert (spoken in taught) != bool(left_out), command
    # The 24 commands of the paper, and the simulator's other word for `look at`.
    assert len(MANUAL.actions) == 25 and "examine" in taught


def test_focus_and_mix_say_in_plain_words_what_the_simulator_does() -> None:
    texts = {line["id"]: line["text"] for line in
             MANUAL.active(goal("F3", "water"), empty_belief())["environment"]}  # fmt: skip
    assert "first make sure that it is what the task names" in texts["E-ACT-005"]
    assert "needs all ingredients to be in <place>" in texts["O-ACT-015"]
    # The paper warns that the hand becomes empty, which is not so.
    assert "hand" not in texts["O-ACT-015"]
    assert "-100" in texts["E-SEM-003"]
    assert "O-SEM-004" not in texts, "of use where something is measured"
    measuring = MANUAL.active(goal("F2", "water"), empty_belief())["environment"]
    thermometer = next(line["text"] for line in measuring if line["id"] == "O-SEM-004")
    assert thermometer.startswith("CRITICAL: ") and "stays in hand" in thermometer
    actions = {rule.name: rule for rule in MANUAL.actions}
    assert actions["focus"].preconditions == ["visible(object)"]
    assert actions["mix"].preconditions == ["visible(place)", "combined(place)"]
    # A jug that is carried stays in hand: see the trial in the simulator, tests/envs/scienceworld.
    assert not any("holding" in effect for effect in actions["mix"].effects)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_procedure_and_its_focus_rule(family: str) -> None:
    rules = MANUAL.active(goal(family, "plant"), empty_belief())
    own = [rule for rule in ids(rules["domain"]) if not rule.startswith("O-LOC")]
    ours, papers = f"O{family[1:]}-", {"F3-FOCUS-001"}
    assert own and all(rule.startswith(ours) for rule in set(own) - papers)
    focus = "F3-FOCUS-001" if family == "F3" else f"{ours}FOCUS-001"
    assert {f"{ours}PROC-001", focus} <= set(own)
    critical = {line["id"] for line in rules["domain"] if line["text"].startswith("CRITICAL: ")}
    assert focus in critical
    steps = MANUAL.domain.procedures[family]
    assert "focus_object" in steps and {"focus"} <= {
        MANUAL.domain.advances[step] for step in steps if step in MANUAL.domain.advances
    }


def test_every_domain_rule_is_active_for_some_goal() -> None:
    """Of the tasks that are learned from, or of one about a thing that none of them names."""
    seen: set[str] = set()
    for name, science in catalogue().items():
        for variation in (*science.train, *science.dev):
            task = ENVIRONMENT.parse_goal(description(name, variation))
            seen |= set(ids(MANUAL.active(task, empty_belief())["domain"]))
    written = {rule.id for rule in MANUAL.domain.rules}
    assert seen == written | {rule.id for rule in MANUAL.domain.likely_places}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rules_leave_room_for_goal_and_state(family: str) -> None:
    """1200 tokens are the ceiling for all knowledge but memory; four characters are a token."""
    why = "it needs stove in kitchen to be something that can be moved"
    refused = Rejection("pick up stove in kitchen", "was rejected 3 times", why)
    growing = goal(family, "plant")
    text = render_rules(ENVIRONMENT, MANUAL.active(growing, empty_belief(), refused), growing)
    assert len(text) / 4 <= 990


def test_what_goes_without_saying_is_checked_but_not_printed() -> None:
    rules = MANUAL.active(goal("F3", "water"), empty_belief())
    texts = {line["id"]: line["text"] for line in rules["environment"]}
    needs = "needs <object> to be something that can be moved; <place> not to be closed"
    assert texts["O-ACT-007"] == f"move <object> to <place> | {needs}"
    assert not any("in view" in text for id_, text in texts.items() if "-ACT-" in id_)
    assert "in view" in texts["O-SEM-001"]
    unprinted = [rule for rule in MANUAL.actions if rule.id not in texts]
    assert unprinted and not any(rule.text or rule.critical for rule in unprinted)


def test_rules_that_say_nothing_here_stay_out_of_the_prompt_and_in_the_manual() -> None:
    left_out = MANUAL.environment.unprinted
    assert left_out and set(left_out) <= MANUAL.principles | {rule.id for rule in MANUAL.actions}
    rules = MANUAL.active(goal("F3", "water"), empty_belief())
    assert not set(left_out) & {line["id"] for tier in rules.values() for line in tier}


def test_the_system_prompt_lists_every_action_and_no_other() -> None:
    _, _, text = load_system(PROMPTS).partition("The available actions are:\n")
    listed = text.partition("\n\n")[0].split("\n")
    shapes = [re.sub(r"\{[^}]*\}", "{}", line) for line in listed]
    assert sorted(shapes) == sorted(re.sub(r"\{\w+\}", "{}", r.syntax) for r in MANUAL.actions)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, ["OS-005"]),
        ({"visible": ["stove"]}, []),
        ({"location": "kitchen"}, ["OS-005"]),
    ],
)
def test_the_lines_of_the_situation(fields: dict[str, Any], shown: list[str]) -> None:
    assert ids(MANUAL.active(goal("F3", "water"), believing(**fields))["situation"]) == shown


# Answers of the simulator itself: each of these ends the task at -100 ...
FATAL = [
    ("F3", "water", "stove", "F3-FOCUS-001"),
    ("F3", "water", "metal pot", "F3-FOCUS-001"),
    ("F3", "water", "metal pot containing water", "F3-FOCUS-001"),
    ("F3", "water", "agent", "F3-FOCUS-001"),
    ("F3", "tin", "tin cup", "F3-FOCUS-001"),
    ("F3", "water", "orange", "E-SEM-003"),
    ("F3", "lead", "water", "E-SEM-003"),
    ("F3", "lead", "kitchen", "E-SEM-003"),
    ("F3", "sugar water", "sugar", "E-SEM-003"),
    ("F2", "tin", "stove", "O2-FOCUS-001"),
    ("F2", "tin", "ceramic cup containing tin", "O2-FOCUS-001"),
    ("F2", "unknown substance B", "unknown substance C", "E-SEM-003"),
    ("F1", "plant", "table", "O1-FOCUS-001"),
    ("F1", "plant", "flower pot 9 containing apple tree and soil", "O1-FOCUS-001"),
    ("F1", "living thing", "apple", "O1-KIND-001"),
    ("F1", "animal", "red box", "O1-FOCUS-001"),
    ("F4", "animal", "fountain", "O4-FOCUS-001"),
    ("F4", "orange", "seed jar", "O4-FOCUS-001"),
    ("F4", "pea plant", "flower pot 1", "O4-FOCUS-001"),
]
# ... and each of these is right, or at least may be.
RIGHT = [
    ("F3", "water", "water"),
    ("F3", "water", "water in metal pot"),
    ("F3", "water", "substance in metal pot"),
    ("F3", "water", "ice"),
    ("F3", "tin", "liquid tin"),
    ("F3", "sugar water", "sugar water"),
    ("F3", "violet-red paint", "violet paint"),
    ("F3", "violet paint", "paint in cup containing violet paint"),
    ("F2", "tin", "thermometer in inventory"),
    ("F2", "tin", "substance in ceramic cup"),
    ("F2", "tin", "red box"),
    ("F2", "solid unknown substance Y", "solid unknown substance y"),
    ("F2", "wire", "wire in inventory"),
    ("F2", "glass cup", "glass cup"),
    ("F1", "plant", "apple tree"),
    ("F1", "animal", "egg turtle"),
    ("F1", "living thing", "baby baby wolf"),
    ("F1", "non-living thing", "steel table"),
    ("F4", "pea plant", "green box"),
    ("F4", "orange plant", "orange seed in flower pot 2"),
    ("F4", "lemon plant", "lemon tree in the adult stage in self watering flower pot 5"),
    ("F4", "inclined plane", "inclined plane with a platinum surface"),
    ("F4", "giant tortoise", "egg giant tortoise in outside"),
]


@pytest.mark.parametrize(
    ("family", "thing", "focused", "rule"), [*FATAL, *((*row, None) for row in RIGHT)]
)
def test_a_focus_that_costs_100_points_is_forbidden_and_no_other(
    family: str, thing: str, focused: str, rule: str | None
) -> None:
    assert forbidden_by(MANUAL, f"focus on {focused}", goal(family, thing)) == rule


def test_only_the_focus_is_forbidden_and_only_where_the_target_is_known() -> None:
    for action in ("activate stove", "move metal pot to stove", "look at stove", "dance"):
        assert forbidden_by(MANUAL, action, goal("F3", "water")) is None
    assert forbidden_by(MANUAL, "focus on orange", goal("F3", "")) is None
    assert forbidden_by(MANUAL, "focus on stove", goal("F3", "")) == "F3-FOCUS-001"


def test_the_simulator_knows_every_word_of_the_things_in_the_manual() -> None:
    """A thing under another name than the simulator's is never found, and its recipe never used."""
    with zipfile.ZipFile(_jar()) as jar:
        classes = [jar.read(name) for name in jar.namelist() if name.endswith(".class")]
    known = {word.decode() for part in classes for word in re.findall(rb"[a-z-]+", part.lower())}
    named = {name for names in MANUAL.domain.categories.values() for name in names}
    assert len(named) > 100
    assert {name for name in named if not {*name.split()} <= known} == set()


def test_the_printed_recipe_leads_to_every_paint_that_the_procedure_mixes() -> None:
    """Red, yellow and blue give three paints; a paint of two names is made of both."""
    categories = MANUAL.domain.categories
    printed = {"violet": "red blue", "orange": "red yellow", "green": "blue yellow"}
    recipes = {
        name.removeprefix("ingredients of ").removesuffix(" paint"): {*parts}
        for name, parts in categories.items()
        if name.startswith("ingredients of ")
    }
    assert {*recipes} > {*printed}
    rule = next(rule for rule in MANUAL.domain.rules if rule.id == "O3-MIX-001").text
    for paint, parts in recipes.items():
        of = printed.get(paint, paint.replace("-", " ")).split()
        assert parts == {f"{colour} paint" for colour in of}
        assert paint not in printed or f"{'+'.join(of)} {paint}" in " ".join(rule.split())
