"""Small drawings as SVG text. Colours are classes, so that they follow the page's theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

WIDTH = 720
ROW = 30


@dataclass(frozen=True)
class Mark:
    """A figure to draw: its value, its interval, and what to say about it."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    told: str = ""


@dataclass(frozen=True)
class Scale:
    """From figures to the x (or y) of the drawing."""

    start: float
    end: float
    top: float = 100.0

    def __call__(self, value: float) -> float:
        """Where a figure lies."""
        return round(self.start + (self.end - self.start) * min(value, self.top) / self.top, 1)


def drawing(height: float, title: str, parts: Sequence[str]) -> Markup:
    """An image with a title that screen readers say."""
    body = Markup("").join(Markup(part) for part in parts)
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, height, title, body)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind}"/>'


def dot(x: float, y: float, kind: str, told: str, radius: float = 5) -> str:
    """A point that says what it is when pointed at."""
    title = f"<title>{escape(told)}</title>" if told else ""
    return f'<circle cx="{x}" cy="{y}" r="{radius}" class="{kind}">{title}</circle>'


def bar(x: float, y: float, width: float, kind: str, told: str, height: float = 16) -> str:
    """A part of a stacked bar."""
    return (
        f'<rect x="{x}" y="{y}" width="{max(0.0, width):.1f}" height="{height}" class="{kind}">'
        f"<title>{escape(told)}</title></rect>"
    )


def tile(x: float, y: float, size: tuple[float, float], shade: float, told: str) -> str:
    """A field of a heat map; the shade is between 0 and 1."""
    return (
        f'<rect x="{x}" y="{y}" width="{size[0]}" height="{size[1]}" class="tile" '
        f'fill-opacity="{0.06 + 0.5 * shade:.2f}"><title>{escape(told)}</title></rect>'
    )


def grid(scale: Scale, bottom: float, unit: str, top: float = 8) -> list[str]:
    """Vertical lines with their figures below."""
    parts = []
    for fifth in range(6):
        value = scale.top * fifth / 5
        x = scale(value)
        parts.append(line(x, top, x, bottom, "grid"))
        parts.append(text(x, bottom + 18, f"{value:g}{unit}", "tick", "middle"))
    return parts


def legend(names: Sequence[str], kinds: Sequence[str], y: float) -> list[str]:
    """Coloured dots with their names, wrapped to the width."""
    parts, x = [], 8.0
    for name, kind in zip(names, kinds, strict=True):
        width = 32 + 7.0 * len(name)
        if x + width > WIDTH:
            x, y = 8.0, y + 20
        parts += [dot(x + 5, y - 4, kind, "", 5), text(x + 15, y, name, "tick key")]
        x += width
    return parts


def legend_rows(names: Sequence[str]) -> int:
    """How many lines the legend needs."""
    rows, x = 1, 8.0
    for name in names:
        width = 32 + 7.0 * len(name)
        if x + width > WIDTH:
            rows, x = rows + 1, 8.0
        x += width
    return rows


def spread(wanted: Sequence[float], gap: float = 17) -> list[float]:
    """Heights for labels near the wanted ones, far enough apart to be read."""
    found = list(wanted)
    order = sorted(range(len(found)), key=lambda i: found[i])
    for above, below in pairwise(order):
        found[below] = max(found[below], found[above] + gap)
    return found
