"""What makes no sense is refused at once, in one line, and never played as something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.runnables import RunnableLambda

from rpms.graph import arun_episode, astream_episode, build_graph, run_episode, stream_episode
from rpms.nodes.context import RunContext
from rpms.nodes.stage import Stage
from rpms.vocabulary.errors import RpmsError

MODEL = GenericFakeChatModel(messages=iter([]))
OPTIONS = "the options are env, split, context, model, graph, config"


@pytest.mark.parametrize("play", [run_episode, stream_episode, astream_episode])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"contxt": RunContext()}, f"no option called contxt; {OPTIONS}"),
        ({"max_steps": 3, "scf": "off"}, f"no option called max_steps, scf; {OPTIONS}"),
        ({"model": "openai:gpt-4o-mini"}, "takes a chat model object; a name goes into the "
         "context: RunContext(model='openai:gpt-4o-mini')"),
        ({"model": 3}, "model= takes a LangChain chat model, not a int"),
        ({"model": MODEL, "graph": build_graph()}, "graph= brings its own model"),
        ({"graph": {"scf": None}}, "graph= takes what build_graph returns, not a dict"),
        ({"context": {"scff": "off"}}, "unknown setting 'scff'; did you mean 'scf'?"),
    ],
)  # fmt: skip
def test_of_running_an_episode(
    play: Callable[..., Any], options: dict[str, Any], words: str
) -> None:
    """A generator tells them too, before the first step is asked for."""
    with pytest.raises(RpmsError) as caught:
        play(0, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


async def test_of_running_an_episode_on_a_loop() -> None:
    with pytest.raises(RpmsError, match="no option called modle"):
        await arun_episode(0, modle=MODEL)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": {"scff": len, "zz": len}}, "no stage called scff, zz; the stages are reset_env"),
        ({"nodes": {"scf": "off"}}, "nodes['scf'] must be a function of the state, not a str"),
        ({"nodes": {"scf": None}}, "nodes['scf'] must be a function of the state, not a NoneType"),
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
    [misspelt, amisspelt, RunnableLambda(misspelt), Stage("scf", misspelt)],
    ids=["function", "coroutine", "runnable", "stage"],
)
async def test_of_a_swapped_stage(stage: Any) -> None:
    """LangGraph drops a key it does not know, and the stage would do nothing."""
    graph = build_graph(nodes={"scf": stage})
    with pytest.raises(RpmsError) as caught:
        await arun_episode(0, graph=graph, context=RunContext(max_steps=1))
    assert str(caught.value).startswith(
        "stage 'scf' returned recals, which the state does not have; its keys are: action, "
    )
