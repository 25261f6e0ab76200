"""Nodes, keys and settings of one's own, and our graph within another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any, Literal

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

import rpms.nodes
from rpms import (
    STAGES,
    EpisodeState,
    RunContext,
    arun_episode,
    build_graph,
    make_builder,
    run_episode,
)
from tests.graph.around import around
from tests.refusal import refused

pytestmark = pytest.mark.engine

TASK: Any = {"env": "alfworld", "split": "generated_unseen", "task": 2}
SHORT = RunContext.for_condition("A", max_steps=2)
TAKE_THE_RUNTIME = ("reset_env", "goal_retrieval", "env_step")
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Noted(EpisodeState, total=False):
    notes: Annotated[list[str], add]
    mood: str


def note(state: Noted) -> Noted:
    return {"notes": [state["action"]]}


async def anote(state: Noted, runtime: Runtime[RunContext]) -> Noted:
    return {"notes": [str(runtime.context.max_steps)]}


class Moody(EpisodeState, total=False):
    mood: str


def small() -> Any:
    """A graph over our whole state, as a node: what it hands back of it is not added again."""
    builder = StateGraph(Moody)
    builder.add_node("inner", lambda state: {"mood": f"after {len(state['history'])}"})
    builder.add_edge(START, "inner")
    return builder.compile(name="small")


def test_nodes_of_ones_own_run_where_they_are_put_and_are_drawn_by_name() -> None:
    runnable = RunnableLambda(lambda state: {"mood": "fine"}, name="runnable")
    graph = build_graph(
        after={"llm_call": [note, runnable]},
        before={"env_step": small(), "scf": RunnableLambda(note, name="never")},
        state_schema=Noted,
    )
    own = ["belief_update", "prompt_build", "llm_call", "note", "runnable", "small", "env_step"]
    stream = graph.stream(TASK, context=SHORT, stream_mode="updates")
    assert [name for part in stream for name in part] == ["reset_env", *own, *own]
    drawn = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    assert {("llm_call", "note"), ("note", "runnable"), ("runnable", "small"),
            ("runnable", "__end__"), ("guard_check", "small"), ("small", "env_step"),
            ("goal_retrieval", "never"), ("never", "scf")} <= drawn  # fmt: skip
    assert not {("llm_call", "env_step"), ("runnable", "env_step")} & drawn
    result: Any = graph.invoke({**TASK, "notes": ["begun"]}, context=SHORT)
    played = [turn["action"] for turn in result["history"]]
    assert result["notes"] == ["begun", *played] and len(played) == result["steps"] == 2
    assert result["mood"] == "after 1"


async def test_a_coroutine_and_a_node_that_says_itself_where_to_go() -> None:
    def again(state: Noted) -> Command[Literal["env_step", "llm_call"]]:
        known = len(state["notes"]) > 1
        return Command(update={"notes": ["asked"]}, goto="env_step" if known else "llm_call")

    graph = build_graph(after={"reset_env": anote}, before={"env_step": again}, state_schema=Noted)
    stream = graph.astream(TASK, context=SHORT, stream_mode="updates")
    visited = [name async for part in stream for name in part]
    assert visited[:8] == [
        "reset_env", "anote", "belief_update", "prompt_build", "llm_call", "again", "llm_call",
        "again",
    ]  # fmt: skip
    result: Any = await graph.ainvoke(TASK, context=SHORT)
    assert (result["notes"], result["steps"]) == (["2", "asked", "asked", "asked"], 2)
    drawn = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    assert {("again", "env_step"), ("again", "llm_call")} <= drawn


@pytest.mark.parametrize("answer", [dict, lambda **update: Command(update=update)])
def test_a_misspelt_key_is_refused_by_name_and_a_key_of_ones_own_is_not(
    answer: Callable[..., Any],
) -> None:
    graph = build_graph(after={"llm_call": lambda state: answer(nots=["x"])}, state_schema=Noted)
    with refused("nots", "mood", "notes"):
        graph.invoke(TASK, context=SHORT)
    with refused("'note'", "notes"):
        build_graph(after={"llm_call": RunnableLambda(note)}).invoke(TASK, context=SHORT)


def test_the_builder_is_langgraphs_own_and_compile_takes_what_it_takes() -> None:
    builder = make_builder(state_schema=Noted)
    assert isinstance(builder, StateGraph)
    builder.add_node(note)
    builder.add_edge("prompt_build", "note")
    assert isinstance(builder.compile(), CompiledStateGraph)
    assert builder.compile().invoke(TASK, context=SHORT)["notes"] == ["", ""]
    options: Any = {"name": "mine", "cache": InMemoryCache(), "store": InMemoryStore()}
    graph = build_graph(interrupt_before=["env_step"], checkpointer=InMemorySaver(), **options)
    graph.invoke(TASK, THREAD, context=SHORT)
    state = graph.get_state(THREAD)
    assert {name: getattr(graph, name) for name in options} == options
    assert state.next == ("env_step",)
    action = state.values["action"]
    assert action and f"Action: {action}" in state.values["reply"]


def test_every_stage_of_ours_can_be_wrapped() -> None:
    """A stage is a plain function; the one that calls the model is a runnable."""
    wrapped = []

    def wrap(name: str) -> Any:
        ours: Any = getattr(rpms.nodes, name)

        def stage(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
            wrapped.append(name)
            if name == "llm_call":
                return ours.invoke(state)
            return ours(state, runtime) if name in TAKE_THE_RUNTIME else ours(state)

        return stage

    context = RunContext(max_steps=1, guard="offer")
    graph = build_graph({name: wrap(name) for name in STAGES})
    assert graph.invoke(TASK, context=context)["steps"] == 1
    assert wrapped == [*STAGES]


@dataclass
class User:
    user: str = "somebody"


@dataclass
class Aware(User):
    rpms: RunContext = field(default_factory=lambda: RunContext(max_steps=1))


@pytest.mark.parametrize(
    ("context", "schema"), [(User(), User), ({"user": "x"}, User), ({"user": "x"}, None)]
)
def test_under_a_context_that_knows_nothing_of_us(context: Any, schema: Any) -> None:
    settled = build_graph(context=SHORT)
    assert around(settled, schema).invoke(TASK, context=context)["steps"] == 2
    with refused("build_graph(context=", "rpms"):
        around(build_graph(), schema).invoke(TASK, context=context)


def test_the_settings_of_a_graph_count_where_the_call_gives_none() -> None:
    """At the top, within another graph, and for an episode in one call."""
    settled = build_graph(context=SHORT)
    assert settled.invoke(TASK)["condition"] == "A"
    assert around(settled).invoke(TASK)["steps"] == 2
    assert run_episode(2, graph=settled)["condition"] == "A"
    changed = settled.with_config(tags=["a copy"]).invoke(TASK, context={"max_steps": 1})
    assert (changed["condition"], changed["steps"]) == ("A", 1), "one of the call's, the rest ours"
    for context, schema in (
        (Aware(), Aware),
        ({"rpms": {"max_steps": 1}}, None),
        ({"max_steps": 1}, None),
    ):
        for graph in (build_graph(), settled):
            assert around(graph, schema).invoke(TASK, context=context)["steps"] == 1


def test_a_pause_within_reaches_the_graph_around() -> None:
    ours = build_graph(context=SHORT, interrupt_before=["env_step"])
    graph = around(ours, User, checkpointer=InMemorySaver())
    graph.invoke(TASK, THREAD, context=User())
    (task,) = graph.get_state(THREAD, subgraphs=True).tasks
    assert task.state.next == ("env_step",) and task.state.values["action"]
    graph.invoke(None, THREAD, context=User())
    assert graph.invoke(None, THREAD, context=User())["steps"] == 2


class Runs(BaseCallbackHandler):
    """What any tracer is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[str], dict[str, Any]]] = []

    def on_chain_start(self, *args: Any, **details: Any) -> None:
        self.seen.append((details["name"], details["tags"], details["metadata"]))

    on_chat_model_start = on_chain_start


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_trace_says_what_it_is_of(asynchronous: bool) -> None:
    runs = Runs()
    config = {"callbacks": [runs], "tags": ["mine"]}
    if asynchronous:
        await arun_episode(**TASK, config=config, context=SHORT)
    else:
        run_episode(**TASK, config=config, context=SHORT)
    about = {**TASK, "condition": "A", "model": "sim"}
    for name, tags, metadata in runs.seen:
        if not name.startswith("step "):
            assert {"A", "mine"} <= {*tags} and about.items() <= metadata.items(), name
    assert runs.seen[0][0] == "rpms"
    calls = {name: (tags, metadata) for name, tags, metadata in runs.seen if "step" in metadata}
    assert list(calls) == ["step 1", "step 2"]
    tags, metadata = calls["step 2"]
    assert metadata["step"] == 2 and metadata["task"].endswith("trial_GU0002")
    assert {**about, "task": metadata["task"]}.items() <= metadata.items()
    assert {"A", "alfworld", "mine"} <= {*tags} and metadata["langgraph_node"] == "llm_call"


def test_tokens_are_shown_as_they_come_and_the_prompt_has_messages() -> None:
    """Prompts are no news: the stream shows what the model says, also when it is asked again."""
    replies = [AIMessage("Action: open moon 1"), *[AIMessage("Action: look")] * 3]
    graph = build_graph(model=GenericFakeChatModel(messages=iter(replies)))
    context = RunContext(max_steps=2, guard="verify")
    shown, last = [], []
    for mode, part in graph.stream(TASK, context=context, stream_mode=["messages", "values"]):
        if mode == "messages":
            shown.append((part[1]["step"], part[0].content))
            assert isinstance(part[0], AIMessageChunk) and part[1]["langgraph_node"] == "llm_call"
        elif len(part.get("prompt", [])) > len(last):
            last = part["prompt"]
    assert "".join(text for step, text in shown if step == 1) == "Action: open moon 1Action: look"
    assert len(shown) > 6
    assert isinstance(last[0], SystemMessage) and isinstance(last[-1], HumanMessage)


def mark_unknown(state: EpisodeState) -> Any:
    return {"recalls": [{**recall, "dropped_by": "mine"} for recall in state["recalls"]]}


def remove(state: EpisodeState) -> Any:
    return {"recalls": []}


@pytest.mark.parametrize(
    ("stage", "names"),
    [(mark_unknown, "recalls[0]['dropped_by'] 'scf' 'mine'"), (remove, "recalls rpms.drop")],
)
def test_a_custom_filter_marks_recalls_with_an_outcome_and_removes_none(
    stage: Any, names: str
) -> None:
    with refused(*names.split()):
        build_graph({"scf": stage}).invoke(TASK, context=RunContext(max_steps=2))
