"""Wiring the stages into a LangGraph, with a look at what comes into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer, Command

import rpms.nodes as stages
from rpms.graph import routing
from rpms.nodes.retrying import FIRST_TRIES, RETRY
from rpms.nodes.stage import Stage, current, known
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

Swapped = Callable[..., Any] | Runnable[Any, Any]
Builder = StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]

KEYS = list(EpisodeInput.__annotations__)
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


class RpmsGraph(CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]):
    """What ``build_graph`` returns; every way of running a graph goes through these two."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        refuse_senseless(input, config, options.get("context"))
        return super().stream(input, config, **options)

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        refuse_senseless(input, config, options.get("context"))
        return super().astream(input, config, **options)


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
    builder = make_builder(nodes, model=model, reply_cache=reply_cache)
    compiled = builder.compile(checkpointer=checkpointer, store=store, name="rpms")
    return RpmsGraph(**vars(compiled.copy()))  # the same graph, which looks at what comes in


def make_builder(
    nodes: Mapping[str, Swapped] | None = None,
    *,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
) -> Builder:
    """The graph before it is compiled; the arguments are those of ``build_graph``."""
    refuse_non_model(model)
    swapped = {name: _checked(name, stage) for name, stage in _known_stages(nodes or {}).items()}
    ours = {
        "prompt_build": stages.make_prompt_build(model),
        "llm_call": stages.make_llm_call(model, reply_cache),
    }
    builder = Builder(
        EpisodeState,
        context_schema=RunContext,
        input_schema=EpisodeInput,
        output_schema=EpisodeOutput,
    )
    for name in STAGES:
        stage = swapped.get(name) or ours.get(name) or Stage(name, getattr(stages, name))
        if name == "llm_call":
            # Whoever brings a stage of their own wants to see its errors, and soon.
            policy = RETRY._replace(max_attempts=FIRST_TRIES) if name in swapped else RETRY
            ended: Any = None if name in swapped else stages.model_failed
            builder.add_node(name, stage, retry_policy=policy, error_handler=ended)
        else:
            builder.add_node(name, stage)
    builder.add_edge(START, "reset_env")
    for name, route in routing.ROUTES.items():
        builder.add_conditional_edges(name, route)
    builder.add_edge("arbitration", "prompt_build")
    builder.add_edge("prompt_build", "llm_call")
    return builder


def refuse_senseless(input: Any, config: RunnableConfig | None, context: Any) -> None:
    """Refuse an input with keys that the graph does not have; it would play the first task.

    As a node of another graph it is handed the whole state of that one, where other keys are
    nobody's mistake; only a state that has none of ours is refused there.
    """
    settings(context)
    within = "langgraph_node" in ((config or {}).get("metadata") or {})
    if isinstance(input, Mapping):
        unknown = [str(key) for key in input if key not in KEYS]
        if unknown and not (within and len(unknown) < len(input)):
            raise RpmsError(f"unknown input key '{unknown[0]}'; {offer(unknown[0], KEYS)}")
    elif not within and not isinstance(input, Command | None):
        raise RpmsError(f"the input must be a dictionary of {', '.join(KEYS)}, not {input!r:.80}")


def refuse_non_model(model: object) -> None:
    """A name where a model object belongs would only fail in the middle of an episode."""
    if isinstance(model, str):
        raise RpmsError(
            f"model= takes a chat model object; a name goes into the context: "
            f"RunContext(model='{model}')"
        )
    if model is not None and not isinstance(model, BaseChatModel):
        raise RpmsError(f"model= takes a LangChain chat model, not a {type(model).__name__}")


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


def _resolved(name: str, state: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What LangGraph gives to a stage, with the settings that the episode goes on under."""
    return arguments | {"runtime": current(name, state)} if "runtime" in arguments else arguments
