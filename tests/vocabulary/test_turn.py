from __future__ import annotations

from rpms.vocabulary.turn import repeated_refusals


def test_the_same_refused_action_again_is_a_cycle() -> None:
    turns = [
        ("go", True),
        ("go", True),
        ("go", False),
        ("go", True),
        ("take", True),
        ("take", True),
    ]
    history = [{"action": action, "failed": failed} for action, failed in turns]
    assert repeated_refusals(history) == 2
    assert repeated_refusals([{"action": "", "failed": True}] * 3) == 0  # nothing was read
    assert repeated_refusals([]) == repeated_refusals([1, None, "x"]) == 0
