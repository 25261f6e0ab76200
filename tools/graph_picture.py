"""The picture of the graph in the README, made anew by ``python -m tools.graph_picture``.

A column of the stages in their order: what lies between two of them is passed on the left, and
the ways back are on the right. Drawn here, because Mermaid would be fetched from elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from rpms.graph import STAGES, build_graph

FILE = Path(__file__).resolve().parents[1] / "docs" / "images" / "graph.svg"
NAMES = ["__start__", *STAGES, "__end__"]
# Pale where it starts and ends; our own stage as the chart of results has what is ours.
COLOURS = {"__start__": "#78909c", "__end__": "#78909c", "action_arbitration": "#00897b"}
BACK = {"belief_update": "next step", "llm_call": "vetoed"}
"""What a way back means, by where it leads."""
ROW, LEFT, BOX, HALF = 42, 118, 156, 14
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 448 {0}" width="448" height="{0}" \
role="img" font-family="sans-serif" font-size="13">
<title>The stages of the graph; a dashed way is taken where a setting or the state says so</title>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker><rect width="448" height="{0}" \
fill="#fff"/>"""


def picture() -> str:
    """The graph as it is built, as SVG."""
    ways = [_way(*edge) for edge in build_graph().get_graph().edges]
    return "\n".join([HEAD.format(ROW * len(NAMES)), *ways, *map(_box, NAMES), "</svg>\n"])


def _middle(name: str) -> int:
    return ROW * NAMES.index(name) + ROW // 2


def _box(name: str) -> str:
    y, colour = _middle(name), COLOURS.get(name, "#3949ab")
    return (
        f'<rect x="{LEFT}" y="{y - HALF}" width="{BOX}" height="{2 * HALF}" rx="5" fill="{colour}"'
        f'/><text x="{LEFT + BOX // 2}" y="{y + 5}" fill="#fff" text-anchor="middle">'
        f"{name.strip('_')}</text>"
    )


def _way(source: str, target: str, _: object, conditional: bool) -> str:
    """Straight down to the next stage; past others in a curve, the wider the more they are."""
    start, end = _middle(source), _middle(target)
    rows, label = (end - start) // ROW, ""
    if rows == 1:
        path = f"M{LEFT + BOX // 2} {start + HALF}V{end - HALF}"
    else:
        # Out below and in above, or the other way round: two ways at a stage do not touch.
        x, bend, slant = (
            (LEFT, -24 - 13 * rows, 7) if rows > 0 else (LEFT + BOX, 17 - 15 * rows, -7)
        )
        path = f"M{x} {start + slant}C{x + bend} {start},{x + bend} {end},{x} {end - slant}"
        at = f'x="{x + bend * 3 // 4 + 6}" y="{(start + end) // 2 + 4}"'
        label = f'<text {at} fill="#555">{BACK[target]}</text>' if rows < 0 else ""
    dash = ' stroke-dasharray="4 3"' if conditional else ""
    return f'<path d="{path}" fill="none" stroke="#555"{dash} marker-end="url(#tip)"/>{label}'


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
