"""The picture of the graph in the README, made anew by ``python -m tools.graph_picture``.

A column of the stages in their order: what lies between two of them is passed on the left, and
the ways back are on the right. Drawn here, because Mermaid would be fetched from elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from rpms.graph import STAGES, build_graph

FILE = Path(__file__).resolve().parents[1] / "docs" / "images" / "graph.svg"
ROW = 42
MIDDLES = {name: ROW * row + 21 for row, name in enumerate(("__start__", *STAGES, "__end__"))}
COLOURS = {"__start__": "#78909c", "__end__": "#78909c", "action_arbitration": "#00897b"}
BACK = {"belief_update": "next step", "llm_call": "vetoed"}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 448 {0}" width="448" height="{0}" \
role="img" font-family="sans-serif" font-size="13" fill="none">
<title>The stages of the graph; a dashed way is taken where a setting or the state says so</title>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker><rect width="448" height="{0}" \
fill="#fff"/>"""


def picture() -> str:
    """The graph as it is built, as SVG."""
    ways = [_way(*edge) for edge in build_graph().get_graph().edges]
    return "\n".join([HEAD.format(ROW * len(MIDDLES)), *ways, *map(_box, MIDDLES), "</svg>\n"])


def _box(name: str) -> str:
    y, colour = MIDDLES[name], COLOURS.get(name, "#3949ab")
    box = f'<rect x="118" y="{y - 14}" width="156" height="28" rx="5" fill="{colour}"/>'
    words = f'<text x="196" y="{y + 5}" fill="#fff" text-anchor="middle">{name.strip("_")}</text>'
    return box + words


def _way(source: str, target: str, _: object, conditional: bool) -> str:
    """Straight down to the next stage; past others in a curve, the wider the more they are."""
    start, end = MIDDLES[source], MIDDLES[target]
    path, rows = f"M196 {start + 14}V{end - 14}", (end - start) // ROW
    x, bend, out = (118, -24 - 13 * rows, 7) if rows > 0 else (274, 17 - 15 * rows, -7)
    if rows != 1:
        path = f"M{x} {start + out}C{x + bend} {start},{x + bend} {end},{x} {end - out}"
    words = f'<text x="{x + bend * 3 // 4 + 6}" y="{(start + end) // 2 + 4}" fill="#555">'
    label = f"{words}{BACK[target]}</text>" if rows < 0 else ""
    dash = ' stroke-dasharray="4 3"' if conditional else ""
    return f'<path d="{path}" stroke="#555"{dash} marker-end="url(#tip)"/>{label}'


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
