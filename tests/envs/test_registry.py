from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.envs import (
    Environment,
    environment_names,
    get_environment,
    registry,
    scienceworld,
    tau2,
)
from rpms.graph import run_episode
from tests.command_line import Rpms
from tests.refusal import refused


def test_ours_come_first_and_the_default_is_the_very_first() -> None:
    assert environment_names()[:2] == ["alfworld", "scienceworld"]


@pytest.mark.parametrize("name", environment_names())
def test_every_listed_world_can_be_had(name: str) -> None:
    world = get_environment(name)
    assert world.name == name
    assert world is get_environment(name)
    assert world.goal_types() and world.splits() and world.command_verbs()
    assert world.learning_split in world.splits()
    assert world.max_steps > 0 and world.max_tokens > 0
    assert world.prompts.is_dir() and world.rules.is_dir() and world.memory.is_file()
    assert world.rules.parent == world.folder


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("alfwold", ["'alfwold'", "'alfworld'", "MODULE:ATTRIBUTE"]),
        ("lunar base", ["'lunar base'", "MODULE:ATTRIBUTE", *environment_names()]),
        ("no_such_module_here:WORLD", ["No module named 'no_such_module_here'"]),
        ("rpms.envs.base:WORLD", ["'WORLD'"]),
        ("rpms.envs.base:Environment", ["rpms.envs.base:Environment"]),
        ("rpms.envs.alfworld.adapter:Alfworld", ["rpms.envs.alfworld.adapter:Alfworld"]),
        ("json:", ["'json:'"]),
        (":WORLD", ["':WORLD'"]),
    ],
)
def test_a_name_of_no_world_is_one_line_that_names_it(name: str, names: list[str]) -> None:
    with refused(*names):
        get_environment(name)


@pytest.fixture
def light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of somebody who has no simulator installed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    get_environment.cache_clear()
    yield tmp_path
    get_environment.cache_clear()


@pytest.mark.parametrize(("world", "target"), [("scienceworld", "setup"), ("telecom", "telecom")])
@pytest.mark.parametrize(
    "words", ["tasks", "rules check", "learn --out m", "eval --out r", "run", "demo"]
)
def test_a_world_whose_package_is_missing_says_how_to_get_it(
    world: str, target: str, words: str, light: Path, rpms: Rpms
) -> None:
    done = rpms(*words.split(), "--env", world)
    assert done.code == 2 and done.err.count("\n") == 1
    assert f"make {target}" in done.err and f"pip install -e '.[{world}]'" in done.err
    assert not [*light.iterdir()]


@pytest.mark.usefixtures("light")
def test_without_simulators_the_first_world_is_left_and_the_others_are_named(rpms: Rpms) -> None:
    assert environment_names() == ["alfworld"]
    missing = [scienceworld.MISSING, tau2.MISSING]
    listed = rpms("worlds").out.splitlines()
    assert listed[0] == "alfworld" and listed[-2:] == missing
    checked = rpms("rules", "check")
    assert checked.code == 0
    assert checked.out.splitlines()[-2:] == [f"not checked: {line}" for line in missing]
    assert "not checked" not in rpms("rules", "check", "--env", "alfworld").out
    assert "choose another name" in rpms("worlds", "new", "telecom").err


@pytest.mark.parametrize("words", ["tasks", "run", "demo", "eval --out r", "learn --out m"])
@pytest.mark.parametrize("desk", registry.DESKS)
def test_a_world_without_tasks_says_so_and_names_those_with_tasks(
    desk: str, words: str, rpms: Rpms
) -> None:
    done = rpms(*words.split(), "--env", desk)
    assert done.code == 2 and f"'{desk}'" in done.err and "rpms.guard" in done.err
    assert all(name in done.err for name in environment_names())
    with refused("rpms.guard"):
        run_episode(0, env=desk)


def test_a_world_answers_to_the_name_it_was_asked_by() -> None:
    path = "rpms.envs.alfworld.adapter:ENVIRONMENT"
    other = get_environment(path)
    assert other.name == path and get_environment("alfworld").name == "alfworld"
    assert isinstance(other, Environment) and other.rules == get_environment("alfworld").rules


def test_a_server_takes_no_import_path_and_no_folder(tmp_path: Path) -> None:
    """In a process of its own, since there is no way back."""
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "world.py").write_text("import this")
    program = (
        "import sys; from rpms.envs import *\n"
        "from rpms.vocabulary.imports import only_installed; only_installed();"
        "worlds = [get_environment(name).name for name in environment_names()];"
        "assert worlds == environment_names();"
        "\nfor name in ('this:s', 'shelf'):"
        "\n  try: get_environment(name)"
        "\n  except Exception as error: print(type(error).__name__, error, 'this' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    names = [*environment_names(), *(f"{name} (guard only)" for name in registry.desk_names())]
    known = f"known: {', '.join(names)} False"
    names = ("this:s", "shelf")
    lines = [f"RpmsError unknown environment '{name}'; {known}" for name in names]
    assert done.stdout.splitlines() == lines
