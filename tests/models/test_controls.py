from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from rpms.models import open_model
from rpms.models.controls import offers

PROMPT = """[Task Goal]
  Goal: put a mug in desk.

[Actions That Serve the Current Sub-Goal]
  1. go to desk 1 (desk 1 has not been searched yet)
  2. open drawer 1 (drawer 1 is closed (and near))
  3. take mug 1 from desk 1 (mug 1 is what the task is about)

Nothing happens."""
OFFERED = ["go to desk 1", "open drawer 1", "take mug 1 from desk 1"]


def said(model: str, text: str, seed: int = 0) -> str:
    return str(open_model(model, seed=seed).invoke([HumanMessage(text)]).text)


def test_the_offers_are_read_in_their_order() -> None:
    assert offers(PROMPT) == OFFERED
    assert offers("Nothing happens.") == []


@pytest.mark.parametrize(("model", "action"), [("first", OFFERED[0]), ("last", OFFERED[-1])])
def test_first_and_last_take_the_ends_of_the_list(model: str, action: str) -> None:
    assert said(model, PROMPT) == f"Action: {action}"


def test_random_takes_each_of_them_and_the_same_one_for_the_same_words() -> None:
    drawn = [said("random", f"{number}\n{PROMPT}") for number in range(60)]
    assert {action.removeprefix("Action: ") for action in drawn} == set(OFFERED)
    assert drawn == [said("random", f"{number}\n{PROMPT}") for number in range(60)]
    assert drawn != [said("random", f"{number}\n{PROMPT}", seed=1) for number in range(60)]


@pytest.mark.parametrize("model", ["random", "first", "last"])
def test_without_an_offer_they_look_around(model: str) -> None:
    assert said(model, "Nothing happens.") == "Action: look around"
