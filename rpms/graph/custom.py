"""Stages of one's own: swapped for ours, or added before and after them.

``StageGraph`` has the three methods of LangGraph's ``StateGraph`` that ``build.py`` uses. An edge
to a stage leads to the first node added before it, and an edge from a stage starts at the last node
added after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from inspect import iscoroutinefunction
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from rpms.nodes.state import STATE_KEYS, EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

Node = Callable[..., Any] | Runnable[Any, Any]
Added = Mapping[str, Node | list[Node]]
Builder = StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]
Route = Callable[..., str]


class StageGraph:
    """A graph of stages under construction."""

    def __init__(
        self,
        stages: Collection[str],
        state_schema: type[EpisodeState],
        nodes: Added | None = None,
        before: Added | None = None,
        after: Added | None = None,
    ) -> None:
        self.stages, self.builder = stages, _empty_builder(state_schema)
        self._swapped = _by_stage("nodes", nodes, stages)
        self._before = _by_stage("before", before, stages)
        self._after = _by_stage("after", after, stages)
        self._first, self._last = {START: START, END: END}, {START: START}
        self.routes: dict[str, Route] = {}

    def add_node(self, name: str, stage: Node, **options: Any) -> None:
        """Add a stage, or the caller's in its place, and the caller's nodes around it.

        ``swapped`` among the options has those of a stage of the caller's own.
        """
        swapped = options.pop("swapped", {})
        if self._swapped[name]:
            self._add(self._swapped[name][0], name, **swapped)
        else:
            self.builder.add_node(name, stage, **options)
        chain = [*map(self._add, self._before[name]), name, *map(self._add, self._after[name])]
        self._first[name], self._last[name] = chain[0], chain[-1]
        for start, end in pairwise(chain):
            self._connect(start, end)

    def add_edge(self, start: str, end: str) -> None:
        """Go from one stage to another."""
        self._connect(self._last[start], self._first[end])

    def add_conditional_edges(self, start: str, route: Route) -> None:
        """Go from a stage to the one that the route names, of those in its ``Literal`` type."""
        self.routes[start] = route
        if not self.builder.nodes[self._last[start]].ends:
            targets = get_args(get_type_hints(route)["return"])
            paths = {target: self._first[target] for target in targets}
            self.builder.add_conditional_edges(self._last[start], route, paths)

    def _connect(self, start: str, end: str) -> None:
        if start == START or not self.builder.nodes[start].ends:  # else the node says where to go
            self.builder.add_edge(start, end)

    def _add(self, node: Node, name: str = "", **options: Any) -> str:
        """Add a node under its own name, or as the stage ``name``; returns the name."""
        if not name:
            own = node.get_name() if isinstance(node, Runnable) else getattr(node, "__name__", "")
            name = own or type(node).__name__
            if name in (*self.stages, *self.builder.nodes):
                raise RpmsError(f"there is a node '{name}' already; give yours another name")
        checked = _checked(name, node, self.builder.channels)
        self.builder.add_node(name, checked, **options)
        return name


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


def _by_stage(
    argument: str, mapping: Added | None, stages: Collection[str]
) -> dict[str, list[Any]]:
    """The caller's nodes of every stage, in order."""
    if unknown := sorted(set(mapping or {}) - set(stages)):
        raise RpmsError(f"no stage called {', '.join(unknown)}; the stages are {', '.join(stages)}")
    nodes: dict[str, list[Any]] = {name: [] for name in stages}
    for name, value in (mapping or {}).items():
        nodes[name] = value if isinstance(value, list) and argument != "nodes" else [value]
        for node in nodes[name]:
            if not (callable(node) or isinstance(node, Runnable)):
                wrong = f"must be a function of the state, not a {type(node).__name__}"
                raise RpmsError(f"{argument}['{name}'] {wrong}")
    return nodes


def _checked(name: str, node: Node, keys: Collection[str]) -> Any:
    """A node of the caller's own whose updates may only have keys that the state has.

    LangGraph would drop other keys in silence. It reads from a function's signature which
    arguments the function wants, so the signature is kept.
    """
    if isinstance(node, CompiledStateGraph):
        return node  # a graph may have keys that ours has not
    if isinstance(node, Runnable):
        return node | RunnableLambda(partial(_check_keys, name, keys))
    if iscoroutinefunction(node):

        @wraps(node)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            return _check_keys(name, keys, await node(*args, **kwargs))

        return acall

    @wraps(node)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _check_keys(name, keys, node(*args, **kwargs))

    return call


def _check_keys(node: str, keys: Collection[str], update: Any) -> Any:
    changed = update.update if isinstance(update, Command) and not update.graph else update
    if not isinstance(changed, Mapping):
        return update
    if unknown := changed.keys() - keys:
        raise RpmsError(
            f"stage '{node}' returned {', '.join(sorted(map(str, unknown)))}, which the state "
            f"does not have; its keys are: {', '.join(sorted(keys))}"
        )
    if node == "llm_call" and "reply" in changed and "action" not in changed:
        raise RpmsError(
            "stage 'llm_call' returned a reply without its action; read it with "
            "rpms.prompts.reply.read_action(reply, env, manual) and return it as 'action'"
        )
    return update
