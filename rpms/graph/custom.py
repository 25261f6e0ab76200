"""Custom nodes: replacements for the stages, and nodes that run before or after them.

``StageGraph`` has the three methods of LangGraph's ``StateGraph`` that ``build.py`` uses. An edge
to a stage leads to the first node added before it, and an edge from a stage starts at the last node
added after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
from rpms.vocabulary.recall import RECALL_OUTCOMES
from rpms.vocabulary.spelling import offer

Node = Callable[..., Any] | Runnable[Any, Any]
StageNodes = Mapping[str, Node | list[Node]]
Builder = StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]
Route = Callable[..., str]


class StageGraph:
    """Builds a ``StateGraph`` of stages, with the caller's nodes in and around them."""

    def __init__(
        self,
        stages: Collection[str],
        state_schema: type[EpisodeState],
        nodes: StageNodes | None = None,
        before: StageNodes | None = None,
        after: StageNodes | None = None,
        output_schema: type[EpisodeOutput] = EpisodeOutput,
    ) -> None:
        self.stages, self.builder = stages, _empty_builder(state_schema, output_schema)
        self._replacements = _by_stage("nodes", nodes, stages)
        self._before = _by_stage("before", before, stages)
        self._after = _by_stage("after", after, stages)
        self._first, self._last = {START: START, END: END}, {START: START}
        self.routes: dict[str, Route] = {}

    def add_node(self, name: str, stage: Node, **options: Any) -> None:
        """Add a stage, or the caller's replacement, and the caller's nodes around it.

        The option ``replacement`` holds the options that a replacement is added with instead.
        """
        replacement = options.pop("replacement", {})
        if self._replacements[name]:
            self._add(self._replacements[name][0], name, **replacement)
        else:
            self.builder.add_node(name, stage, **options)
        chain = [*map(self._add, self._before[name]), name, *map(self._add, self._after[name])]
        self._first[name], self._last[name] = chain[0], chain[-1]
        for start, end in pairwise(chain):
            self._connect(start, end)

    def add_edge(self, start: str, end: str) -> None:
        self._connect(self._last[start], self._first[end])

    def add_conditional_edges(self, start: str, route: Route) -> None:
        """Go from a stage to the one that ``route`` returns, one of those in its ``Literal``."""
        self.routes[start] = route
        if not self.builder.nodes[self._last[start]].ends:
            targets = get_args(get_type_hints(route)["return"])
            paths = {target: self._first[target] for target in targets}
            self.builder.add_conditional_edges(self._last[start], route, paths)

    def _connect(self, start: str, end: str) -> None:
        # A node with ``ends`` returns a Command, which chooses the next node.
        if start == START or not self.builder.nodes[start].ends:
            self.builder.add_edge(start, end)

    def _add(self, node: Node, name: str = "", **options: Any) -> str:
        """Add a node as the stage ``name``, or under the name of its function; return the name."""
        if not name:
            name = node.get_name() if isinstance(node, Runnable) else getattr(node, "__name__", "")
            name = name or type(node).__name__
            if name in (*self.stages, *self.builder.nodes):
                raise RpmsError(f"there is a node '{name}' already; give yours another name")
        checked = _with_update_check(name, node, self.builder.channels)
        self.builder.add_node(name, checked, **options)
        return name


def _empty_builder(state_schema: type[EpisodeState], output_schema: type[EpisodeOutput]) -> Builder:
    """Return a graph without nodes; the caller's extra state keys join its input and output."""
    hints = partial(get_type_hints, include_extras=True)
    if missing := sorted(STATE_KEYS - hints(state_schema).keys()):
        raise RpmsError(f"state_schema must extend rpms.EpisodeState; it lacks {missing[0]}")
    schemas: list[Any] = [EpisodeInput, output_schema]
    if extra := {key: kind for key, kind in hints(state_schema).items() if key not in STATE_KEYS}:
        schemas = [TypedDict(end.__name__, {**hints(end), **extra}, total=False) for end in schemas]  # type: ignore[operator]
    return Builder(state_schema, RunContext, input_schema=schemas[0], output_schema=schemas[1])


def require_chat_model(model: object) -> None:
    """Check ``model`` early: anything else would only fail in the middle of an episode."""
    if not isinstance(model, BaseChatModel | None):
        hint = f"; a name goes into the context: RunContext({model=})"
        kind = f"a {type(model).__name__}{hint if isinstance(model, str) else ''}"
        raise RpmsError(f"model= takes a LangChain chat model, not {kind}")


def _by_stage(
    argument: str, mapping: StageNodes | None, stages: Collection[str]
) -> dict[str, list[Any]]:
    """Return the caller's nodes of every stage, in order."""
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


def _with_update_check(name: str, node: Node, keys: Collection[str]) -> Any:
    """Wrap a custom node so that an update that the state cannot hold is an error.

    LangGraph would drop unknown keys silently. It reads a function's signature to find out which
    arguments to pass, so the wrapper keeps the signature.
    """
    if isinstance(node, CompiledStateGraph):
        return node  # a subgraph may have other keys
    if isinstance(node, Runnable):
        return node | RunnableLambda(partial(_check_update, name, keys))
    if iscoroutinefunction(node):

        @wraps(node)
        async def acall(state: Any, **kwargs: Any) -> Any:
            return _check_update(name, keys, await node(state, **kwargs), state)

        return acall

    @wraps(node)
    def call(state: Any, **kwargs: Any) -> Any:
        return _check_update(name, keys, node(state, **kwargs), state)

    return call


def _check_update(
    node: str, keys: Collection[str], update: Any, state: Mapping[str, Any] | None = None
) -> Any:
    changed = update.update if isinstance(update, Command) and not update.graph else update
    if not isinstance(changed, Mapping):
        return update
    if unknown := sorted(map(str, changed.keys() - keys)):
        raise RpmsError(
            f"stage '{node}' returned {', '.join(unknown)}, which the state does not have; its "
            f"keys are: {', '.join(sorted(keys))}"
        )
    if node == "llm_call" and "reply" in changed and "action" not in changed:
        raise RpmsError(
            "stage 'llm_call' returned a reply without its action; read it with "
            "rpms.prompts.reply.read_action(reply, env, manual) and return it as 'action'"
        )
    if recalls := changed.get("recalls"):
        _check_outcomes(node, recalls)
    if node != "goal_retrieval" and "recalls" in changed and state:
        removed = len(state.get("recalls", [])) - len(changed["recalls"])
        if removed > 0:
            raise RpmsError(
                f"stage '{node}' removed {removed} of the recalls; keep them in the list and mark "
                "them with rpms.drop(recall, 'scf', reason), so that reports count them"
            )
    return update


def _check_outcomes(node: str, recalls: Sequence[Mapping[str, Any]]) -> None:
    """An unknown outcome would be counted as shown, or as nothing."""
    for recall in recalls:
        if (outcome := recall["dropped_by"]) not in RECALL_OUTCOMES:
            choices = [each for each in RECALL_OUTCOMES if each]
            raise RpmsError(
                f"stage '{node}' returned a recall with the unknown outcome '{outcome}'; "
                f"{offer(outcome, choices)}"
            )
