"""Nodes of one's own in the graph: replacements for the stages, and chains before or after them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache, partial, wraps
from inspect import iscoroutinefunction
from itertools import pairwise
from typing import Any, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rpms.graph.compiled import Builder
from rpms.models.retrying import FIRST_TRIES, RETRY
from rpms.nodes.state import STATE_KEYS, EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.errors import RpmsError

Node = Callable[..., Any] | Runnable[Any, Any]
StageNodes = Mapping[str, Node | list[Node]]
SHOWN = 60
"""Characters of a wrong value that an error shows."""
# A replacement gets few retries, so that its errors show soon.
RETRIED = {"llm_call": {"retry_policy": RETRY._replace(max_attempts=FIRST_TRIES)}}


def put_in(
    builder: Builder,
    stages: Collection[str],
    nodes: StageNodes,
    before: StageNodes,
    after: StageNodes,
) -> None:
    """Put the caller's nodes into a complete graph of the stages."""
    builder.own_nodes = {}
    for stage, (node,) in _chains("nodes", nodes, stages).items():
        if handler := builder.nodes.pop(stage).error_handler_node:
            del builder.nodes[handler]
        _add(builder, stages, node, stage, **RETRIED.get(stage, {}))
    for stage, added in _chains("before", before, stages).items():
        chain = [*(_add(builder, stages, node) for node in added), stage]
        _redirect(builder, stage, chain[0])
        builder.edges |= {*pairwise(chain)}
    for stage, added in _chains("after", after, stages).items():
        chain = [stage, *(_add(builder, stages, node) for node in added)]
        builder.edges = {(chain[-1] if a == stage else a, b) for a, b in builder.edges}
        if stage in builder.branches:
            builder.branches[chain[-1]] = builder.branches.pop(stage)
        builder.edges |= {*pairwise(chain)}
    for name in builder.own_nodes:
        if builder.nodes[name].ends:  # it returns a Command, which chooses the next node
            builder.edges = {edge for edge in builder.edges if edge[0] != name}
            builder.branches.pop(name, None)


def _redirect(builder: Builder, stage: str, first: str) -> None:
    """Let every edge that leads to a stage lead to another node."""
    builder.edges = {(a, first if b == stage else b) for a, b in builder.edges}
    for branches in builder.branches.values():
        for name, branch in branches.items():
            ends = {key: first if end == stage else end for key, end in (branch.ends or {}).items()}
            branches[name] = branch._replace(ends=ends)


def _add(
    builder: Builder, stages: Collection[str], node: Node, name: str = "", **options: Any
) -> str:
    """Add a node as the stage ``name``, or under the name of its function; return the name."""
    if not name:
        name = node.get_name() if isinstance(node, Runnable) else getattr(node, "__name__", "")
        name = name or type(node).__name__
        if name in (*stages, *builder.nodes):
            raise RpmsError(f"there is a node '{name}' already; give yours another name")
    checked = _with_update_check(name, node, builder)
    builder.add_node(name, checked, **options)
    builder.own_nodes[name] = node
    return name


def schemas(state_schema: type[EpisodeState], output_schema: type[EpisodeOutput]) -> list[Any]:
    """The schemas of input and output, with the caller's own state keys."""
    hints = partial(get_type_hints, include_extras=True)
    if missing := sorted(STATE_KEYS - hints(state_schema).keys()):
        raise RpmsError(f"state_schema must extend rpms.EpisodeState; it lacks {missing[0]}")
    ends: list[Any] = [EpisodeInput, output_schema]
    if extra := {key: kind for key, kind in hints(state_schema).items() if key not in STATE_KEYS}:
        ends = [TypedDict(end.__name__, {**hints(end), **extra}, total=False) for end in ends]  # type: ignore[operator]
    return ends


def require_chat_model(model: object) -> None:
    """Check ``model`` early: anything else would only fail in the middle of an episode."""
    if not isinstance(model, BaseChatModel | None):
        hint = f"; a name goes into the context: RunContext({model=})"
        kind = f"a {type(model).__name__}{hint if isinstance(model, str) else ''}"
        raise RpmsError(f"model= takes a LangChain chat model, not {kind}")


def _chains(argument: str, mapping: StageNodes, stages: Collection[str]) -> dict[str, list[Node]]:
    """The caller's nodes of every stage, in order."""
    if unknown := sorted(set(mapping) - set(stages)):
        raise RpmsError(f"no stage called {', '.join(unknown)}; the stages are {', '.join(stages)}")
    chains: dict[str, list[Node]] = {}
    for stage, value in mapping.items():
        nodes: list[Any] = value if isinstance(value, list) and argument != "nodes" else [value]
        for node in nodes:
            if not (callable(node) or isinstance(node, Runnable)):
                wrong = f"must be a function of the state, not a {type(node).__name__}"
                raise RpmsError(f"{argument}['{stage}'] {wrong}")
        if nodes:
            chains[stage] = nodes
    return chains


def _with_update_check(name: str, node: Node, builder: Builder) -> Any:
    """Wrap a custom node so that an update that the state cannot hold is an error.

    LangGraph would drop unknown keys silently, and values of another type fail stages later. It
    reads a function's signature to find out which arguments to pass, so the wrapper keeps the
    signature.
    """
    if isinstance(node, CompiledStateGraph):
        return node  # a subgraph may have other keys
    check = partial(_check_update, name, get_type_hints(builder.state_schema, include_extras=True))
    if isinstance(node, Runnable):
        return node | RunnableLambda(check)
    if iscoroutinefunction(node):

        @wraps(node)
        async def acall(state: Any, **kwargs: Any) -> Any:
            return check(await node(state, **kwargs), state)

        return acall

    @wraps(node)
    def call(state: Any, **kwargs: Any) -> Any:
        return check(node(state, **kwargs), state)

    return call


def _check_update(
    node: str, kinds: Mapping[str, Any], update: Any, state: Mapping[str, Any] | None = None
) -> Any:
    changed = update.update if isinstance(update, Command) and not update.graph else update
    if isinstance(changed, Mapping | None) and not isinstance(update, Command):
        _check_complete(node, changed or {}, state)
    if not isinstance(changed, Mapping):
        return update
    if unknown := sorted(map(str, changed.keys() - kinds.keys())):
        raise RpmsError(
            f"stage '{node}' returned {', '.join(unknown)}, which the state does not have; its "
            f"keys are: {', '.join(sorted(kinds))}"
        )
    for key, value in changed.items():
        if key == "prompt" or isinstance(value, Overwrite):  # LangChain takes messages in any form
            continue
        try:
            _adapter(kinds[key]).validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"[{part!r}]" for part in first["loc"])
            came = first["input"] if first["type"] != "missing" else "nothing"
            raise RpmsError(
                f"stage '{node}' returned {key}{place}: {first['msg'].lower()}; it is "
                f"{type(came).__name__} {str(came)[:SHOWN]!r}"
            ) from None
    if node == "llm_call" and "reply" in changed and "action" not in changed:
        raise RpmsError(
            "stage 'llm_call' returned a reply without its action; read it with "
            "rpms.prompts.reply.read_action(reply, env, manual) and return it as 'action'"
        )
    if node not in ("belief_update", "goal_retrieval") and "recalls" in changed and state:
        removed = len(state.get("recalls", [])) - len(changed["recalls"])
        if removed > 0:
            raise RpmsError(
                f"stage '{node}' removed {removed} of the recalls; keep them in the list and mark "
                "them with rpms.drop(recall, 'scf', reason), so that reports count them"
            )
    return update


def _check_complete(node: str, changed: Mapping[str, Any], state: Mapping[str, Any] | None) -> None:
    """Without these keys an episode fails later, or does not end."""
    if node == "env_step" and "done" not in changed:
        raise RpmsError("stage 'env_step' did not return done: True or False, has it ended?")
    if node == "belief_update" and state and "sub_goal" not in {*changed, *state}:
        raise RpmsError(
            "stage 'belief_update' did not return sub_goal: a rpms.SubGoal, which later stages read"
        )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
