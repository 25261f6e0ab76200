"""Task lists: official splits from disk, generated homes from the cache."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.envs.alfworld.homes import ensure_games
from rpms.envs.base import Task
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_folder, parse_json, path_variable, read_bytes

GENERATED = ("generated_seen", "generated_unseen")
OFFICIAL = ("train", "valid_train", "valid_seen", "valid_unseen")
DEFAULT_COUNT = 60

_TASK = re.compile(r"Your task is to: ([^\"\\]+?)\s*[\"\\]")


def data_root() -> Path:
    """The folder that holds ``json_2.1.1``, found the way alfworld itself finds it."""
    return path_variable("ALFWORLD_DATA", "~/.cache/alfworld")


def list_tasks(split: str, count: int | None = None) -> list[Task]:
    """The split's games in sorted order (generated ones in index order)."""
    if split in GENERATED:
        files = ensure_games(split, count or DEFAULT_COUNT)  # type: ignore[arg-type]
    elif split in OFFICIAL:
        files = _official(split)
    else:
        known = ", ".join((*GENERATED, *OFFICIAL))
        raise RpmsError(f"unknown ALFWorld split '{split}'; known splits: {known}")
    tasks: list[Task] = []
    for file in files:
        game = read_game(file)
        if game.get("solvable") is False:  # alfworld leaves these out as well
            continue
        if len(tasks) == count:
            break
        tasks.append(_task(split, len(tasks), file, game))
    return tasks


def _task(split: str, index: int, file: Path, game: dict[str, Any]) -> Task:
    found = _TASK.search(game["grammar"])
    if not found:
        raise RpmsError(f"{file} is not an ALFWorld game: its grammar states no task")
    return Task(
        env="alfworld",
        split=split,
        index=index,
        id=f"{file.parent.parent.name}/{file.parent.name}",
        goal=found[1].strip(),
        source=str(file),
    )


def _official(split: str) -> list[Path]:
    root = data_root()
    folder = root / "json_2.1.1" / split
    files = sorted(folder.glob("*/*/game.tw-pddl")) if is_folder(folder) else []
    # alfworld itself leaves out movable receptacles and sliced objects; so do we.
    files = [file for file in files if file.parent.parent.name.split("-")[0] in GOAL_TYPES]
    files = [file for file in files if "Sliced" not in file.parent.parent.name]
    if not files:
        raise RpmsError(
            f"no games for split '{split}' in {folder}: run '.venv/bin/alfworld-download' to fetch "
            "the official games, or set ALFWORLD_DATA to the folder that holds json_2.1.1/; the "
            "splits generated_seen and generated_unseen need no download"
        )
    return files


def read_game(file: Path) -> dict[str, Any]:
    """The game file as a dictionary; a damaged one is named with what is wrong with it."""
    try:
        data = parse_json(read_bytes(file), str(file))
    except RpmsError as error:
        raise RpmsError(f"cannot read game file: {error}; fetch it again") from error
    if not isinstance(data, dict) or not isinstance(data.get("grammar"), str):
        raise RpmsError(f"{file} is not an ALFWorld game: it has no 'grammar'; fetch it again")
    return data
