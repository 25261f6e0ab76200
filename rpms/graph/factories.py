"""Graphs of one's own: a graph, or a function that returns one, also by import path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rpms.graph.compiled import RpmsGraph
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import load_object

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
