"""A learned tier beside a manual that has more actions."""

from __future__ import annotations

import pytest

from rpms.envs import environment_names, get_environment
from rpms.nodes.manual import load_manual
from rpms.rule_learning.evidence import Experience
from rpms.rule_learning.induction import Hypotheses
from rpms.rule_learning.tier_file import beside, tier_of
from rpms.rules.schema import ActionRule


def rule(name: str, syntax: str) -> ActionRule:
    return ActionRule(
        id=f"E-{name.upper()}", name=name, syntax=syntax, preconditions=[], effects=[]
    )


def test_a_tier_about_every_action_takes_the_place_of_the_manuals() -> None:
    tier = tier_of(Hypotheses(Experience(["open {place}", "look"])))
    assert beside(tier, [rule("OPEN", "open {place}")]) == tier
    assert tier["replaces"] is True


def test_else_each_action_takes_the_place_of_its_own() -> None:
    tier = tier_of(Hypotheses(Experience(["open {place}", "look"])))
    found = beside(tier, [rule("unlock", "open {place}"), rule("sing", "sing")])
    assert "replaces" not in found
    assert [(one["id"], one["name"]) for one in found["actions"]] == [
        ("E-UNLOCK", "unlock"), ("L-LOOK", "look")
    ]  # fmt: skip


@pytest.mark.parametrize("world", environment_names())
def test_what_a_world_gives_to_learn_about_is_worded_as_in_its_manual(world: str) -> None:
    env = get_environment(world)
    shipped = {one.syntax for one in load_manual(world).actions}
    learnable = set(env.command_templates())
    assert learnable and (learnable <= shipped or shipped <= learnable)
