"""What makes no sense is refused at once, in one line, and never played as something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from rpms.graph import arun_episode, astream_episode, build_graph, run_episode, stream_episode
from rpms.nodes import env_step
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

MODEL = GenericFakeChatModel(messages=iter([]))
OPTIONS = "the options are env, split, context, model, graph, config"


@dataclass
class Foreign:
    """A context of somebody else's graph."""

    rules: bool = False


class Parent(TypedDict, total=False):
    """The state of somebody else's graph."""

    env: str
    task: str
    mood: str
    success: bool


def parent(node: Any) -> Any:
    builder = StateGraph(Parent)
    builder.add_node("play", node)
    builder.add_edge(START, "play")
    return builder.compile()


INPUTS: list[tuple[Any, Any, str]] = [
    (
        {"env": "alfword", "task": "3"},
        None,
        "unknown environment 'alfword'; did you mean 'alfworld'?",
    ),
    ({"task": "3"}, Foreign(), "must be a RunContext or a dictionary of its settings, not a Fo"),
    ({"task": "3"}, {"max_step": 1}, "unknown setting 'max_step'; did you mean 'max_steps'?"),
]
TOP: list[tuple[Any, Any, str]] = [
    ({"tsk": "3", "env": "alfworld"}, None, "the input has no key 'tsk'; did you mean 'task'?"),
    ({"task": 3, "belief": {}}, None, "the input has no key 'belief'; known: cross_trial_memory, "),
    ({"task": "3"}, 7, "must be a RunContext or a dictionary of its settings, not a int"),
]


@pytest.mark.parametrize(("entry", "context", "words"), INPUTS + TOP)
async def test_of_a_graphs_input_and_context(entry: Any, context: Any, words: str) -> None:
    graph = build_graph()
    attempts: list[Callable[[], Any]] = [
        lambda: graph.invoke(entry, context=context),
        lambda: list(graph.stream(entry, context=context)),
        lambda: graph.with_config(tags=["a copy"]).invoke(entry, context=context),
    ]
    for attempt in attempts:
        with pytest.raises(RpmsError) as caught:
            attempt()
        assert words in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(RpmsError, match=re.escape(words)):
        await graph.ainvoke(entry, context=context)
    with pytest.raises(RpmsError, match=re.escape(words)):
        [part async for part in graph.astream(entry, context=context)]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("entry", "context", "words"),
    [*INPUTS, ({"env": "alfworld"}, None, "the input has no 'task': give its index or its id")],
)
async def test_within_another_graph(entry: Any, context: Any, words: str) -> None:
    outer = parent(build_graph())
    with pytest.raises(RpmsError, match=re.escape(words)):
        outer.invoke(entry, context=context)
    with pytest.raises(RpmsError, match=re.escape(words)):
        await outer.ainvoke(entry, context=context)


@pytest.mark.engine
def test_another_graphs_own_keys_are_no_mistake() -> None:
    """It hands over its whole state."""
    played = parent(build_graph()).invoke({"mood": "fine", "task": "2"}, context={"max_steps": 1})
    assert played == {"mood": "fine", "task": "2", "success": False}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contxt": RunContext()}, f"no option called contxt; {OPTIONS}"),
        ({"max_steps": 3, "scf": "off"}, f"no option called max_steps, scf; {OPTIONS}"),
        ({"model": "openai:gpt-4o-mini"}, "takes a LangChain chat model, not a str; a name goes "
         "into the context: RunContext(model='openai:gpt-4o-mini')"),
        ({"model": 3}, "model= takes a LangChain chat model, not a int"),
        ({"model": MODEL, "graph": build_graph()}, "graph= brings its own model"),
        ({"graph": {"scf": None}}, "graph= takes what build_graph returns, not a dict"),
        ({"context": {"scff": "off"}}, "unknown setting 'scff'; did you mean 'scf'?"),
        ({"context": Foreign()}, "must be a RunContext or a dictionary of its settings, not a Fo"),
        ({"context": "D"}, "must be a RunContext or a dictionary of its settings, not a str"),
        ({"context": {"rules": None}}, "rules=None is not possible"),
    ],
)  # fmt: skip
async def test_of_running_an_episode(options: dict[str, Any], words: str) -> None:
    """A generator tells them too, before the first step is asked for."""
    for play in (run_episode, stream_episode, astream_episode):
        with pytest.raises(RpmsError) as caught:
            play(0, **options)
        assert words in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(RpmsError, match=re.escape(words)):
        await arun_episode(0, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": {"scff": len, "zz": len}}, "no stage called scff, zz; the stages are reset_env"),
        ({"nodes": {"scf": "off"}}, "nodes['scf'] must be a function of the state, not a str"),
        ({"nodes": {"scf": None}}, "nodes['scf'] must be a function of the state, not a NoneType"),
        ({"after": {"llm_cal": parent}}, "no stage called llm_cal; the stages are reset_env"),
        (
            {"before": {"scf": [parent, "x"]}},
            "before['scf'] must be a function of the state, not a",
        ),
        ({"before": {"scf": parent}, "after": {"scf": parent}}, "there is a node 'parent' already"),
        ({"after": {"scf": env_step}}, "there is a node 'env_step' already"),
        ({"state_schema": Parent}, "state_schema must extend rpms.EpisodeState; it lacks action"),
        ({"model": "sim"}, "RunContext(model='sim')"),
    ],
)
def test_of_building_a_graph(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RpmsError) as caught:
        build_graph(**options)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="chekpointer"):
        build_graph(chekpointer=None)  # type: ignore[call-arg]


def misspelt(state: Any) -> Any:
    return {"recals": state["recalls"]}


async def amisspelt(state: Any) -> Any:
    return misspelt(state)


@pytest.mark.engine
@pytest.mark.parametrize(
    "stage",
    [misspelt, amisspelt, RunnableLambda(misspelt)],
    ids=["function", "coroutine", "runnable"],
)
async def test_of_a_swapped_stage(stage: Any) -> None:
    """LangGraph drops a key it does not know, and the stage would do nothing."""
    graph = build_graph(nodes={"scf": stage})
    with pytest.raises(RpmsError) as caught:
        await arun_episode(0, graph=graph, context=RunContext(max_steps=1))
    assert str(caught.value).startswith(
        "stage 'scf' returned recals, which the state does not have; its keys are: action, "
    )


@pytest.mark.engine
@pytest.mark.parametrize("answer", [dict, lambda **update: Command(update=update)])
def test_of_a_reply_without_its_action(answer: Any) -> None:
    """The world would be given the action of the reply before, or none."""

    def reply(state: Any) -> Any:
        return answer(reply="Action: look", thought="")

    graph = build_graph(nodes={"llm_call": reply})
    with pytest.raises(RpmsError, match=r"'llm_call' returned a reply without its action.*read_ac"):
        run_episode(0, graph=graph, context=RunContext(max_steps=1))

    def complete(state: Any) -> Any:
        return answer(reply="Action: look", thought="", action="look")

    graph = build_graph(nodes={"llm_call": complete})
    result = run_episode(0, graph=graph, context=RunContext(max_steps=2))
    assert [turn["action"] for turn in result["history"]] == ["look", "look"]
