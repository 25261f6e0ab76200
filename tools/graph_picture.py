"""The picture of the graph in the README, made anew by ``python -m tools.graph_picture``.

A column of the stages in their order: what lies between two of them is skipped on the left, and
the ways back are on the right. Drawn here, because Mermaid would be fetched from elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from rpms.graph import STAGES, build_graph

FILE = Path(__file__).resolve().parents[1] / "docs" / "images" / "graph.svg"
NAMES = ["__start__", *STAGES, "__end__"]
OURS = {"action_arbitration"}
"""Stages that the paper does not have, in the colour that the chart of results gives ours."""
LABELS = {"belief_update": "next step", "llm_call": "vetoed"}
"""What a way back means, by where it leads."""
ROW, LEFT, BOX, WIDTH, HEIGHT = 42, 118, 156, 448, 28
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" \
role="img" font-family="sans-serif" font-size="13">
<title>The stages of the graph; a dashed way is taken where a setting or the state says so</title>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker>
<rect width="{0}" height="{1}" fill="#fff"/>
"""


def picture() -> str:
    """The graph as it is built, as SVG."""
    edges = build_graph().get_graph().edges
    ways = [_way(edge.source, edge.target, edge.conditional) for edge in edges]
    head = HEAD.format(WIDTH, ROW * len(NAMES))
    return head + "\n".join([*ways, *map(_box, NAMES)]) + "\n</svg>\n"


def _middle(name: str) -> int:
    return ROW * NAMES.index(name) + ROW // 2


def _box(name: str) -> str:
    """A stage; where it starts and ends is round and pale."""
    colour = "#00897b" if name in OURS else "#3949ab" if name in STAGES else "#78909c"
    corner, y = 5 if name in STAGES else HEIGHT // 2, _middle(name)
    return (
        f'<rect x="{LEFT}" y="{y - HEIGHT // 2}" width="{BOX}" height="{HEIGHT}" rx="{corner}" '
        f'fill="{colour}"/><text x="{LEFT + BOX // 2}" y="{y + 5}" fill="#fff" '
        f'text-anchor="middle">{name.strip("_")}</text>'
    )


def _way(source: str, target: str, conditional: bool) -> str:
    """Straight down to the next stage; past others in a curve, the wider the more they are."""
    start, end = _middle(source), _middle(target)
    rows, label = (end - start) // ROW, ""
    if rows == 1:
        path = f"M{LEFT + BOX // 2} {start + HEIGHT // 2}V{end - HEIGHT // 2}"
    else:
        side, reach = (LEFT, -24 - 13 * rows) if rows > 0 else (LEFT + BOX, 17 - 15 * rows)
        slant = 7 if rows > 0 else -7  # out below, in above: two ways at a stage do not touch
        path = f"M{side} {start + slant}C{side + reach} {start},{side + reach} {end},"
        path += f"{side} {end - slant}"
        if rows < 0:
            x, y = side + reach * 3 // 4 + 6, (start + end) // 2 + 4
            label = f'<text x="{x}" y="{y}" fill="#555">{LABELS[target]}</text>'
    dash = ' stroke-dasharray="4 3"' if conditional else ""
    return f'<path d="{path}" fill="none" stroke="#555"{dash} marker-end="url(#tip)"/>{label}'


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
