"""Examples: another number on request, refused where there are none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from rpms.envs import environment_names, get_environment
from rpms.graph import build_graph
from rpms.prompts.examples import ANOTHER, NEW_TASK, check_prompts, load_example, load_examples
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

WORLD = get_environment("alfworld")


def prompts(context: RunContext, count: int = 2) -> Iterator[list[dict[str, str]]]:
    """The prompts of the first steps, under a model that only looks around."""
    model = GenericFakeChatModel(messages=iter([AIMessage("Action: look")] * count))
    graph = build_graph(model=model)
    task = {"env": "alfworld", "split": "generated_unseen", "task": 0}
    settings = context.with_(max_steps=count)
    for update in graph.stream(task, context=settings, stream_mode="updates"):  # type: ignore[arg-type]
        if "prompt_build" in update:
            yield update["prompt_build"]["prompt"]


def text(prompt: list[dict[str, str]]) -> str:
    return "\n".join(message["content"] for message in prompt)


@pytest.mark.engine
@pytest.mark.parametrize("examples", [0, 2])
def test_as_many_examples_as_asked_for_and_nothing_else_changes(examples: int) -> None:
    for usual, prompt in zip(
        prompts(RunContext()), prompts(RunContext(examples=examples)), strict=True
    ):
        assert text(prompt).count("Your task is to:") == examples + 1
        assert text(prompt).count(NEW_TASK) == min(examples, 1)
        assert text(prompt).count(ANOTHER) == max(examples - 1, 0)
        assert [m["role"] for m in prompt[1:3]] == ["user", "assistant"] or not examples
        task = prompt[-1]["content"].partition(NEW_TASK)[2] or prompt[-1]["content"]
        assert usual[0] == prompt[0] and usual[-1]["content"].endswith(task)


@pytest.mark.parametrize("goal_type", WORLD.goal_types())
def test_the_second_example_is_another_one_of_the_same_type(goal_type: str) -> None:
    both = load_examples(WORLD.prompts, goal_type, 2)
    first = load_example(WORLD.prompts, goal_type)
    assert both[: len(first) - 1] == list(first[:-1])
    start = both[len(first) - 1]["content"].partition(f"\n\n{ANOTHER}\n\n")
    assert start[0] == first[-1]["content"] and start[2] != first[0]["content"]
    sentence = start[2].rpartition("Your task is to: ")[2]
    assert WORLD.parse_goal(sentence)["type"] == goal_type
    roles = [message["role"] for message in both]
    assert roles == ["user", "assistant"] * (len(both) // 2) + ["user"]


def test_what_a_world_cannot_show_is_refused_in_one_line() -> None:
    with pytest.raises(RpmsError, match=r"F1\.2\.json is missing; .*examples=1"):
        check_prompts("scienceworld", RunContext(examples=2))
    for env in environment_names():
        check_prompts(env, RunContext())
    check_prompts("alfworld", RunContext(examples=2))
    with pytest.raises(RpmsError, match="examples=3 is not possible"):
        RunContext(examples=3)
