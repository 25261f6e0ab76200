"""Generated homes: drawn, written as games of the alfworld package, and won by their own plans."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld.alfworld_package import DIALECTS, Dialect
from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.game_file import display_names
from rpms.envs.alfworld.homes import Home, data, draw_home, problem
from rpms.envs.alfworld.tasks import (
    GENERATED,
    GeneratedGame,
    Split,
    ensure_games,
    games_root,
    sample_home,
)
from tests.refusal import refused

REPOSITORY = Path(__file__).resolve().parents[3]

# Of the first twelve games of both splits in both wordings. Generated games are part of what
# users compare results on: when this changes on purpose, raise GENERATOR with it.
DIGEST = "1e5fae54c20bed0de135b029134e3a72798da05c76db495bdf88052040eaac77"

DIGEST_PROGRAM = """
import hashlib
from rpms.envs.alfworld.tasks import GENERATED, sample_home

digest = hashlib.sha256()
for split in GENERATED:
    for dialect in ("move", "put"):
        for index in range(12):
            game = sample_home(split, index, dialect)
            for text in (game.folder, game.game_file, game.trajectory_file):
                digest.update(text.encode())
print(digest.hexdigest())
"""

WRITE_PROGRAM = """
import sys
from pathlib import Path
from rpms.envs.alfworld.tasks import ensure_games

ensure_games("generated_seen", 6, root=Path(sys.argv[1]))
"""


def start(program: str, *args: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *args],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def homes() -> list[Home]:
    types = list(data()["tasks"])
    return [draw_home(f"test:{n}", types[n % 6], n // 6 % 2, n % 2) for n in range(120)]


@pytest.fixture(scope="module")
def default_games() -> list[GeneratedGame]:
    return [sample_home(split, index) for split in GENERATED for index in range(30)]


@pytest.mark.engine
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("split", GENERATED)
def test_every_plan_wins_in_the_real_engine(split: Split, dialect: Dialect, tmp_path: Path) -> None:
    engine = GameEngine()
    for index, path in enumerate(ensure_games(split, 12, dialect, tmp_path)):
        game = sample_home(split, index, dialect)
        engine.load(path)
        state = engine.reset()
        assert f"Your task is to: {game.goal}." in state.feedback
        assert engine.game.walkthrough == list(game.walkthrough)
        for command in game.walkthrough:
            assert not state.won, f"{game.folder} is won before {command!r}"
            assert command in state.admissible_commands, f"{game.folder}: {command!r}"
            state = engine.step(command)
        assert state.won, game.folder


@pytest.mark.engine
def test_older_wording_speaks_as_the_older_games_did(tmp_path: Path) -> None:
    (path,) = ensure_games("generated_seen", 1, "put", tmp_path)
    engine = GameEngine()
    engine.load(path)
    engine.reset()
    said = [engine.step(command).feedback for command in engine.game.walkthrough or []]
    assert re.match(r"You arrive at loc \d+\. ", said[0])
    assert re.fullmatch(r"You put the \w+ \d in/on the \w+ \d\.", said[-1])
    assert engine.step("help").feedback == "Nothing happens."


def test_games_are_the_same_everywhere() -> None:
    output, _ = start(DIGEST_PROGRAM, PYTHONHASHSEED="4242").communicate()
    assert output.strip() == DIGEST


def test_types_take_turns_and_both_wordings_occur(default_games: list[GeneratedGame]) -> None:
    per_type = Counter((game.split, game.task_type) for game in default_games)
    assert len(per_type) == 12
    assert set(per_type.values()) == {5}
    for split in GENERATED:
        games = [game for game in default_games if game.split == split]
        for first in range(25):
            assert len({game.task_type for game in games[first : first + 6]}) == 6
    openings = {
        "pick_and_place_simple": {"put a", "put some"},
        "look_at_obj_in_light": {"look at", "examine the"},
        "pick_clean_then_place_in_recep": {"put a clean", "clean some"},
        "pick_heat_then_place_in_recep": {"put a hot", "heat some"},
        "pick_cool_then_place_in_recep": {"put a cool", "cool some"},
        "pick_two_obj_and_place": {"put two", "find two"},
    }
    for task_type, starts in openings.items():
        goals = [game.goal for game in default_games if game.task_type == task_type]
        assert all(any(goal.startswith(f"{one} ") for goal in goals) for one in starts)
        assert all(goal.startswith(tuple(starts)) for goal in goals)


def test_splits_never_share_a_layout() -> None:
    layouts = [{sample_home(split, index).layout for index in range(120)} for split in GENERATED]
    assert layouts[0].isdisjoint(layouts[1])
    # Rooms differ within a split too.
    assert min(map(len, layouts)) > 100


def test_folders_are_named_as_the_official_ones(default_games: list[GeneratedGame]) -> None:
    numbers = []
    for game in default_games:
        trajectory = json.loads(game.trajectory_file)
        found = re.fullmatch(r"(\w+)-(\w+)-None-(\w+)-(\d+)/(trial_G[SU]\d{4})", game.folder)
        assert found, game.folder
        task_type, obj, target, number, trial = found.groups()
        params = trajectory["pddl_params"]
        assert task_type == trajectory["task_type"] == game.task_type
        assert trial == trajectory["task_id"]
        assert obj == params["object_target"]
        assert target == params["parent_target"] + params["toggle_target"]
        assert params["mrecep_target"] == ""
        assert params["object_sliced"] is False
        numbers.append(int(number))
    assert min(numbers) >= 500
    assert len(set(numbers)) == len(numbers)


def test_a_second_call_writes_nothing_and_damage_is_repaired(tmp_path: Path) -> None:
    paths = ensure_games("generated_seen", 3, root=tmp_path)
    assert [path.parent.name for path in paths] == [f"trial_GS{n:04}" for n in range(3)]
    assert all(path.parents[3] == tmp_path / "json_2.1.1" for path in paths)
    times = [path.stat().st_mtime_ns for path in paths]
    intact = paths[1].read_bytes()
    assert ensure_games("generated_seen", 3, root=tmp_path) == paths
    assert [path.stat().st_mtime_ns for path in paths] == times
    paths[1].write_bytes(intact[:100])
    ensure_games("generated_seen", 3, root=tmp_path)
    assert paths[1].read_bytes() == intact


def test_several_processes_may_write_at_once(tmp_path: Path) -> None:
    running = [start(WRITE_PROGRAM, str(tmp_path)) for _ in range(3)]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.name for path in files} == {"game.tw-pddl", "traj_data.json"}
    assert len(files) == 12
    for index, path in enumerate(ensure_games("generated_seen", 6, root=tmp_path)):
        assert path.read_text() == sample_home("generated_seen", index).game_file


def test_cache_folder_is_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    (path,) = ensure_games("generated_unseen", 1)
    assert path.is_relative_to(tmp_path / "generated")
    assert path.is_relative_to(games_root("move"))
    assert games_root("move") != games_root("put")


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with refused("RPMS_CACHE"):
        ensure_games("generated_seen", 1, root=blocked)


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


def test_rooms_are_plausible_and_everything_lies_where_it_may(homes: list[Home]) -> None:
    for home in homes:
        fewest, most = data()["rooms"][home.room]["size"]
        assert fewest <= len(home.receptacles) <= most
        objects = Counter(item.kind for item in home.items if item.portable)
        assert 8 <= sum(objects.values()) <= 60
        assert max(objects.values()) <= 3
        ids = [one.lower() for one in ids_of(home)]
        assert len(set(ids)) == len(ids)
        spots = {place.spot for place in home.receptacles}
        assert home.start not in spots
        assert len(home.layout.split()) == len(spots)
        assert home.layout.count("+") == len(home.receptacles) - len(spots)
        for item in home.items:
            if item.inside is None:
                assert not item.portable
                continue
            assert item.inside in home.receptacles
            assert item.spot == item.inside.spot
            assert not item.portable or item.kind in alfworld_package.can_hold(item.inside.kind)
    assert {home.room for home in homes} == set(data()["rooms"])


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


def ids_of(home: Home) -> list[str]:
    return [one.id for one in home.items] + [one.id for one in home.receptacles]


def facts_of(problem: str, predicate: str) -> list[tuple[str, ...]]:
    init = problem[problem.index("(:init") : problem.index("(:goal")]
    return [tuple(found.split()) for found in re.findall(rf"\({predicate} ([^()]+)\)", init)]


@pytest.mark.usefixtures("stock_textworld")
@pytest.mark.parametrize("number", range(4))
def test_names_are_those_of_alfworld(number: int, homes: list[Home]) -> None:
    from alfworld.agents.utils.misc import Demangler

    ids = ids_of(homes[number])
    random.Random(number).shuffle(ids)
    infos = {one: SimpleNamespace(id=one.lower()) for one in ids}
    theirs = Demangler(game_infos=infos)
    expected = {one.lower(): theirs.demangle_alfred_name(one.lower()) for one in ids}
    assert display_names(ids) == expected


def test_basins_are_told_from_the_fittings_they_belong_to() -> None:
    names = display_names(["Sink_bar__plus_01_dot_00", "Sink_bar__plus_01_dot_00_bar_SinkBasin"])
    assert sorted(names.values()) == ["sink 1", "sinkbasin 1"]


def test_everything_is_declared_once_and_described(homes: list[Home]) -> None:
    for home in homes[:24]:
        text = problem(home, "trial")
        declared = re.findall(r"^ +(\w+) - (?:object|receptacle)$", text, re.MULTILINE)
        assert sorted(declared) == sorted(ids_of(home))
        assert len(set(declared)) == len(declared)
        assert {args[0] for args in facts_of(text, "objectType")} == {i.id for i in home.items}
        assert facts_of(text, "atLocation") == [("agent1", home.start)]
        assert "(opened " not in text
        assert text.count("(") == text.count(")")


def test_traits_are_those_of_the_package(homes: list[Home]) -> None:
    home = next(home for home in homes[:24] if home.room == "Kitchen")
    text = problem(home, "trial")
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


def test_an_unknown_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alfworld_package, "_data_file", lambda name: "something else")
    for read in (alfworld_package.grammar, alfworld_package.domain):
        with refused("alfworld==0.4.2"):
            read.__wrapped__("put")


def test_a_missing_package_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(alfworld_package, "import_module", missing)
    with refused("alfworld", "make setup"):
        alfworld_package.goal_sentence("pick_two_obj_and_place", 1, "CellPhone", "Bed", "")
