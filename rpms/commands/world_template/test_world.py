"""The world plays and its rules are sound: ``pytest storeroom``, in the folder above it."""

import pytest

import rpms

CONTEXT = rpms.RunContext.for_condition("E", model="first")  # the procedure by itself


@pytest.mark.parametrize("index", range(6))
def test_the_procedure_wins_and_nothing_is_refused(index: int) -> None:
    """A refusal here means that a rule promises what the simulator does not do."""
    result = rpms.run_episode(index, env="storeroom.world:WORLD", context=CONTEXT)
    assert result["success"] and result["invalid_actions"] == 0
