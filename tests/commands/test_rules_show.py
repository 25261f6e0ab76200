"""A type of task as a page: its steps in order, when each is done, what serves it, its rules."""

from __future__ import annotations

import re

import pytest

from rpms.envs import environment_names, get_environment
from rpms.envs.scienceworld import goals
from tests.command_line import Rpms

TYPES = [
    (env, name)
    for env in environment_names()
    for world in [get_environment(env)]
    for name in [*world.goal_types(), *(n for n, words in world.task_types().items() if words)]
]


@pytest.mark.parametrize(("env", "name"), TYPES)
def test_every_type_has_a_page(env: str, name: str, rpms: Rpms) -> None:
    page = rpms("rules", "show", "--env", env, "--type", name).out
    steps = page.partition("\n\n[RULES")[0]
    assert "[RULES" in page and "{" not in page
    for step in re.split(r"^\d+\. ", steps, flags=re.M)[1:]:
        assert re.search(r"^   - [^:\n]+: ", step, re.M), step


def test_a_step_has_its_end_and_each_action_its_conditions(rpms: Rpms) -> None:
    page = rpms("rules", "show", "--env", "scienceworld", "--type", "boil").out
    assert page.startswith("Your task is to boil water.")
    last = "boil the water until it is gas\n   done: it changed, and is gas now\n"
    assert f"6. verify object: {last}" in page
    assert "- activate <device>: <device> has to run\n     if " in page
    assert "[RULES" in page and "<usual>" not in page


def test_a_task_that_is_not_played_says_so(rpms: Rpms) -> None:
    shown = rpms("rules", "show", "--env", "scienceworld", "--type", "test-conductivity").out
    assert shown == "test-conductivity is left out, as in the paper: no rule applies to it.\n"


def test_every_test_of_a_step_reads_as_words() -> None:
    assert goals.read_steps()[1].keys() == goals.TESTS.keys()
