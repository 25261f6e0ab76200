from __future__ import annotations

import random
import re
from types import SimpleNamespace

import pytest

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld import homes as home_writer
from rpms.envs.alfworld.homes import Home, draw_home

TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)


def homes(count: int) -> list[Home]:
    return [draw_home(f"test:{n}", TYPES[n % 6], n % 2, n % 2) for n in range(count)]


def ids_of(home: Home) -> list[str]:
    return [one.id for one in home.items] + [one.id for one in home.receptacles]


def facts_of(problem: str, predicate: str) -> list[tuple[str, ...]]:
    init = problem[problem.index("(:init") : problem.index("(:goal")]
    return [tuple(found.split()) for found in re.findall(rf"\({predicate} ([^()]+)\)", init)]


@pytest.mark.usefixtures("stock_textworld")
@pytest.mark.parametrize("number", range(12))
def test_names_are_those_of_alfworld(number: int) -> None:
    from alfworld.agents.utils.misc import Demangler

    ids = ids_of(homes(number + 1)[number])
    random.Random(number).shuffle(ids)
    infos = {one: SimpleNamespace(id=one.lower()) for one in ids}
    theirs = Demangler(game_infos=infos)
    expected = {one.lower(): theirs.demangle_alfred_name(one.lower()) for one in ids}
    assert home_writer.display_names(ids) == expected


def test_basins_are_told_from_the_fittings_they_belong_to() -> None:
    names = home_writer.display_names(
        ["Sink_bar__plus_01_dot_00", "Sink_bar__plus_01_dot_00_bar_SinkBasin"]
    )
    assert sorted(names.values()) == ["sink 1", "sinkbasin 1"]


def test_everything_is_declared_once_and_described() -> None:
    for home in homes(24):
        text = home_writer.problem(home, "trial")
        declared = re.findall(r"^ +(\w+) - (?:object|receptacle)$", text, re.MULTILINE)
        assert sorted(declared) == sorted(ids_of(home))
        assert len(set(declared)) == len(declared)
        assert {args[0] for args in facts_of(text, "objectType")} == {i.id for i in home.items}
        assert facts_of(text, "atLocation") == [("agent1", home.start)]
        assert "(opened " not in text
        assert text.count("(") == text.count(")")


def test_traits_are_those_of_the_package() -> None:
    home = next(home for home in homes(24) if home.room == "Kitchen")
    text = home_writer.problem(home, "trial")
    kinds = {one.id: one.kind for one in home.items}
    for predicate, trait in (("heatable", "Heatable"), ("sliceable", "Sliceable")):
        marked = {args[0] for args in facts_of(text, predicate)}
        assert marked == {
            one for one, kind in kinds.items() if kind in alfworld_package.with_trait(trait)
        }
        assert marked
    for receptacle, kind in facts_of(text, "canContain"):
        assert kind.removesuffix("Type") in alfworld_package.can_hold(
            receptacle.removesuffix("Type")
        )


def test_plans_open_what_is_closed_and_walk_only_when_needed() -> None:
    opened = 0
    for home in homes(120):
        plan = home_writer.walkthrough(home, "move")
        assert plan[0].startswith("go to ")
        names = home_writer.display_names(ids_of(home))
        closed = {names[one.id.lower()] for one in home.receptacles if one.opens}
        spots = {names[one.id.lower()]: one.spot for one in home.receptacles}
        here = home.start
        for command in plan:
            if found := re.match(r"go to (.+)", command):
                assert spots[found[1]] != here
                here = spots[found[1]]
            elif found := re.match(r"open (.+)", command):
                closed.remove(found[1])
                opened += 1
            elif found := re.match(r"(?:take .+ from|move .+ to) (.+)", command):
                assert found[1] not in closed
                assert spots[found[1]] == here
    assert opened > 20
