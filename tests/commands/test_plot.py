"""``rpms plot`` from the command line."""

from __future__ import annotations

from pathlib import Path

from rpms.commands.plot import KINDS as OFFERED
from rpms.evals.analysis.plotting import KINDS
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run


def test_a_plot_is_written_and_mistakes_are_told(tmp_path: Path, rpms: Rpms) -> None:
    assert [*OFFERED] == [*KINDS], "the help of the command names every kind"
    run = write_run(tmp_path / "run", {"A": [False] * 6, "D": [True] * 6})
    out = tmp_path / "new.svg"
    done = rpms("plot", run, "--kind", "differences", "--against", "D", "--out", out)
    assert done.code == 0 and f"written: {out}" in done.out and "A vs D" in out.read_text()
    for words, message in {
        ("--kind", "type", "--out", "a.pdf"): "unknown plot 'type'; did you mean 'types'?",
        ("--kind", "rounds", "--out", "a.pdf"): "this run has no plot 'rounds': it needs arms with",
        ("--out", "a.jpg"): "a plot is a file .svg, .pdf, .png, not 'a.jpg'",
        ("--against", "B", "--out", "a.pdf"): "this run has no arm 'B'; known: A, D",
        ("--out", str(run / "manifest.json" / "a.pdf")): "cannot write",
    }.items():
        done = rpms("plot", run, *words)
        assert done.code == 2 and message in done.err, done.err
