"""The plots of a run: drawn for a paper, a page or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.plotting.kinds import (
    difference_plot,
    memory_plot,
    round_plot,
    rule_plot,
    square_plot,
    step_plot,
    success_plot,
    type_plot,
)
from rpms.evals.analysis.plotting.style import styled
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import refuse_special, write_whole
from rpms.vocabulary.spelling import offer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Kind(NamedTuple):
    """A kind of plot: how it is drawn, its caption, and what a run without it lacks."""

    draw: Callable[[Results], Figure | None]
    caption: str
    needs: str = "episodes that ended without an error"


KINDS = {
    "success": Kind(
        success_plot,
        "Results by arm. Lines are 95% intervals over tasks; open circles are single runs.",
    ),
    "square": Kind(
        square_plot,
        "Rules x memory. Lines are 95% intervals over tasks. The additive expectation is the "
        "baseline and the gains of rules and of memory alone.",
        "the arms A (or S), B, C and D",
    ),
    "differences": Kind(
        difference_plot,
        "Paired differences of the verdict's comparisons with 95% intervals. A filled point is "
        "significant after Holm's correction.",
        "two arms with tasks in common",
    ),
    "types": Kind(type_plot, "Results by arm and goal type."),
    "steps": Kind(step_plot, "Share of tasks that were won within so many steps."),
    "memories": Kind(
        memory_plot,
        "What became of the memories that were recalled, by arm.",
        "an arm that recalled memories, with its step logs",
    ),
    "rules": Kind(
        rule_plot,
        "Rules that the model's own proposals broke, by arm, also where no rule was shown.",
        "a broken rule in its step logs",
    ),
    "rounds": Kind(
        round_plot,
        "Learning curve over rounds of learning, with the entries of the memory; lines are 95% "
        "intervals over tasks.",
        "arms with the memories of two rounds of 'rpms learn --rounds'",
    ),
}
FORMATS = ("svg", "pdf", "png")
DPI = 300


@dataclass(frozen=True)
class Plot:
    """A drawn plot: a matplotlib ``figure``, shown in a notebook and saved as a file."""

    kind: str
    caption: str
    figure: Figure

    def save(self, file: str | PathLike[str]) -> Path:
        """Write an SVG, PDF or PNG file, by the ending of its name."""
        path = Path(file)
        form = path.suffix.lower().removeprefix(".")
        if form not in FORMATS:
            raise RpmsError(f"a plot is a file {', '.join(f'.{f}' for f in FORMATS)}, not '{path}'")
        refuse_special(path)
        write_whole(path, self._rendered(form))
        return path

    def as_svg(self) -> str:
        """The plot as SVG text."""
        return self._rendered("svg").decode()

    def _repr_svg_(self) -> str:
        return self.as_svg()

    def _rendered(self, form: str) -> bytes:
        """The bytes of a file; without a date, so that the same run gives the same bytes."""
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
        content = BytesIO()
        with styled():
            self.figure.savefig(content, format=form, dpi=DPI, metadata=dates[form])
        return content.getvalue()


def plot(data: Results, kind: str = "success") -> Plot:
    """Draw one kind of plot; an error if the run has no data for it."""
    if kind not in KINDS:
        raise RpmsError(f"unknown plot '{kind}'; {offer(kind, KINDS)}")
    with styled():
        figure = KINDS[kind].draw(data)
    if figure is None:
        raise RpmsError(f"this run has no plot '{kind}': it needs {KINDS[kind].needs}")
    return Plot(kind, _caption(data, kind), figure)


def _caption(data: Results, kind: str) -> str:
    """What the plot shows, and the model that acted."""
    return f"{KINDS[kind].caption} Model: {data.run.manifest.model_label}."


def all_plots(data: Results) -> Iterator[Plot]:
    """Every plot that the run has data for."""
    for kind, each in KINDS.items():
        with styled():
            figure = each.draw(data)
        if figure is not None:
            yield Plot(kind, _caption(data, kind), figure)
