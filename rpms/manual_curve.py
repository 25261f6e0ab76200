"""What was learned when, as a drawing that stands by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rpms.evals.report.svg import WIDTH, Scale, dot, drawing, legend, legend_rows, line, text

# A file of its own has no page around it that would give colours to the classes.
STYLE = """<style>
text { font: 12px sans-serif; fill: #555; } .grid { stroke: #ddd; } .stroke { stroke-width: 2; }
.c0 { stroke: #3b6fb6; fill: #3b6fb6; } .c1 { stroke: #c8553d; fill: #c8553d; }
.c2 { stroke: #4f9d69; fill: #4f9d69; } .c3 { stroke: #8a5fb0; fill: #8a5fb0; }
.c4 { stroke: #c29a2b; fill: #c29a2b; } .c5 { stroke: #3aa0a8; fill: #3aa0a8; }
.c6 { stroke: #777; fill: #777; }
</style>"""


def curve_svg(homes: Sequence[str], shares: Mapping[str, Sequence[float]]) -> str:
    """A line for every share (0 to 1) over the numbers of homes, which stand at equal distances."""
    up = Scale(240, 16, 1.0)
    across = Scale(60, WIDTH - 20, float(max(1, len(homes) - 1)))
    parts = [STYLE]
    for quarter in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(line(50, up(quarter), WIDTH - 10, up(quarter), "grid"))
        parts.append(text(44, up(quarter) + 4, f"{quarter:.0%}", "tick", "end"))
    parts += [text(across(at), 260, name, "tick", "middle") for at, name in enumerate(homes)]
    for number, (name, values) in enumerate(shares.items()):
        points = [(across(at), up(value)) for at, value in enumerate(values)]
        parts += [line(*one, *two, f"stroke c{number}") for one, two in pairwise(points)]
        parts += [
            dot(x, y, f"c{number}", f"{name}, {home} homes: {value:.1%}", 4)
            for (x, y), home, value in zip(points, homes, values, strict=True)
        ]
    parts += legend(list(shares), [f"c{number}" for number in range(len(shares))], 290)
    found = drawing(290 + 20 * legend_rows(list(shares)), "what was learned when", parts)
    return str(found).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"
