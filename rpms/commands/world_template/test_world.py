"""The environment runs and its rules are sound: ``pytest storeroom``, in the parent folder."""

import pytest

import rpms

CONTEXT = rpms.RunContext.for_condition("E", model="first")  # the procedure alone


@pytest.mark.parametrize("index", range(6))
def test_the_procedure_wins_and_nothing_is_rejected(index: int) -> None:
    """A rejection means that a rule allows an action that the simulator rejects."""
    result = rpms.run_episode(index, env="storeroom.world:WORLD", context=CONTEXT)
    assert result["success"] and result["invalid_actions"] == 0
