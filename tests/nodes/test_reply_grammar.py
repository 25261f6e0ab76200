from __future__ import annotations

import pytest

from rpms.nodes.chat import allowed_syntaxes
from rpms.nodes.manual import load_manual
from rpms.vocabulary.context import RunContext


def test_replies_are_free_by_default() -> None:
    assert RunContext().constrain == "off"
    assert allowed_syntaxes("alfworld", RunContext()) == ()


@pytest.mark.parametrize("env", ["alfworld", "scienceworld"])
@pytest.mark.parametrize("condition", ["A", "D"])
def test_the_form_is_that_of_every_action_whatever_is_in_the_prompt(
    env: str, condition: str
) -> None:
    held = allowed_syntaxes(env, RunContext.for_condition(condition, constrain="grammar"))
    assert held == tuple(rule.syntax for rule in load_manual(env).actions)
    assert "inventory" in held
