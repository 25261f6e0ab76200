from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.goals import parse_goal
from rpms.envs.alfworld.tasks import (
    DEFAULT_COUNT,
    GENERATED,
    OFFICIAL,
    data_root,
    ensure_games,
    list_tasks,
)
from rpms.envs.base import Task
from tests.refusal import refused


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ALFWORLD_DATA folder of our own, with six games passed off as valid_unseen."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    for file in ensure_games("generated_seen", 6):
        target = tmp_path / "json_2.1.1" / "valid_unseen" / file.parent.parent.name
        shutil.copytree(file.parent, target / file.parent.name)
    return tmp_path


def games(data: Path) -> list[Path]:
    return sorted(data.glob("json_2.1.1/valid_unseen/*/*/game.tw-pddl"))


def test_the_official_seen_split(
    alfworld_data: Path, have_official: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(alfworld_data))
    if not have_official:
        with refused("'valid_seen'"):
            list_tasks("valid_seen")
        return
    found = list_tasks("valid_seen")
    assert Counter(parse_goal(task["goal"])["type"] for task in found) == {
        "look_at_obj_in_light": 13,
        "pick_and_place_simple": 35,
        "pick_clean_then_place_in_recep": 27,
        "pick_cool_then_place_in_recep": 25,
        "pick_heat_then_place_in_recep": 16,
        "pick_two_obj_and_place": 24,
    }
    assert len(found) == 140
    assert len(list_tasks("valid_train")) == 200


def check_list(found: list[Task], split: str) -> None:
    assert [task["index"] for task in found] == list(range(len(found)))
    assert len({task["id"] for task in found}) == len(found)
    for task in found:
        file = Path(task["source"])
        assert file.is_file()
        assert task["id"] == f"{file.parent.parent.name}/{file.parent.name}"
        assert file.parent.name in task["id"]
        assert (task["env"], task["split"]) == ("alfworld", split)
        assert f"Your task is to: {task['goal']}" in json.loads(file.read_text())["grammar"]
    assert json.loads(json.dumps(found)) == found


def test_a_list_is_sorted_complete_always_the_same_and_only_reads(data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    found = list_tasks("valid_unseen")
    check_list(found, "valid_unseen")
    assert [task["source"] for task in found] == [str(file) for file in games(data)]
    assert list_tasks("valid_unseen") == found
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before


@pytest.mark.parametrize("split", GENERATED)
def test_generated_splits_have_sixty_games_and_as_many_as_asked_for(split: str) -> None:
    found = list_tasks(split)
    assert len(found) == DEFAULT_COUNT == 60
    check_list(found, split)
    assert list_tasks(split, 7) == found[:7]
    more = list_tasks(split, 66)
    assert more[:60] == found
    check_list(more, split)


@pytest.mark.parametrize("split", OFFICIAL)
def test_missing_games_say_exactly_what_to_do(
    split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    folder = str(tmp_path / "json_2.1.1" / split)
    with refused(f"'{split}'", folder, "alfworld-download", "ALFWORLD_DATA", "generated_seen"):
        list_tasks(split)


def test_an_unknown_split_lists_the_known_ones() -> None:
    with refused("'valid_sen'", *ENVIRONMENT.splits()):
        list_tasks("valid_sen")


def test_the_data_folder_is_found_as_alfworld_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert data_root() == tmp_path / ".cache" / "alfworld"
    monkeypatch.setenv("ALFWORLD_DATA", "~/games")
    assert data_root() == tmp_path / "games"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"grammar": "gramm', "cannot read game file"),
        (b"", "cannot read game file"),
        (None, "fetch it again"),  # cut off in the middle
        (b"\xff\xfe\x00", "cannot read game file"),
        (b"[1, 2]", "is not an ALFWorld game"),
        (b"{}", "is not an ALFWorld game"),
        (b'{"grammar": 5}', "is not an ALFWorld game"),
        (b'{"grammar": "grammar :: {}", "solvable": true}', "its grammar states no task"),
    ],
)
def test_a_damaged_game_is_named(data: Path, content: bytes | None, complaint: str) -> None:
    damaged = games(data)[2]
    damaged.write_bytes(damaged.read_bytes()[:5000] if content is None else content)
    with refused(complaint, str(damaged)):
        list_tasks("valid_unseen")


def test_unsolvable_games_are_left_out(data: Path) -> None:
    hopeless = games(data)[1]
    game = json.loads(hopeless.read_text())
    hopeless.write_text(json.dumps({**game, "solvable": False}))
    found = list_tasks("valid_unseen")
    assert len(found) == 5
    assert str(hopeless) not in {task["source"] for task in found}
    check_list(found, "valid_unseen")
    # A count is a number of tasks, not of files.
    assert len(list_tasks("valid_unseen", 3)) == 3


def test_movable_receptacles_and_slices_are_left_out_as_alfworld_does(data: Path) -> None:
    folder = data / "json_2.1.1" / "valid_unseen"
    source = games(data)[0].parent
    for name in (
        "pick_and_place_with_movable_recep-Mug-Spoon-Shelf-501/trial_X",
        "pick_heat_then_place_in_recep-AppleSliced-None-Fridge-503/trial_X",
    ):
        shutil.copytree(source, folder / name)
    assert len(list_tasks("valid_unseen")) == 6
