"""The tables of Tier 3 against what the game itself says."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld.tasks import read_game
from rpms.envs.manuals import load_manual

WORLD = load_manual("alfworld").facts
# affordance of the manual -> predicate of the game
SAID_BY_THE_GAME = {
    "heatable": "heatable",
    "coolable": "coolable",
    "cleanable": "cleanable",
    "sliceable": "sliceable",
    "switchable": "toggleable",
    "portable": "pickupable",
}


def kinds(names: frozenset[str]) -> set[str]:
    """Slices are things of their own in the package, but no game has them from the start."""
    return {name.lower() for name in names if not name.endswith("Sliced")}


def test_affordances_are_those_of_the_package() -> None:
    for affordance, predicate in SAID_BY_THE_GAME.items():
        if affordance != "portable":
            package = kinds(alfworld_package.with_trait(predicate.capitalize()))
            assert WORLD.affordances[affordance] == package


def test_places_take_what_the_package_lets_them_take() -> None:
    from alfworld.gen.constants import VAL_RECEPTACLE_OBJECTS

    places = {name for name in VAL_RECEPTACLE_OBJECTS if name not in alfworld_package.containers()}
    assert WORLD.contains.keys() == {name.lower() for name in places}
    for name in places:
        assert WORLD.contains[name.lower()] == kinds(alfworld_package.can_hold(name)), name


def action(name: str) -> str:
    """The PDDL of one action, without its comments."""
    domain = re.sub(r";.*", "", alfworld_package.domain("move"))
    return domain.split(f"(:action {name}")[1].split("(:action")[0]


def test_tools_are_those_of_the_rules_of_the_game() -> None:
    blades = re.findall(r"\(objectType \?ko (\w+)Type\)", action("SliceObject"))
    assert WORLD.affordances["blade"] == {kind.lower() for kind in blades}
    needs = {rule.name: rule.needs for rule in load_manual("alfworld").actions}
    for verb in ("heat", "cool", "clean"):
        (tool,) = [need.arguments[1] for need in needs[verb] if need.name == "kind"]
        tools = re.findall(r"\(receptacleType \?r (\w+)Type\)", action(f"{verb.title()}Object"))
        assert [kind.lower() for kind in tools] == [tool]


def initial_facts(file: Path) -> dict[str, list[list[str]]]:
    problem = read_game(file)["pddl_problem"]
    facts: dict[str, list[list[str]]] = defaultdict(list)
    start = problem[problem.index("(:init") : problem.index("(:goal")]
    for name, arguments in re.findall(r"\((\w+)((?: +[^\s()]+)+)\s*\)", start):
        facts[name.lower()].append(arguments.split())
    return facts


def typed(rows: list[list[str]]) -> dict[str, str]:
    return {name: kind.removesuffix("Type").lower() for name, kind in rows}


def test_every_game_agrees(
    official_games: list[Path], put_games: list[Path], have_official: bool
) -> None:
    wrong: set[tuple[str, ...]] = set()
    compared = 0
    for file in [*official_games, *put_games]:
        facts = initial_facts(file)
        things, places = typed(facts["objecttype"]), typed(facts["receptacletype"])
        for affordance, predicate in SAID_BY_THE_GAME.items():
            true = {row[0] for row in facts[predicate]}
            for thing, kind in things.items():
                compared += 1
                if (kind in WORLD.affordances[affordance]) != (thing in true):
                    wrong.add((affordance, kind))
        allowed = {
            (place.removesuffix("Type").lower(), thing.removesuffix("Type").lower())
            for place, thing in facts["cancontain"]
        }
        for place in set(places.values()):
            for kind in set(things.values()):
                compared += 1
                if (kind in WORLD.contains[place]) != ((place, kind) in allowed):
                    wrong.add(("contains", place, kind))
    # Footstools can be lifted in some homes and not in others, and stand on the floor in all.
    assert wrong <= {("portable", "footstool")}
    assert compared >= (100_000 if have_official else 10_000)
