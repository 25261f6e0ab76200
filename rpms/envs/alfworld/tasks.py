"""Task lists: official splits from disk, generated homes from the cache.

A generated game is a new room, furnished from a seed and run by the same engine as the official
games. Two splits that never share a layout correspond to the official seen and unseen splits.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rpms.envs.alfworld import alfworld_package as package
from rpms.envs.alfworld import homes
from rpms.envs.alfworld.alfworld_package import Dialect
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.envs.base import Task
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import (
    cache_dir,
    is_file,
    is_folder,
    parse_json,
    path_variable,
    read_bytes,
    write_whole,
)
from rpms.vocabulary.generation import NewScenes, watched

Split = Literal["generated_seen", "generated_unseen"]
GENERATED: tuple[Split, ...] = ("generated_seen", "generated_unseen")
OFFICIAL = ("train", "valid_train", "valid_seen", "valid_unseen")
DEFAULT_COUNT = 60

GENERATOR = "1"
"""Version of the generator. Raise it when the code draws different homes from the same data."""

_TASK = re.compile(r"Your task is to: ([^\"\\]+?)\s*[\"\\]")
# Official scenes end at 430, so a number from here on always means a generated home.
_FIRST_HOME = 500
_DIGITS = 4


@dataclass(frozen=True)
class GeneratedGame:
    """One generated game, ready to be written: the text of its two files and its properties."""

    split: Split
    index: int
    task_type: str
    goal: str
    layout: str
    walkthrough: tuple[str, ...]
    folder: str
    game_file: str
    trajectory_file: str


def sample_home(split: Split, index: int, dialect: Dialect = "move") -> GeneratedGame:
    """Generate a game of a split by its number, the same on every machine.

    Goal types take turns, so any six consecutive games hold all six, and the two wordings of a
    type alternate. The dialect changes the words of the game, never the home.
    """
    types = list(homes.data()["tasks"])
    task_type, wording = types[index % len(types)], index // len(types) % 2
    home = homes.draw_home(f"{split}:{index}", task_type, wording, GENERATED.index(split))
    goal = home.goal
    number = _FIRST_HOME + 2 * index + GENERATED.index(split)
    trial = f"{_trial_of(split)}{index:0{_DIGITS}}"
    sentence = package.goal_sentence(task_type, wording, goal.object, goal.parent, goal.toggle)
    plan = homes.walkthrough(home, dialect)
    game = {
        "pddl_domain": package.domain(dialect),
        "grammar": package.grammar(dialect).replace("UNKNOWN GOAL", sentence),
        "pddl_problem": homes.problem(home, trial),
        "solvable": True,
        "walkthrough": plan,
    }
    trajectory = {
        "task_id": trial,
        "task_type": task_type,
        "pddl_params": {
            "mrecep_target": "",
            "object_sliced": False,
            "object_target": goal.object,
            "parent_target": goal.parent,
            "toggle_target": goal.toggle,
        },
        "scene": {"floor_plan": f"Generated{home.room}{number}", "scene_num": number},
    }
    target = goal.parent or goal.toggle
    return GeneratedGame(
        split=split,
        index=index,
        task_type=task_type,
        goal=sentence,
        layout=home.layout,
        walkthrough=tuple(plan),
        folder=f"{task_type}-{goal.object}-None-{target}-{number}/{trial}",
        game_file=json.dumps(game),
        trajectory_file=json.dumps(trajectory, indent=4) + "\n",
    )


def ensure_games(
    split: Split, count: int = DEFAULT_COUNT, dialect: Dialect = "move", root: Path | None = None
) -> list[Path]:
    """Make sure the first games of a split are on disk; return their game files in order.

    A file is written only if it differs from the generator's text, so a damaged or outdated cache
    repairs itself. Writes are atomic: several processes may do this at once. ``root`` is laid out
    like ``$ALFWORLD_DATA``.
    """
    folder = root if root is not None else games_root(dialect)
    games = folder / "json_2.1.1" / split
    present = sum(1 for _ in games.glob("*/*/game.tw-pddl"))
    scenes = NewScenes(count - present, f"homes of {split}", games)
    return [
        write_game(sample_home(split, index, dialect), folder)
        for index in watched(range(count), scenes)
    ]


def write_game(game: GeneratedGame, root: Path) -> Path:
    """Write one game below a folder laid out like ``$ALFWORLD_DATA``; return its game file."""
    folder = root / "json_2.1.1" / game.split / game.folder
    path = folder / "game.tw-pddl"
    try:
        # The game file comes last: a process that finds it also finds the other one.
        for file, text in (
            (folder / "traj_data.json", game.trajectory_file),
            (path, game.game_file),
        ):
            if not is_file(file) or file.read_bytes() != text.encode():
                write_whole(file, text.encode())
    except (RpmsError, OSError) as error:
        raise RpmsError(
            f"cannot write generated games to {root} ({error}); "
            "set RPMS_CACHE to a folder you can write to"
        ) from error
    return path


def games_root(dialect: Dialect) -> Path:
    """The folder of generated games, one per version of generator, data and alfworld."""
    sources = (homes.data_text(), package.domain(dialect), package.grammar(dialect))
    digest = hashlib.sha256("\0".join(sources).encode()).hexdigest()[:8]
    return cache_dir() / "generated" / f"{GENERATOR}-{digest}" / dialect


def data_root() -> Path:
    """The folder that holds ``json_2.1.1``, located as alfworld locates it."""
    return path_variable("ALFWORLD_DATA", "~/.cache/alfworld")


def list_tasks(split: str, count: int | None = None) -> list[Task]:
    """The split's games in sorted order (generated ones in index order)."""
    files = ensure_games(split, count or DEFAULT_COUNT) if split in GENERATED else _official(split)
    tasks: list[Task] = []
    for file in files:
        game = read_game(file)
        if game.get("solvable") is False:  # alfworld leaves these out as well
            continue
        if len(tasks) == count:
            break
        sentence = _TASK.search(game["grammar"])
        if not sentence:
            raise RpmsError(f"{file} is not an ALFWorld game: its grammar states no task")
        name = f"{file.parent.parent.name}/{file.parent.name}"
        task = Task(
            env="alfworld", split=split, index=len(tasks), id=name, goal=sentence[1].strip(),
            source=str(file),
        )  # fmt: skip
        tasks.append(task)
    return tasks


def _trial_of(split: str) -> str:
    return f"trial_G{split.removeprefix('generated_')[0].upper()}"


def index_in(split: str, task_id: str) -> int | None:
    """The index of a generated home, which ends its id; ``rpms tasks`` lists any number of them."""
    number = re.search(rf"{_trial_of(split)}(\d{{{_DIGITS}}})$", task_id)
    return int(number[1]) if number and split in GENERATED else None


def split_types(split: str) -> list[str]:
    """The goal types of a split, without generating or opening a game."""
    if split in GENERATED:
        return list(homes.data()["tasks"])
    return list(dict.fromkeys(_goal_type(file) for file in _official(split)))


def _goal_type(file: Path) -> str:
    # The name of a game's folder begins with it.
    return file.parent.parent.name.split("-")[0]


def _official(split: str) -> list[Path]:
    if split not in OFFICIAL:
        splits = ", ".join((*GENERATED, *OFFICIAL))
        raise RpmsError(f"unknown ALFWorld split '{split}'; known splits: {splits}")
    folder = data_root() / "json_2.1.1" / split
    files = sorted(folder.glob("*/*/game.tw-pddl")) if is_folder(folder) else []
    # alfworld leaves out movable receptacles and sliced objects; so do we.
    files = [file for file in files if _goal_type(file) in GOAL_TYPES]
    files = [file for file in files if "Sliced" not in file.parent.parent.name]
    if not files:
        raise RpmsError(
            f"no games for split '{split}' in {folder}: run '.venv/bin/alfworld-download' to fetch "
            "the official games, or set ALFWORLD_DATA to the folder that holds json_2.1.1/, "
            "or give --split generated_unseen or generated_seen, which need no download"
        )
    return files


def read_game(file: Path) -> dict[str, Any]:
    try:
        data = parse_json(read_bytes(file), str(file))
    except RpmsError as error:
        raise RpmsError(f"cannot read game file: {error}; fetch it again") from error
    if not isinstance(data, dict) or not isinstance(data.get("grammar"), str):
        raise RpmsError(f"{file} is not an ALFWorld game: it has no 'grammar'; fetch it again")
    return data
