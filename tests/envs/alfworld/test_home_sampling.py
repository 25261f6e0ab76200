from __future__ import annotations

from collections import Counter

import pytest

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld.homes import Home, data, draw_home


@pytest.fixture(scope="module")
def homes() -> list[Home]:
    types = list(data()["tasks"])
    return [draw_home(f"test:{n}", types[n % 6], n // 6 % 2, n % 2) for n in range(240)]


def test_data_respects_what_the_game_allows() -> None:
    for kind, places in data()["places"].items():
        for place in places:
            assert kind in alfworld_package.can_hold(place), f"a {place} cannot hold a {kind}"
    for name, room in data()["rooms"].items():
        for kind in room["objects"]:
            likely = set(data()["places"][kind]) & set(room["receptacles"])
            assert likely, f"nowhere to put a {kind} in a {name}"
        for _, stands in [*room["fixtures"].values(), *room["lamps"].values()]:
            assert set(stands) <= set(room["receptacles"])
        for first, second, _ in room["together"]:
            assert {first, second} <= set(room["receptacles"])
    assert set(data()["opens"]) | set(data()["single"]) <= {
        kind for room in data()["rooms"].values() for kind in room["receptacles"]
    }
    for task in data()["tasks"].values():
        if device := task.get("changed_by"):
            assert all(device in data()["rooms"][room]["receptacles"] for room in task["rooms"])


def test_rooms_have_a_plausible_size(homes: list[Home]) -> None:
    for home in homes:
        fewest, most = data()["rooms"][home.room]["size"]
        assert fewest <= len(home.receptacles) <= most
        objects = Counter(item.kind for item in home.items if item.portable)
        assert 8 <= sum(objects.values()) <= 60
        assert max(objects.values()) <= 3
    assert {home.room for home in homes} == set(data()["rooms"])


def test_everything_lies_where_it_may(homes: list[Home]) -> None:
    for home in homes:
        for item in home.items:
            if item.inside is None:
                assert not item.portable
                continue
            assert item.inside in home.receptacles
            assert item.spot == item.inside.spot
            assert not item.portable or item.kind in alfworld_package.can_hold(item.inside.kind)


def test_ids_are_unique_and_the_start_is_out_of_reach(homes: list[Home]) -> None:
    for home in homes:
        ids = [one.id for one in home.receptacles] + [one.id for one in home.items]
        assert len({one.lower() for one in ids}) == len(ids)
        assert home.start not in {one.spot for one in home.receptacles}


def test_goals_are_possible_and_not_met(homes: list[Home]) -> None:
    for home in homes:
        goal = home.goal
        wanted = [item for item in home.items if item.kind == goal.object]
        assert len(wanted) >= (2 if goal.task_type == "pick_two_obj_and_place" else 1)
        kinds = {one.kind for one in home.receptacles}
        if goal.toggle:
            (lamp,) = [item for item in home.items if item.kind == goal.toggle]
            assert lamp.inside is not None
            assert goal.toggle in alfworld_package.with_trait("Toggleable")
            continue
        assert goal.parent in kinds
        assert goal.object in alfworld_package.can_hold(goal.parent)
        assert goal.parent != goal.changed_by
        if goal.changed_by:
            assert goal.changed_by in kinds
            assert goal.object in alfworld_package.with_trait(
                data()["tasks"][goal.task_type]["needs"]
            )
        else:
            assert all(item.inside and item.inside.kind != goal.parent for item in wanted)


def test_searching_is_needed(homes: list[Home]) -> None:
    places = [item.inside for home in homes for item in home.items if item.kind == home.goal.object]
    hidden = sum(1 for one in places if one and one.opens)
    assert 0.15 < hidden / len(places) < 0.5
    odd = [
        item
        for home in homes
        for item in home.items
        if item.portable and item.inside and item.inside.kind not in data()["places"][item.kind]
    ]
    everything = sum(item.portable for home in homes for item in home.items)
    assert 0.005 < len(odd) / everything < 0.1


def test_some_spots_serve_several_receptacles(homes: list[Home]) -> None:
    spots = Counter((n, one.spot) for n, home in enumerate(homes) for one in home.receptacles)
    shared = [spot for spot, count in spots.items() if count > 1]
    assert 0.05 < len(shared) / len(spots) < 0.2
    for home in homes:
        distinct = {one.spot for one in home.receptacles}
        assert len(home.layout.split()) == len(distinct)
        assert home.layout.count("+") == len(home.receptacles) - len(distinct)


def test_only_what_has_a_door_opens(homes: list[Home]) -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    for home in homes:
        seen.update((one.kind, one.opens) for one in home.receptacles)
    assert {kind for kind, opens in seen if opens} == set(data()["opens"])
    assert not seen["Fridge", False]
    assert not seen["Microwave", False]
    for kind in ("Cabinet", "Drawer"):
        assert seen[kind, True] > seen[kind, False] > 0


def test_layouts_split_into_two_halves_that_never_meet() -> None:
    halves = [
        {draw_home(f"any:{n}", "pick_and_place_simple", 0, side).layout for n in range(300)}
        for side in (0, 1)
    ]
    assert halves[0].isdisjoint(halves[1])
