from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rpms.envs.alfworld.alfworld_package import Dialect
from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.tasks import GENERATED, Game, Split, ensure_games, games_root, sample_home
from rpms.vocabulary.errors import RpmsError

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

ensure_games("generated_seen", 12, root=Path(sys.argv[1]))
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
def default_games() -> list[Game]:
    return [sample_home(split, index) for split in GENERATED for index in range(60)]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("split", "dialect", "numbers"),
    [
        *(
            (split, "move", range(first, first + 20))
            for split in GENERATED
            for first in (0, 20, 40)
        ),
        *((split, "put", range(6)) for split in GENERATED),
    ],
)
def test_every_plan_wins_in_the_real_engine(
    split: Split, dialect: Dialect, numbers: range, tmp_path: Path
) -> None:
    paths = ensure_games(split, numbers.stop, dialect, tmp_path)
    engine = GameEngine()
    for index in numbers:
        game = sample_home(split, index, dialect)
        engine.load(paths[index])
        state = engine.reset()
        assert f"Your task is to: {game.goal}." in state.feedback
        assert engine.walkthrough == list(game.walkthrough)
        for command in game.walkthrough:
            assert not state.won, f"{game.folder} is won before {command!r}"
            assert command in state.admissible_commands, f"{game.folder}: {command!r}"
            state = engine.step(command)
        assert state.won, game.folder
    engine.close()


@pytest.mark.engine
def test_older_wording_speaks_as_the_older_games_did(tmp_path: Path) -> None:
    (path,) = ensure_games("generated_seen", 1, "put", tmp_path)
    engine = GameEngine()
    engine.load(path)
    engine.reset()
    said = [engine.step(command).feedback for command in engine.walkthrough or []]
    assert re.match(r"You arrive at loc \d+\. ", said[0])
    assert re.fullmatch(r"You put the \w+ \d in/on the \w+ \d\.", said[-1])
    assert engine.step("help").feedback == "Nothing happens."
    engine.close()


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_games_are_the_same_everywhere(hash_seed: str) -> None:
    output, _ = start(DIGEST_PROGRAM, PYTHONHASHSEED=hash_seed).communicate(timeout=60)
    assert output.strip() == DIGEST


def test_types_take_turns_and_both_wordings_occur(default_games: list[Game]) -> None:
    per_type = Counter((game.split, game.task_type) for game in default_games)
    assert len(per_type) == 12
    assert set(per_type.values()) == {10}
    for split in GENERATED:
        games = [game for game in default_games if game.split == split]
        for first in range(0, 55):
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
    layouts = [{sample_home(split, index).layout for index in range(300)} for split in GENERATED]
    assert layouts[0].isdisjoint(layouts[1])
    # Rooms differ within a split too.
    assert min(map(len, layouts)) > 250


def test_folders_are_named_as_the_official_ones(default_games: list[Game]) -> None:
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


def test_the_same_home_in_both_wordings() -> None:
    new, old = (sample_home("generated_unseen", 9, dialect) for dialect in ("move", "put"))
    new_game, old_game = json.loads(new.game_file), json.loads(old.game_file)
    assert new_game["pddl_problem"] == old_game["pddl_problem"]
    assert new.walkthrough[-1].startswith("move ")
    assert old.walkthrough[-1] == re.sub(
        r"move (.+) to (.+)", r"put \1 in/on \2", new.walkthrough[-1]
    )


def test_any_number_of_games(tmp_path: Path) -> None:
    paths = ensure_games("generated_seen", 100, root=tmp_path)
    assert len(set(paths)) == 100
    assert [path.parent.name for path in paths] == [f"trial_GS{n:04}" for n in range(100)]
    for path in paths:
        assert path.parents[3] == tmp_path / "json_2.1.1"
        assert json.loads(path.read_text())["solvable"] is True
        assert (path.parent / "traj_data.json").is_file()


def test_a_second_call_writes_nothing_and_damage_is_repaired(tmp_path: Path) -> None:
    paths = ensure_games("generated_seen", 3, root=tmp_path)
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
        process.communicate(timeout=60)
        assert process.returncode == 0
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.name for path in files} == {"game.tw-pddl", "traj_data.json"}
    assert len(files) == 24
    for index, path in enumerate(ensure_games("generated_seen", 12, root=tmp_path)):
        assert path.read_text() == sample_home("generated_seen", index).game_file


def test_cache_folder_is_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    (path,) = ensure_games("generated_unseen", 1)
    assert path.is_relative_to(tmp_path / "generated")
    assert path.is_relative_to(games_root("move"))
    assert games_root("move") != games_root("put")


def test_bad_requests_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"unknown generated split 'valid_seen'; choose"):
        sample_home("valid_seen", 0)  # type: ignore[arg-type]
    with pytest.raises(RpmsError, match=r"unknown game wording 'lay'; choose move or put"):
        sample_home("generated_seen", 0, "lay")  # type: ignore[arg-type]
    with pytest.raises(RpmsError, match=r"numbered from 0"):
        sample_home("generated_seen", -1)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(RpmsError, match=r"set RPMS_CACHE to a folder you can write to"):
        ensure_games("generated_seen", 1, root=blocked)
