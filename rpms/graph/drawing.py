"""LangGraph's Mermaid text of a graph, with the path of some settings in full and the rest pale."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

from langgraph.graph import END, START

from rpms.graph.compiled import RpmsGraph
from rpms.vocabulary.context import RunContext

Edges = set[tuple[str, str]]
ARROW = re.compile(r"^\t(\w+) (?:-->|-\.->|-\. .* \.->) (\w+);$")


def taken_edges(graph: RpmsGraph, context: RunContext) -> Edges:
    """The edges that an episode with these settings may take."""
    builder = graph.builder
    states: list[Any] = [
        {"settings": context.plain, "done": done, "decisions": [{"verdict": verdict}]}
        for done, verdict in product((False, True), ("accepted", "retried"))
    ]
    edges: Edges = set()
    pending, reached = [START], {START, END}
    while pending:
        start = pending.pop()
        ends = {target for source, target in builder.edges if source == start}
        if start in builder.nodes:  # a node that returns a Command
            ends |= set(builder.nodes[start].ends or ())
        for branch in builder.branches.get(start, {}).values():
            routes: set[Any] = {branch.path.invoke(state) for state in states}
            ends |= {(branch.ends or {}).get(route, route) for route in routes}
        edges |= {(start, end) for end in ends}
        pending += ends - reached
        reached |= ends
    return edges


def mermaid(graph: RpmsGraph, context: RunContext | None = None) -> str:
    """LangGraph's Mermaid text; with settings, what they do not reach is pale."""
    drawing = graph.get_graph()
    lines = drawing.draw_mermaid().rstrip().splitlines()
    if context is None:
        return "\n".join(lines)
    taken = taken_edges(graph, context)
    arrows = [match.groups() for line in lines if (match := ARROW.match(line))]
    pale_edges = [str(number) for number, arrow in enumerate(arrows) if arrow not in taken]
    pale_nodes = sorted(drawing.nodes.keys() - {name for edge in taken for name in edge})
    if pale_nodes:
        lines += ["\tclassDef pale opacity:0.3", f"\tclass {','.join(pale_nodes)} pale"]
    if pale_edges:
        lines.append(f"\tlinkStyle {','.join(pale_edges)} opacity:0.3")
    return "\n".join(lines)
