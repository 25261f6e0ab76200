"""Settings work together: an episode plays under any of them, not only under each alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rpms.vocabulary.context import ABLATION, Declaration, declarations
from tests.scripted_episode import STEPS, Play

GROUPS = {"knowledge", "memory", "prompt"}
# The script stands for the model and the game, so the guard may not ask again. The condition
# decides three settings, the script two.
GIVEN = {"rules", "memory", "state_block", "theta", "memory_file"}


def values(of: Declaration) -> list[Any]:
    """The choices of a setting, or its limits and what lies just above the lower one."""
    if of.choices:
        return [*of.choices]
    if of.kind is bool:
        return [False, True]
    if of.kind is int and of.setting.ge is not None:
        most = of.setting.le if of.setting.le is not None else of.setting.ge + 3
        return sorted({of.default, *range(of.setting.ge, min(most, of.setting.ge + 3) + 1), most})
    return []


DRAWN = {name: drawn for name, of in declarations().items()
         if of.setting.group in GROUPS and name not in GIVEN and (drawn := values(of))}  # fmt: skip


def test_the_settings_of_the_prompt_are_drawn() -> None:
    assert DRAWN["examples"] == [0, 1, 2]
    assert DRAWN["history"][:3] == [-1, 0, 1]
    assert {"layout", "rules_scope", "scf", "arbitration", "memory_form", "k"} <= DRAWN.keys()


@pytest.mark.parametrize("case", range(60))
def test_an_episode_plays_under_any_settings(play_script: Play, case: int) -> None:
    chance = Random(case)
    condition = chance.choice(ABLATION)
    settings = {name: chance.choice(drawn) for name, drawn in DRAWN.items()}
    states = play_script(condition, **settings)
    assert len(states) == STEPS
    assert all(state["prompt"][-1]["content"] for state in states)
