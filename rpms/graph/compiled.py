"""The compiled graph: what a call means by its input, its context and its recursion limit.

LangGraph leads every call (invoke, batch, events, a run on a server, a node of another graph)
through ``stream`` or ``astream``, so the settings of a run are decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import DEFAULT_RECURSION_LIMIT
from langchain_core.runnables.graph import Graph as Drawing
from langgraph.config import get_config
from langgraph.errors import InvalidUpdateError
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate

from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState, ServerOutput
from rpms.vocabulary.context import RunContext, declarations, merged_settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import load_object, only_installed
from rpms.vocabulary.spelling import offer

NEW_EPISODE: EpisodeInput = {"env": "", "split": "", "task": 0, "cross_trial_memory": {}}
"""What an input leaves out; without it, a thread would inherit from its earlier episode."""
LANGGRAPH_DEFAULTS = (DEFAULT_RECURSION_LIMIT, 10_007)
"""Limits that nobody chose: that of LangChain, which ``batch`` passes on, and that of LangGraph."""
LANGGRAPH_KEYS = ("thread_id", "run_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")
LANGGRAPH_PREFIXES = ("__", "langgraph_")
FORM = (
    "rules", "memory", "state_block", "guard", "scf", "arbitration", "model", "base_url",
    "max_steps", "temperature", "seed", "memory_file",
)  # fmt: skip
"""The settings that a form in Studio shows; a run takes the others as well."""


class BadEdit(RpmsError, InvalidUpdateError):
    """An edit of a thread's state that the state cannot hold.

    LangGraph's server shows a client the message of an ``InvalidUpdateError`` only.
    """


class RpmsGraph(CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]):
    """A compiled graph whose own settings are ``defaults``.

    A dictionary as context is partial and is merged over them; a ``RunContext`` is complete.
    """

    builder: Builder

    @property
    def defaults(self) -> RunContext:
        return self.builder.defaults

    def stream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **more: Any
    ) -> Iterator[Any]:
        """Stream an episode like any graph of LangGraph."""
        return super().stream(**self._call(input, config, context, more))

    def astream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **more: Any
    ) -> AsyncIterator[Any]:
        """Stream an episode on an event loop like any graph of LangGraph."""
        return super().astream(**self._call(input, config, context, more))

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit a thread's state; ``update_state`` comes here, too."""
        with self._checked(supersteps):
            return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """The same on an event loop."""
        with self._checked(supersteps):
            return await super().abulk_update_state(config, supersteps)

    @contextmanager
    def _checked(self, supersteps: Sequence[Sequence[StateUpdate]]) -> Iterator[None]:
        """Refuse what the state does not have; LangGraph drops an unknown key silently."""
        keys = sorted(get_type_hints(self.builder.state_schema))
        for values in (update.values for superstep in supersteps for update in superstep):
            if isinstance(values, Mapping) and (unknown := sorted(values.keys() - {*keys})):
                raise BadEdit(f"the state has no key '{unknown[0]}'; {offer(unknown[0], keys)}")
        try:
            yield
        except RpmsError as error:
            raise BadEdit(str(error)) from None

    def _call(
        self, input: Any, config: RunnableConfig | None, context: Any, more: dict[str, Any]
    ) -> dict[str, Any]:
        """The arguments of LangGraph's own ``stream``."""
        sources = (config, self.config, _surrounding())
        configs = [cast(dict[str, Any], each) for each in sources if each]
        configurable = dict[str, Any]()
        for each in reversed(configs):
            configurable |= each.get("configurable") or {}
        is_nested = bool(configurable.get("checkpoint_ns"))
        if "graph_id" in configurable:  # a server
            only_installed()
            if more.get("output_keys") == self.output_channels:
                # It streams updates of the output's keys alone.
                keys = dict.fromkeys([*self.output_channels, *ServerOutput.__annotations__])
                more = {**more, "output_keys": [*keys]}
        if isinstance(input, Mapping):
            input = self._episode(input, is_nested)
        # Within another graph the context is that graph's, and reset_env looks for ours in it.
        if not is_nested:
            context = self._settings(context, configurable)
        elif isinstance(context, Mapping):
            context = merged_settings(self.defaults, context)
        limit = self._limit(configs, context if isinstance(context, RunContext) else self.defaults)
        return {
            **more,
            "input": input,
            "config": {**(config or {}), "recursion_limit": limit},
            "context": context,
        }

    def _episode(self, input: Mapping[str, Any], is_nested: bool) -> dict[str, Any]:
        """The input of a new episode, which takes nothing over from an earlier one.

        Another graph hands over its whole state, so only a call by hand is checked.
        """
        if not is_nested:
            keys = sorted(get_type_hints(self.builder.input_schema))
            if unknown := sorted(map(str, input.keys() - set(keys))):
                raise RpmsError(
                    f"the input has no key '{unknown[0]}'; {offer(unknown[0], keys)} (an episode "
                    "is {'task': 0}, with 'env' and 'split' if you like)"
                )
        # A form in Studio sends its empty fields.
        episode = {k: v for k, v in input.items() if k not in NEW_EPISODE or v not in (None, "")}
        fresh: dict[str, Any] = {**NEW_EPISODE, **episode}
        if is_nested and "task" not in episode:
            del fresh["task"]  # an error, which reset_env words
        return fresh

    def _settings(self, context: Any, configurable: Mapping[str, Any]) -> RunContext:
        """The settings of a run: those of the call, over those that the graph was built with."""
        extra = {name: configurable[name] for name in declarations() if name in configurable}
        if isinstance(context, Mapping):
            context = {
                name: value
                for name, value in context.items()
                if name not in LANGGRAPH_KEYS and not name.startswith(LANGGRAPH_PREFIXES)
            }
        settings = merged_settings(self.defaults, context)
        chosen = context.get("rpms", context) if isinstance(context, Mapping) else settings.plain
        for name, value in extra.items() if context is not None else ():
            if isinstance(chosen, Mapping) and chosen.get(name, value) != value:
                raise RpmsError(
                    f"{name} is {chosen[name]!r} in the context and {value!r} in configurable; "
                    "give it once"
                )
        return merged_settings(settings, extra) if extra else settings

    def _limit(self, configs: list[dict[str, Any]], context: RunContext) -> int:
        """The caller's recursion limit, else one that the episode's steps do not reach."""
        limits = (each["recursion_limit"] for each in configs if "recursion_limit" in each)
        chosen = [limit for limit in limits if limit not in LANGGRAPH_DEFAULTS]
        if chosen:
            return int(chosen[0])
        supersteps = len(self.nodes) + 2 * context.max_retries
        return max(*LANGGRAPH_DEFAULTS, (context.max_steps + 1) * supersteps)

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """The form of the settings: a dozen of them, with the graph's own values as defaults."""
        schema = cast(dict[str, Any], super().get_context_jsonschema())
        values = self.defaults.plain
        fields = {name: {**schema["properties"][name], "default": values[name]} for name in FORM}
        return {**schema, "properties": _Form(fields)}

    def get_graph(self, *args: Any, **options: Any) -> Drawing:
        """The graph as LangGraph draws it, without the handler of a failed model call."""
        return _without_handlers(super().get_graph(*args, **options))

    async def aget_graph(self, *args: Any, **options: Any) -> Drawing:
        """The same on an event loop."""
        return _without_handlers(await super().aget_graph(*args, **options))


class Builder(StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]):
    """LangGraph's ``StateGraph``, compiled with default settings."""

    defaults: RunContext
    own_nodes: dict[str, Any]
    """The caller's nodes by name, replaced stages included."""

    def compile(self, *args: Any, **options: Any) -> RpmsGraph:
        """Compile the graph; the options are LangGraph's."""
        compiled = super().compile(*args, **{"name": "rpms", **options})
        compiled.__class__ = RpmsGraph  # LangGraph's method knows its own class only
        return cast(RpmsGraph, compiled)


class _Form(dict[str, Any]):
    """The fields of the form, which every name counts as one of.

    A server drops settings that are not among the fields; so they reach our own check of names.
    """

    def __contains__(self, name: object) -> bool:
        return True


def _surrounding() -> RunnableConfig | None:
    """The config of the Runnable or graph that the call is made in."""
    try:
        return get_config()
    except RuntimeError:
        return None


def _without_handlers(drawing: Drawing) -> Drawing:
    for name in [name for name in drawing.nodes if name.startswith("__error_handler__")]:
        drawing.remove_node(drawing.nodes[name])
    return drawing


GraphSource = str | RpmsGraph | Callable[[], RpmsGraph]


def open_graph(source: GraphSource) -> RpmsGraph:
    """Return the graph; ``source`` is the graph, a function that returns it, or an import path."""
    name = source if isinstance(source, str) else getattr(source, "__qualname__", "the graph")
    found: Any = load_object(source, "the graph") if isinstance(source, str) else source
    if not isinstance(found, RpmsGraph) and callable(found):
        try:
            found = found()
        except RpmsError:
            raise
        except Exception as error:  # code of the user
            raise RpmsError(f"graph {name}: {type(error).__name__}: {error}") from error
    if not isinstance(found, RpmsGraph):
        raise RpmsError(
            f"graph {name} must be what rpms.build_graph returns, or a function without arguments "
            f"that returns it; it is a {type(found).__name__}"
        )
    return found
