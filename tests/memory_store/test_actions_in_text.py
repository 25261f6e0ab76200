"""Which actions a text advises, and which of them can never work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.manuals import load_manual
from rpms.memory_store.actions_in_text import mentioned_actions
from rpms.rules import match_action, never_works

MANUAL = load_manual("alfworld")


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("put mug 1 in/on cabinet 1", ["put mug 1 in/on cabinet 1"]),
        ("Then put the mug into the microwave.", ["put mug in/on microwave"]),
        ("Heat it with the microwave, then go to cabinet 2", ["heat mug with microwave",
                                                             "go to cabinet 2"]),
        ("take {object} from {a fridge}\nput {object} in/on {destination}",
         ["take mug from fridge", "put mug in/on shelf"]),
        ("put <object> in/on <destination>", ["put mug in/on shelf"]),
        ("Do NOT put the mug in the microwave.", []),
        ("Never open the safe. Go to desk 1 first.", ["go to desk 1"]),
        ("go to desk 1 -> take mug 1 from desk 1", ["go to desk 1", "take mug 1 from desk 1"]),
        ("Putting the mug in the microwave MAY CONTRIBUTE to heating it.", []),
        ("look around and think", []),
        ("Cool the egg with the fridge before you go to the table because it is hot",
         ["cool egg with fridge", "go to table"]),
    ],
)  # fmt: skip
def test_commands_are_read_from_plain_sentences(text: str, actions: list[str]) -> None:
    assert list(mentioned_actions(MANUAL, text, "mug", "shelf")) == actions


@given(st.text())
def test_whatever_is_found_is_a_command_of_the_manual(text: str) -> None:
    assert all(match_action(MANUAL, a) for a in mentioned_actions(MANUAL, text, "mug", "bed"))


def test_what_things_are_decides_whether_an_action_can_ever_work() -> None:
    kinds = {"mug", "stoveburner", "microwave", "shelf", "safe"}
    rule, words = never_works(MANUAL, "heat mug with stoveburner", kinds)
    assert rule == "O-ACT-006" and words
    assert never_works(MANUAL, "put mug 1 in/on safe 1", kinds)[0] == "O-ACT-005"
    assert never_works(MANUAL, "heat mug with microwave", kinds) == ("", "")
    # Nothing is said about things that this home does not have, nor about what is no command.
    assert never_works(MANUAL, "heat mug with toaster", kinds) == ("", "")
    assert never_works(MANUAL, "dance", kinds) == ("", "")
