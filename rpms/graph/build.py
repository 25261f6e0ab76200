"""Wiring the stages into a LangGraph, with a look at what comes into it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from inspect import iscoroutinefunction
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

import rpms.nodes as stages
from rpms.graph import routing
from rpms.nodes.retrying import FIRST_TRIES, RETRY
from rpms.nodes.stage import Stage, current, known
from rpms.nodes.state import STATE_KEYS, EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

Node = Callable[..., Any] | Runnable[Any, Any]
Added = Mapping[str, Node | list[Node]]
Builder = StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]

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
OUR_CALL: dict[str, Any] = {"retry_policy": RETRY, "error_handler": stages.model_failed}
# Whoever brings a stage of their own wants to see its errors, and soon.
OWN_CALL = {"retry_policy": RETRY._replace(max_attempts=FIRST_TRIES)}


class RpmsGraph(CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]):
    """What ``build_graph`` returns; every way of running a graph goes through these two."""

    def __init__(self, *, settings: RunContext | None = None, **attributes: Any) -> None:
        """A compiled graph's attributes, and settings for runs that name no others."""
        super().__init__(**attributes)
        self.settings = settings

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        return super().stream(input, **self._prepared(input, config, options))

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        return super().astream(input, **self._prepared(input, config, options))

    def _prepared(
        self, input: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> dict[str, Any]:
        """LangGraph's options, with the settings of this run and what its traces are found by."""
        self._refuse_senseless(input, config)
        named, tracing = options.get("context"), dict[str, Any](config or {})
        context = settings(named)
        if self.settings is not None:
            context = context.over(self.settings.plain)
        elif named is None and "langgraph_node" in ensure_config(config)["metadata"]:
            return {**options, "config": config}  # the settings are those of the graph around it
        if isinstance(input, Mapping):  # of an episode taken up, its model calls alone know
            about = {"world": input.get("env"), "split": input.get("split")}
            about |= {"task": input.get("task"), "condition": context.name, "model": context.model}
            metadata = {name: value for name, value in about.items() if value is not None}
            tags = [context.name, *(tracing.get("tags") or ())]
            tracing |= {"tags": tags, "metadata": {**metadata, **(tracing.get("metadata") or {})}}
        return {**options, "context": context, "config": tracing}

    def _refuse_senseless(self, input: Any, config: RunnableConfig | None) -> None:
        """Refuse an input with keys that the graph does not have; it would play the first task.

        As a node of another graph it is handed the whole state of that one, where other keys are
        nobody's mistake; only a state that has none of ours is refused there.
        """
        keys = list(self.builder.schemas[self.builder.input_schema])
        within = "langgraph_node" in ((config or {}).get("metadata") or {})
        if isinstance(input, Mapping):
            unknown = [str(key) for key in input if key not in keys]
            if unknown and not (within and len(unknown) < len(input)):
                raise RpmsError(f"unknown input key '{unknown[0]}'; {offer(unknown[0], keys)}")
        elif not within and not isinstance(input, Command | None):
            raise RpmsError(
                f"the input must be a dictionary of {', '.join(keys)}, not {input!r:.80}"
            )


def build_graph(
    nodes: Mapping[str, Node] | None = None,
    *,
    after: Added | None = None,
    before: Added | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
    **compiling: Any,
) -> RpmsGraph:
    """The compiled agent graph, for plain runs and for many episodes on one event loop.

    A node is what LangGraph takes as one: a function of the state (and, if it wants, of the
    runtime) that returns the keys it changes, a coroutine function, a Runnable, a compiled graph.

    Args:
        nodes: replacements by stage name, e.g. ``{"scf": my_scf}``.
        after: nodes of your own that follow a stage, one or a list; each keeps its own name. One
            that is annotated to return ``Command[Literal[...]]`` says itself where it goes on.
        before: the same, for what comes right before a stage; skipped where the stage is.
        state_schema: ``EpisodeState`` with more keys; they are taken with the input, and come
            out with the output.
        context: settings of every run that names no others, e.g. within another graph.
        model: a chat model object; without it the context's ``model`` setting is opened.
        reply_cache: file of model replies; what was asked before is answered from it, so that a
            run that is repeated or taken up again costs nothing twice.
        compiling: what LangGraph's ``compile`` takes: ``checkpointer``, ``store``, ``cache``,
            ``interrupt_before``, ``interrupt_after``, ``name``.
    """
    added: Any = {"after": after, "before": before, "state_schema": state_schema}
    builder = make_builder(nodes, **added, model=model, reply_cache=reply_cache)
    compiled = builder.compile(**{"name": "rpms", **compiling})
    return RpmsGraph(settings=context, **vars(compiled.copy()))  # looks at what comes in


def make_builder(
    nodes: Mapping[str, Node] | None = None,
    *,
    after: Added | None = None,
    before: Added | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
) -> Builder:
    """The graph before it is compiled; the arguments are those of ``build_graph``."""
    refuse_non_model(model)
    builder = _empty_builder(state_schema)
    swapped = _by_stage("nodes", nodes)
    earlier, later = _by_stage("before", before), _by_stage("after", after)
    ours = {
        "prompt_build": stages.make_prompt_build(model),
        "llm_call": stages.make_llm_call(model, reply_cache),
    }
    entries, exits, edges = {"__end__": "__end__"}, {}, list[tuple[str, str]]()
    for name in STAGES:
        (stage,) = swapped[name] or [ours.get(name) or Stage(name, getattr(stages, name))]
        calling = (OWN_CALL if swapped[name] else OUR_CALL) if name == "llm_call" else {}
        chain = [
            *(_add(builder, node) for node in earlier[name]),
            _add(builder, stage, name, **calling),
            *(_add(builder, node) for node in later[name]),
        ]
        entries[name], exits[name] = chain[0], chain[-1]
        edges += pairwise(chain)
    edges.append((exits["arbitration"], entries["prompt_build"]))
    edges.append((exits["prompt_build"], entries["llm_call"]))
    builder.add_edge(START, entries["reset_env"])
    for start, end in edges:
        if not builder.nodes[start].ends:  # else the node says itself where it goes on
            builder.add_edge(start, end)
    for name, route in routing.ROUTES.items():
        if not builder.nodes[exits[name]].ends:
            targets = get_args(get_type_hints(route)["return"])
            ways = {target: entries[target] for target in targets}
            builder.add_conditional_edges(exits[name], route, ways)
    return builder


def _empty_builder(state_schema: type[EpisodeState]) -> Builder:
    """With the schemas alone; keys of one's own go in with the input and come out at the end."""
    hints = partial(get_type_hints, include_extras=True)
    if lacking := sorted(STATE_KEYS - hints(state_schema).keys()):
        raise RpmsError(f"state_schema must extend rpms.EpisodeState; it lacks {lacking[0]}")
    ends: list[Any] = [EpisodeInput, EpisodeOutput]
    if own := {key: kind for key, kind in hints(state_schema).items() if key not in STATE_KEYS}:
        ends = [TypedDict(end.__name__, {**hints(end), **own}, total=False) for end in ends]  # type: ignore[operator]
    return Builder(state_schema, RunContext, input_schema=ends[0], output_schema=ends[1])


def refuse_non_model(model: object) -> None:
    """A name where a model object belongs would only fail in the middle of an episode."""
    if not isinstance(model, BaseChatModel | None):
        named = f"; a name goes into the context: RunContext({model=})"
        kind = f"a {type(model).__name__}{named if isinstance(model, str) else ''}"
        raise RpmsError(f"model= takes a LangChain chat model, not {kind}")


def _by_stage(argument: str, mapping: Added | None) -> dict[str, list[Any]]:
    """The caller's nodes of every stage, in order."""
    if unknown := sorted(set(mapping or {}) - set(STAGES)):
        raise RpmsError(f"no stage called {', '.join(unknown)}; the stages are {', '.join(STAGES)}")
    nodes: dict[str, list[Any]] = {name: [] for name in STAGES}
    for name, value in (mapping or {}).items():
        nodes[name] = value if isinstance(value, list) and argument != "nodes" else [value]
        for node in nodes[name]:
            if not (callable(node) or isinstance(node, Runnable)):
                wrong = f"must be a function of the state, not a {type(node).__name__}"
                raise RpmsError(f"{argument}['{name}'] {wrong}")
    return nodes


def _add(builder: Builder, node: Node, name: str = "", **options: Any) -> str:
    """Add a node under its own name, or as the stage ``name``; returns the name."""
    if not name:
        own = node.get_name() if isinstance(node, Runnable) else getattr(node, "__name__", "")
        name = own or type(node).__name__
        if name in (*STAGES, *builder.nodes):
            raise RpmsError(f"there is a node '{name}' already; give yours another name")
    builder.add_node(name, _checked(name, node, builder.channels), **options)
    return name


def _checked(name: str, node: Node, keys: Collection[str]) -> Any:
    """A node of the caller's own whose updates may only have keys that the state has.

    LangGraph reads from a function's signature what it wants to be given, so that is kept.
    """
    if isinstance(node, CompiledStateGraph):
        return node  # a graph may have keys that ours has not
    if isinstance(node, Stage):
        return Stage(name, node.run, keys)
    if isinstance(node, Runnable):
        return node | RunnableLambda(partial(known, name, keys))
    if iscoroutinefunction(node):

        @wraps(node)
        async def acall(state: Any, **kwargs: Any) -> Any:
            return known(name, keys, await node(state, **_resolved(name, state, kwargs)))

        return acall

    @wraps(node)
    def call(state: Any, **kwargs: Any) -> Any:
        return known(name, keys, node(state, **_resolved(name, state, kwargs)))

    return call


def _resolved(name: str, state: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What LangGraph gives to a node, with the settings that the episode goes on under."""
    return arguments | {"runtime": current(name, state)} if "runtime" in arguments else arguments
