"""Which names count as one kind, over all names of the three worlds: each match is meant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.memory_store import MemoryIndex
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import GoalSignature
from rpms.vocabulary.naming import bare_name, refers_to, same_kind

# Splits that may be read: their tasks name what goals of the world are about.
SPLITS = {"alfworld": ["generated_seen"], "scienceworld": ["train", "dev"], "telecom": ["train"]}
LABELLED = "individuals of one kind, told apart by a letter that every episode draws anew"
# Different names that match without a category, and why.
MEANT = {
    "solid unknown substance": LABELLED,
    "liquid unknown substance": LABELLED,
    "unknown substance": LABELLED,
    "unknown plant": LABELLED,
}


@cache
def goals(env: str) -> list[GoalSignature]:
    world = get_environment(env)
    tasks = chain.from_iterable(world.tasks(s, 200 if env == "alfworld" else None)
                                for s in SPLITS[env])  # fmt: skip
    printed = {world.parse_goal(task["goal"])["signature"] for task in tasks}
    return [world.read_signature(text) for text in sorted(printed)]


@cache
def names(env: str) -> list[str]:
    """Objects, places and kinds of the manual, what goals are about, and the tools."""
    manual = load_manual(env)
    tables = (manual.facts.affordances, manual.facts.contains, manual.domain.categories)
    found = {kind for table in tables for kinds in table.values() for kind in kinds}
    found |= {*manual.facts.contains, *(rule.name for rule in manual.actions)}
    for goal in goals(env):
        found |= {goal.object, goal.destination}
    return sorted(found - {""})


def matching(env: str) -> Iterator[tuple[str, str]]:
    """Pairs of different names by which an entry is recalled, the rest of the goal being equal."""
    index = MemoryIndex(categories=load_manual(env).domain.categories)
    for name, other in combinations(names(env), 2):
        one, two = (GoalSignature("find", word, "desk") for word in (name, other))
        if index.nearness(one, two) >= RunContext().theta:
            yield name, other


@pytest.mark.parametrize("env", SPLITS)
def test_different_names_match_by_a_category_or_for_a_reason_given_here(env: str) -> None:
    assert len(names(env)) > 40
    manual, unmeant = load_manual(env), []
    for name, other in matching(env):
        if manual.categories_of(name) & manual.categories_of(other):
            continue
        kind = " ".join(word for word in name.split() if len(word) > 1)
        if kind not in MEANT or kind != " ".join(w for w in other.split() if len(w) > 1):
            unmeant.append((name, other))
    assert unmeant == []


def test_kinds_of_the_worlds_that_only_sound_alike_are_never_one() -> None:
    """Words of another name, and a word more: what a likeness of characters takes for one."""
    everything = sorted({name for env in SPLITS for name in names(env)})
    unlike = [
        ("living thing", "non-living thing"), ("orange paint", "red-orange paint"),
        ("violet paint", "violet-red paint"), ("pea plant", "pear plant"),
        ("pear plant", "peach plant"), ("orange paint", "orange plant"),
    ]  # fmt: skip
    assert {*chain(*unlike)} <= {*everything}
    assert [pair for pair in unlike if same_kind(*pair)] == []
    qualified = [
        (name, other) for name in everything for other in everything
        if name != other and other.endswith((f" {name}", f"-{name}"))
    ]  # fmt: skip
    assert len(qualified) > 20 and not any(same_kind(*pair) for pair in qualified)


@pytest.mark.parametrize("name", ["mug", "box", "cherry", "shelf", "knife", "glass", "tomato"])
def test_a_plural_a_number_and_a_letter_make_no_other_kind(name: str) -> None:
    plural = {"box": "boxes", "cherry": "cherries", "shelf": "shelves", "knife": "knives",
              "glass": "glasses", "tomato": "tomatoes"}.get(name, f"{name}s")  # fmt: skip
    for other in (plural, f"{name} 3", f"{plural} 3", f"{name} B", name.upper()):
        assert same_kind(name, other) and same_kind(other, name)
        assert same_kind(f"red {name}", f"red {other}") and not same_kind(f"red {name}", other)
    assert not same_kind("plan", "planes") and not same_kind("pea", "pear")


@pytest.mark.parametrize("env", SPLITS)
def test_a_name_that_begins_like_the_goal_s_object_does_not_mean_it(env: str) -> None:
    """Ice cream is no ice, a tin cup no tin, orange juice no orange."""
    objects = {goal.object for goal in goals(env)} - {""}
    meant = {
        (name, target) for name in names(env) for target in objects
        if name != target and refers_to(name, target)
    }  # fmt: skip
    wrong = {
        (name, target) for name, target in meant
        # The target with more said of it, or short for it; a plant is its fruit, grown.
        if not f" {bare_name(target)}".endswith(f" {name}")
        and not name.endswith((target, f"{target} plant", f"{target} tree", f"{target} seed"))
    }  # fmt: skip
    assert wrong == set()
