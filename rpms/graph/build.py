"""Wiring the stages into a LangGraph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

import rpms.nodes as stages
from rpms.graph import routing
from rpms.graph.entry import RpmsGraph as RpmsGraph
from rpms.nodes.context import RunContext
from rpms.nodes.retrying import FIRST_TRIES, RETRY
from rpms.nodes.stage import Stage, current, known
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.errors import RpmsError

Swapped = Callable[..., Any] | Runnable[Any, Any]

STAGES: tuple[str, ...] = (
    "reset_env",
    "belief_update",
    "rule_assembly",
    "goal_retrieval",
    "scf",
    "arbitration",
    "prompt_build",
    "llm_call",
    "action_arbitration",
    "env_step",
)


def build_graph(
    nodes: Mapping[str, Swapped] | None = None,
    *,
    model: BaseChatModel | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    reply_cache: str = "",
) -> RpmsGraph:
    """The compiled agent graph, for plain runs and for many episodes on one event loop.

    Args:
        nodes: replacements by stage name, e.g. ``{"scf": my_scf}``. A stage is a function of
            the state (and, if it wants, the runtime) that returns the keys it changes.
        model: a chat model object; without it the context's ``model`` setting is opened.
        checkpointer: keeps episodes resumable; evaluation runs without one.
        store: LangGraph store for deployments that keep memory in a database.
        reply_cache: file of model replies; what was asked before is answered from it, so that a
            run that is repeated or taken up again costs nothing twice.
    """
    refuse_non_model(model)
    swapped = {name: _checked(name, stage) for name, stage in _known_stages(nodes or {}).items()}
    builder: StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput] = StateGraph(
        EpisodeState,
        context_schema=RunContext,
        input_schema=EpisodeInput,
        output_schema=EpisodeOutput,
    )
    for name, stage in {**_own(model, reply_cache), **swapped}.items():
        if name == "llm_call":
            # Whoever brings a stage of their own wants to see its errors, and soon.
            own = name not in swapped
            policy = RETRY if own else RETRY._replace(max_attempts=FIRST_TRIES)
            ended: Any = stages.model_failed if own else None
            builder.add_node(name, stage, retry_policy=policy, error_handler=ended)
        else:
            builder.add_node(name, stage)
    builder.add_edge(START, "reset_env")
    for name, route in routing.ROUTES.items():
        builder.add_conditional_edges(name, route)
    builder.add_edge("arbitration", "prompt_build")
    builder.add_edge("prompt_build", "llm_call")
    compiled = builder.compile(checkpointer=checkpointer, store=store, name="rpms")
    return RpmsGraph(**vars(compiled))


def refuse_non_model(model: object) -> None:
    """A name where a model object belongs would only fail in the middle of an episode."""
    if isinstance(model, str):
        raise RpmsError(
            f"model= takes a chat model object; a name goes into the context: "
            f"RunContext(model='{model}')"
        )
    if model is not None and not isinstance(model, BaseChatModel):
        raise RpmsError(f"model= takes a LangChain chat model, not a {type(model).__name__}")


def _own(model: BaseChatModel | None, reply_cache: str) -> dict[str, Any]:
    """Our own stages, in their order."""
    made = {
        "reset_env": stages.make_reset_env(),
        "prompt_build": stages.make_prompt_build(model),
        "llm_call": stages.make_llm_call(model, reply_cache),
        "env_step": Stage("env_step", stages.env_step, stages.async_env_step),
    }
    return {name: made.get(name) or Stage(name, getattr(stages, name)) for name in STAGES}


def _known_stages(nodes: Mapping[str, Swapped]) -> Mapping[str, Swapped]:
    if unknown := sorted(set(nodes) - set(STAGES)):
        raise RpmsError(f"no stage called {', '.join(unknown)}; the stages are {', '.join(STAGES)}")
    for name, stage in nodes.items():
        if not (callable(stage) or isinstance(stage, Runnable)):
            raise RpmsError(
                f"nodes['{name}'] must be a function of the state, not a {type(stage).__name__}"
            )
    return nodes


def _checked(name: str, stage: Swapped) -> Any:
    """A stage of the caller's own whose updates may only have keys that the state has.

    LangGraph reads from a function's signature what it wants to be given, so that is kept.
    """
    if isinstance(stage, Stage):
        return stage
    if isinstance(stage, Runnable):
        return stage | RunnableLambda(partial(known, name))
    if iscoroutinefunction(stage):

        @wraps(stage)
        async def acall(state: Any, **kwargs: Any) -> Any:
            return known(name, await stage(state, **_resolved(name, state, kwargs)))

        return acall

    @wraps(stage)
    def call(state: Any, **kwargs: Any) -> Any:
        return known(name, stage(state, **_resolved(name, state, kwargs)))

    return call


def _resolved(name: str, state: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What LangGraph gives to a stage, with the settings that the episode goes on under."""
    return given | {"runtime": current(name, state)} if "runtime" in given else given
