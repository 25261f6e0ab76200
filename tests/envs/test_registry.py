from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rpms.envs import environment_names, get_environment
from rpms.vocabulary.errors import RpmsError

REPOSITORY = Path(__file__).resolve().parents[2]


def test_known_worlds_are_listed_in_order() -> None:
    names = environment_names()
    assert "alfworld" in names
    assert names == sorted(names)


@pytest.mark.parametrize("name", environment_names())
def test_every_listed_world_can_be_had(name: str) -> None:
    world = get_environment(name)
    assert world.name == name
    assert world is get_environment(name)
    assert world.goal_types() and world.splits() and world.command_verbs()
    assert world.max_steps > 0 and world.max_tokens > 0
    assert world.prompts.is_dir()


def test_an_unknown_world_is_one_line_that_lists_the_known_ones() -> None:
    with pytest.raises(RpmsError) as caught:
        get_environment("alfwold")
    message = str(caught.value)
    assert "'alfwold'" in message and "\n" not in message
    for name in environment_names():
        assert name in message


def test_naming_worlds_imports_none_of_them() -> None:
    program = (
        "import sys, envs; envs.environment_names();"
        "print([m for m in sys.modules if m.startswith(('rpms.envs.alfworld', 'textworld'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
