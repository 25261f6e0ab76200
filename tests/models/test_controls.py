from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from rpms.graph import run_episode
from rpms.models import open_model
from rpms.models.controls import Replay
from rpms.vocabulary.context import RunContext
from tests.gold import household_gold

PROMPT = """[Task Goal]
  Goal: put a mug in desk.

[Actions That Serve the Current Sub-Goal]
  1. go to desk 1 (desk 1 has not been searched yet)
  2. open drawer 1 (drawer 1 is closed (and near))
  3. take mug 1 from desk 1 (mug 1 is what the task is about)

Nothing happens."""
OFFERED = ["go to desk 1", "open drawer 1", "take mug 1 from desk 1"]
EXAMPLE = [HumanMessage("o"), AIMessage("Action: a"), HumanMessage("x\n\nA new task begins.\n\no")]


def reply(model: str, text: str, seed: int = 0) -> str:
    return str(open_model(model, seed=seed).invoke([HumanMessage(text)]).text)


@pytest.mark.parametrize(("model", "action"), [("first", OFFERED[0]), ("last", OFFERED[-1])])
def test_first_and_last_take_the_ends_of_the_list(model: str, action: str) -> None:
    assert reply(model, PROMPT) == f"Action: {action}"


def test_random_takes_each_of_them_and_the_same_one_for_the_same_words() -> None:
    drawn, again, otherwise = (
        [reply("random", f"{number}\n{PROMPT}", seed) for number in range(60)] for seed in (0, 0, 1)
    )
    assert {action.removeprefix("Action: ") for action in drawn} == set(OFFERED)
    assert drawn == again != otherwise


@pytest.mark.parametrize("model", ["random", "first", "last"])
def test_without_an_offer_they_look_around(model: str) -> None:
    assert reply(model, "Nothing happens.") == "Action: look around"


def test_a_replay_goes_on_where_the_conversation_stands() -> None:
    model = Replay(actions=["one", "two"], after="rest")
    replies, talk = [], list(EXAMPLE)
    for _ in range(4):
        replies.append(model.invoke(talk).text)
        talk += [AIMessage(replies[-1]), HumanMessage("seen")]
    assert replies == ["Action: one", "Action: two", "Action: rest", "Action: rest"]
    assert model.invoke(EXAMPLE).usage_metadata is not None


@pytest.mark.engine
@pytest.mark.parametrize(("task", "condition"), [(0, "A"), (5, "D")])
def test_a_walkthrough_wins(task: int, condition: str) -> None:
    context = RunContext.for_condition(condition)
    result = run_episode(task, context=context, model=household_gold(task))
    assert result["success"] and result["invalid_actions"] == 0
