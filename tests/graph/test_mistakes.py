"""What makes no sense is refused at once, in one line, and never played as something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.runnables import RunnableLambda
from langgraph.types import Command

from rpms.graph import arun_episode, astream_episode, build_graph, run_episode, stream_episode
from rpms.nodes import env_step
from rpms.vocabulary.context import RunContext
from tests.graph.around import Parent, around
from tests.refusal import refused

MODEL = GenericFakeChatModel(messages=iter([]))


@dataclass
class Foreign:
    """A context of somebody else's graph."""

    rules: bool = False


# Each mistake, and the names in its answer: what was written, and what was meant or is possible.
INPUTS: list[tuple[Any, Any, str]] = [
    ({"env": "alfword", "task": "3"}, None, "'alfword' 'alfworld'"),
    ({"task": "3"}, Foreign(), "RunContext Foreign"),
    ({"task": "3"}, {"max_step": 1}, "'max_step' 'max_steps'"),
]
TOP: list[tuple[Any, Any, str]] = [
    ({"tsk": "3", "env": "alfworld"}, None, "'tsk' 'task'"),
    ({"task": 3, "belief": {}}, None, "'belief' cross_trial_memory"),
    ({"task": "3"}, 7, "RunContext int"),
]


@pytest.mark.parametrize(("entry", "context", "names"), INPUTS + TOP)
async def test_of_a_graphs_input_and_context(entry: Any, context: Any, names: str) -> None:
    graph = build_graph()
    attempts: list[Callable[[], Any]] = [
        lambda: graph.invoke(entry, context=context),
        lambda: list(graph.stream(entry, context=context)),
        lambda: graph.with_config(tags=["a copy"]).invoke(entry, context=context),
    ]
    for attempt in attempts:
        with refused(*names.split()):
            attempt()
    with refused(*names.split()):
        await graph.ainvoke(entry, context=context)
    with refused(*names.split()):
        [part async for part in graph.astream(entry, context=context)]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("entry", "context", "names"), [*INPUTS, ({"env": "alfworld"}, None, "'task'")]
)
async def test_within_another_graph(entry: Any, context: Any, names: str) -> None:
    outer = around(build_graph())
    with refused(*names.split()):
        outer.invoke(entry, context=context)
    with refused(*names.split()):
        await outer.ainvoke(entry, context=context)


@pytest.mark.engine
def test_another_graphs_own_keys_are_no_mistake() -> None:
    """It hands over its whole state."""
    played = around(build_graph()).invoke({"mood": "fine", "task": "2"}, context={"max_steps": 1})
    assert {"mood": "fine", "task": "2", "success": False}.items() <= played.items()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"contxt": RunContext()}, "contxt env split context model graph config"),
        ({"max_steps": 3, "scf": "off"}, "max_steps scf env split context model graph config"),
        ({"model": "openai:gpt-4o-mini"}, "RunContext(model='openai:gpt-4o-mini')"),
        ({"model": 3}, "model= int"),
        ({"model": MODEL, "graph": build_graph()}, "graph= model"),
        ({"graph": {"scf": None}}, "graph= build_graph dict"),
        ({"context": {"scff": "off"}}, "'scff' 'scf'"),
        ({"context": Foreign()}, "RunContext Foreign"),
        ({"context": "D"}, "RunContext str"),
        ({"context": {"rules": None}}, "rules=None"),
    ],
)
async def test_of_running_an_episode(options: dict[str, Any], names: str) -> None:
    """A generator tells them too, before the first step is asked for."""
    for play in (run_episode, stream_episode, astream_episode):
        with refused(*names.split()):
            play(0, **options)
    with refused(*names.split()):
        await arun_episode(0, **options)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"nodes": {"scff": len, "zz": len}}, "scff zz reset_env"),
        ({"nodes": {"scf": "off"}}, "nodes['scf'] str"),
        ({"nodes": {"scf": None}}, "nodes['scf'] NoneType"),
        ({"after": {"llm_cal": around}}, "llm_cal reset_env"),
        ({"before": {"scf": [around, "x"]}}, "before['scf'] str"),
        ({"before": {"scf": around}, "after": {"scf": around}}, "'around'"),
        ({"after": {"scf": env_step}}, "'env_step'"),
        ({"state_schema": Parent}, "state_schema rpms.EpisodeState action"),
        ({"model": "sim"}, "RunContext(model='sim')"),
    ],
)
def test_of_building_a_graph(options: dict[str, Any], names: str) -> None:
    with refused(*names.split()):
        build_graph(**options)
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
    with refused("'scf'", "recals", "recalls"):
        await arun_episode(0, graph=graph, context=RunContext(max_steps=1))


@pytest.mark.engine
@pytest.mark.parametrize("answer", [dict, lambda **update: Command(update=update)])
def test_of_a_reply_without_its_action(answer: Any) -> None:
    """The world would be given the action of the reply before, or none."""

    def reply(state: Any) -> Any:
        return answer(reply="Action: look", thought="")

    graph = build_graph(nodes={"llm_call": reply})
    with refused("'llm_call'", "action", "read_action"):
        run_episode(0, graph=graph, context=RunContext(max_steps=1))

    def complete(state: Any) -> Any:
        return answer(reply="Action: look", thought="", action="look")

    graph = build_graph(nodes={"llm_call": complete})
    result = run_episode(0, graph=graph, context=RunContext(max_steps=2))
    assert [turn["action"] for turn in result["history"]] == ["look", "look"]
