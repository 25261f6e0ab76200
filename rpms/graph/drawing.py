"""Pictures of a graph: LangGraph's Mermaid, and Graphviz' PNG and SVG; both work offline."""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

from langgraph.graph import END, START

from rpms.graph.compiled import RpmsGraph
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import write_whole

Edges = set[tuple[str, str]]
ARROW = re.compile(r"^\t(\w+) (?:-->|-\.->|-\. .* \.->) (\w+);$")
PALE = "#cccccc"
FORMATS = (".mmd", ".png", ".svg")


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


def graphviz(graph: RpmsGraph, context: RunContext | None = None) -> str:
    """The same graph in Graphviz' language."""
    drawing = graph.get_graph()
    every = {(edge.source, edge.target) for edge in drawing.edges}
    taken = taken_edges(graph, context) if context else every
    reached = {name for edge in taken for name in edge}
    lines = ["digraph {", '\tnode [shape=box style="rounded,filled" fillcolor="#f2f0ff"]']
    for name in drawing.nodes:
        pale = "" if name in reached else f' [color="{PALE}" fontcolor="{PALE}" fillcolor=white]'
        lines.append(f'\t"{name}"{pale}')
    for edge in drawing.edges:
        style = "dashed" if edge.conditional else "solid"
        pale = "" if (edge.source, edge.target) in taken else f' color="{PALE}"'
        lines.append(f'\t"{edge.source}" -> "{edge.target}" [style={style}{pale}]')
    return "\n".join([*lines, "}"])


def write_picture(graph: RpmsGraph, file: Path, context: RunContext | None = None) -> None:
    """Write the graph as Mermaid, PNG or SVG, by the file's ending."""
    kind = file.suffix.lower()
    if kind not in FORMATS:
        raise RpmsError(f"--out {file}: the ending must be one of {', '.join(FORMATS)}")
    if kind == ".mmd":
        write_whole(file, f"{mermaid(graph, context)}\n".encode())
        return
    command = ["dot", f"-T{kind[1:]}"]
    try:
        text = graphviz(graph, context).encode()
        picture = subprocess.run(command, input=text, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise RpmsError(
            f"--out {file}: {kind[1:]} needs Graphviz' program dot (Debian, Ubuntu: apt install "
            "graphviz); .mmd needs nothing"
        ) from None
    except subprocess.CalledProcessError as error:
        words = " ".join(error.stderr.decode(errors="replace").split())
        raise RpmsError(f"--out {file}: dot failed: {words}") from None
    write_whole(file, picture)
