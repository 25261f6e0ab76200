"""The look of all plots: one column of a paper wide, small type, and clear in grey.

matplotlib is optional: the extra ``report`` installs it. Arms differ in colour, line and marker
at once, and all colours differ in lightness, so that a print in grey loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from rpms.vocabulary.errors import RpmsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.3
"""In inches: one column of a paper."""
LINE = 0.13
"""The height of a line of text, in inches."""
NARROW = 22
"""Characters in a line of a label beside a plot, or in a legend of two columns."""
DARK, MIDDLE, LIGHT = "#222222", "#808080", "#cccccc"
SCALE = "Blues"
"""The colours of heat maps; dark means more."""
RC: Any = {
    "font.size": 7, "axes.labelsize": 7, "xtick.labelsize": 6.5, "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5, "font.family": ["DejaVu Sans", "sans-serif"],
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "xtick.major.size": 2.5, "ytick.major.size": 2.5, "axes.edgecolor": DARK,
    "axes.spines.top": False, "axes.spines.right": False,
    "grid.linewidth": 0.4, "grid.color": LIGHT, "axes.axisbelow": True,
    "lines.linewidth": 1.1, "lines.markersize": 4, "hatch.linewidth": 0.5,
    "legend.frameon": False, "legend.handlelength": 2.6, "legend.columnspacing": 1.2,
    "text.parse_math": False,  # a label may contain any sign
    "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "rpms",
}  # fmt: skip


class ArmStyle(NamedTuple):
    """How the line and the marker of an arm look."""

    color: tuple[float, ...]
    line: Any
    marker: str

    @property
    def plot(self) -> dict[str, Any]:
        """The arguments of ``Axes.plot``; a white edge separates markers that overlap."""
        return {"color": self.color, "linestyle": self.line, "marker": self.marker,
                "markeredgecolor": "white", "markeredgewidth": 0.4}  # fmt: skip


LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
MARKERS = "osD^vPXp<>"


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in this style; an error if matplotlib is missing."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise RpmsError(
            "plots need matplotlib, which is not installed: pip install -e '.[report]' in a clone"
        ) from error
    with rc_context(RC):
        yield


def drawn(height: float, draw: Callable[[Axes], object]) -> Figure:
    """A figure of one column and this height in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    draw(figure.add_subplot())
    return figure


def wrapped(label: str, width: int = NARROW) -> str:
    """A label in lines of this many characters; nothing is cut off."""
    return "\n".join(wrap(label, width)) or label


def shades(count: int) -> list[tuple[float, ...]]:
    """Colours from dark to light, as many as asked for."""
    from matplotlib import colormaps

    scale = colormaps["cividis"]
    return [scale(0.78 * number / max(1, count - 1)) for number in range(count)]


def arm_styles(count: int) -> list[ArmStyle]:
    """A style for each of so many arms; neighbours differ in everything."""
    colors = shades(count)
    return [
        ArmStyle(colors[number], LINES[number % len(LINES)], MARKERS[number % len(MARKERS)])
        for number in range(count)
    ]


def legend_below(axes: Axes, labels: Sequence[str]) -> None:
    """The legend below the plot, in two columns if there are three or more entries."""
    figure: Any = axes.figure
    handles, _ = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 if len(labels) > 2 else 1)


def legend_height(labels: Sequence[str]) -> float:
    """The height of such a legend, in inches."""
    columns = 2 if len(labels) > 2 else 1
    per_column = -(-len(labels) // columns)
    return LINE * 1.05 * sum(
        sorted((label.count("\n") + 1 for label in labels), reverse=True)[:per_column]
    ) + 0.1  # fmt: skip
