"""Generated homes: real ALFWorld games that need no download.

Each game is a new room, furnished from a seed and played by the same engine as the official
games. Two splits that never share a layout stand in for the official seen and unseen ones.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rpms.envs.alfworld import home_model, pddl, wheel
from rpms.envs.alfworld.home_sampling import draw_home
from rpms.envs.alfworld.wheel import DIALECTS, Dialect
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import cache_dir, is_file, write_whole

Split = Literal["generated_seen", "generated_unseen"]
SPLITS: tuple[Split, ...] = ("generated_seen", "generated_unseen")

GENERATOR = "1"
"""Raised when the code draws different homes from the same data."""

# Official scenes end at 430, so a number from here on always means a generated home.
_FIRST_HOME = 500


@dataclass(frozen=True)
class Game:
    """One generated game, ready to be written: its two files and what a test wants to know."""

    split: Split
    index: int
    task_type: str
    goal: str
    layout: str
    walkthrough: tuple[str, ...]
    folder: str
    game_file: str
    trajectory_file: str


def sample_home(split: Split, index: int, dialect: Dialect = "move") -> Game:
    """The game with a given number of a split: always the same, on every machine.

    Goal types take turns, so any six consecutive games hold all six, and the two wordings of a
    type alternate. The dialect changes the words of the game, never the home.
    """
    _check(split, index, dialect)
    types = list(home_model.data()["tasks"])
    task_type = types[index % len(types)]
    wording = index // len(types) % 2
    home = draw_home(f"{split}:{index}", task_type, wording, SPLITS.index(split))
    goal = home.goal
    number = _FIRST_HOME + 2 * index + SPLITS.index(split)
    trial = f"trial_G{split.removeprefix('generated_')[0].upper()}{index:04}"
    sentence = wheel.goal_sentence(task_type, wording, goal.object, goal.parent, goal.toggle)
    plan = pddl.walkthrough(home, dialect)
    game = {
        "pddl_domain": wheel.domain(dialect),
        "grammar": wheel.grammar(dialect).replace("UNKNOWN GOAL", sentence),
        "pddl_problem": pddl.problem(home, trial),
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
    return Game(
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
    split: Split, count: int = 60, dialect: Dialect = "move", root: Path | None = None
) -> list[Path]:
    """Make sure the first games of a split are on disk; their game files, in order.

    Every file is compared with what the generator says and only written when it differs, so a
    damaged or outdated cache repairs itself and a second call changes nothing. Writes are
    atomic: several processes may do this at once.

    Args:
        split: which of the two generated splits.
        count: how many games; there is no upper limit.
        dialect: the wording of the games.
        root: a folder laid out like ``$ALFWORLD_DATA``; by default one in the user's cache.
    """
    folder = root if root is not None else games_root(dialect)
    return [write_game(sample_home(split, index, dialect), folder) for index in range(count)]


def write_game(game: Game, root: Path) -> Path:
    """Write one game below a folder laid out like ``$ALFWORLD_DATA``; the path of its game file."""
    folder = root / "json_2.1.1" / game.split / game.folder
    path = folder / "game.tw-pddl"
    try:
        # The game file comes last: whoever finds it finds the other one too.
        _write(folder / "traj_data.json", game.trajectory_file)
        _write(path, game.game_file)
    except (RpmsError, OSError) as error:
        raise RpmsError(
            f"cannot write generated games to {root} ({error}); "
            "set RPMS_CACHE to a folder you can write to"
        ) from error
    return path


def games_root(dialect: Dialect) -> Path:
    """Where generated games are kept; another generator, data or alfworld gets another folder."""
    sources = (home_model.data_text(), wheel.domain(dialect), wheel.grammar(dialect))
    digest = hashlib.sha256("\0".join(sources).encode()).hexdigest()[:8]
    return cache_dir() / "generated" / f"{GENERATOR}-{digest}" / dialect


def _write(path: Path, text: str) -> None:
    content = text.encode()
    if not is_file(path) or path.read_bytes() != content:
        write_whole(path, content)


def _check(split: str, index: int, dialect: str) -> None:
    if split not in SPLITS:
        raise RpmsError(f"unknown generated split '{split}'; choose {' or '.join(SPLITS)}")
    if dialect not in DIALECTS:
        raise RpmsError(f"unknown game wording '{dialect}'; choose {' or '.join(DIALECTS)}")
    if index < 0:
        raise RpmsError(f"generated games are numbered from 0, so there is no game {index}")
