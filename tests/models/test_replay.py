from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from rpms.graph import run_episode
from rpms.models.controls import Replay
from rpms.nodes.context import RunContext
from tests.gold import household_gold, science_gold

EXAMPLE = [HumanMessage("o"), AIMessage("Action: a"), HumanMessage("x\n\nA new task begins.\n\no")]


def test_it_goes_on_where_the_conversation_stands() -> None:
    model = Replay(actions=["one", "two"], after="rest")
    said = []
    talk = list(EXAMPLE)
    for _ in range(4):
        reply = model.invoke(talk)
        said.append(reply.text)
        talk += [AIMessage(reply.text), HumanMessage("seen")]
    assert said == ["Action: one", "Action: two", "Action: rest", "Action: rest"]
    assert model.invoke(EXAMPLE).usage_metadata is not None


@pytest.mark.engine
@pytest.mark.parametrize("task", range(6))
@pytest.mark.parametrize("condition", ["A", "D"])
def test_a_walkthrough_wins(task: int, condition: str) -> None:
    context = RunContext.for_condition(condition)
    result = run_episode(task, context=context, model=household_gold(task))
    assert result["success"] and result["invalid_actions"] == 0


@pytest.mark.engine
def test_a_gold_path_wins() -> None:
    context = RunContext.for_condition("A")
    options = {"env": "scienceworld", "split": "test", "context": context}
    result = run_episode("boil/21", **options, model=science_gold("boil/21"))  # type: ignore[misc]
    assert result["success"] and result["score"] == 100
