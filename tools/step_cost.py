"""How much CPU a step takes: an episode of D with guard verify, beside a graph of empty nodes.

The median over the steps of some generated homes, played by the planner:

    python -m tools.step_cost

The second graph has as many nodes in a row as a step of the first, and the same state. What it
takes is LangGraph's own; the ratio of the two says more than the milliseconds of a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from langgraph.graph import END, START, StateGraph

from rpms import RunContext, build_graph
from rpms.graph.build import STAGES
from rpms.nodes.state import EpisodeState

HOMES = range(12)
STEPS = 20
CONTEXT = RunContext.for_condition("D", guard="verify")


def main() -> None:
    """Print the median of both, and their ratio."""
    app = build_graph(context=CONTEXT)
    ours = [
        step for home in HOMES for step in spent(app.stream({"task": home}, stream_mode="custom"))
    ]
    bare = [*spent(empty_steps())]
    print(f"{median(ours):.1f} ms of CPU a step ({len(ours)} steps), {median(bare):.1f} ms with "
          f"empty nodes: {median(ours) / median(bare):.1f} to 1")  # fmt: skip


def spent(events: Iterable[Any]) -> Iterator[float]:
    """Yield the milliseconds of CPU between one event and the next."""
    before = None
    for _ in events:
        now = time.process_time()
        if before is not None:
            yield (now - before) * 1e3
        before = now


def empty_steps() -> Iterator[Any]:
    """Run a loop of nodes that change one key, on the state of an episode."""
    builder: StateGraph[Any] = StateGraph(EpisodeState)
    nodes = STAGES[1:]
    for name, following in zip(nodes, (*nodes[1:], ""), strict=True):
        builder.add_node(name, lambda state: {"steps": state["steps"] + 1})
        if following:
            builder.add_edge(name, following)
    builder.add_edge(START, nodes[0])
    last = len(nodes) * STEPS
    builder.add_conditional_edges(nodes[-1], lambda s: END if s["steps"] >= last else nodes[0])
    updates = builder.compile().stream({"steps": 0}, {"recursion_limit": last + 1})
    yield from (update for update in updates if nodes[-1] in update)


if __name__ == "__main__":
    main()
