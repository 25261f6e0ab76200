"""The plots of a run: every kind has the figures of the tables, and nothing is cut off."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from rpms.evals.analysis.plotting import KINDS, Plot
from rpms.evals.analysis.plotting.charts import heat_map
from rpms.evals.analysis.plotting.style import styled
from rpms.evals.analysis.report import Report, read_report
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import contexts, write_run

LONG = "D with the very long name of a filter & $k$ < 3 of my own"
WINS = {
    "A": [False] * 8 + [True] * 4, "B": [True] * 10 + [False] * 2, "D": [True] * 12,
    "C": [True, False] * 6, "C round 1": [True, False] * 6, "C round 2": [True, True, False] * 4,
    LONG: [True] * 12,
}  # fmt: skip


def eight_arms(folder: Path, number: int = 1) -> Path:
    rounds = {f"C round {n}": {**contexts("C")["C"], "memory_file": f"m.round{n}.jsonl"}
              for n in (1, 2)}  # fmt: skip
    names = {name: contexts(name)[name] for name in "ABDC"} | rounds | {LONG: contexts("D")["D"]}
    names = {name: {**context, "seed": number} for name, context in names.items()}
    broken = {1: {"judged": [["known action", "kept"], ["O-ACT-001", "broken"]]}}
    steps = {(name, task): broken for name in WINS for task in range(0, 12, 1 + len(name) % 3)}
    return write_run(folder / f"run{number}", WINS, conditions=names, steps=steps)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return read_report(eight_arms(tmp_path_factory.mktemp("plots")))


@pytest.fixture(scope="module")
def drawn(report: Report) -> dict[str, Plot]:
    return {kind: report.plot(kind) for kind in KINDS}


def texts(figure: Figure) -> Iterator[Text]:
    figure.draw_without_rendering()
    for artist in figure.findobj(Text):
        if isinstance(artist, Text) and artist.get_text().strip() and artist.get_visible():
            yield artist


def words_of(plot: Plot) -> str:
    return " ".join(" ".join(text.get_text() for text in texts(plot.figure)).split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_column_wide_and_shows_its_texts_whole(
    drawn: dict[str, Plot], kind: str
) -> None:
    figure = drawn[kind].figure
    assert figure.get_figwidth() == 3.3 and 0.5 < figure.get_figheight() < 4
    figure.draw_without_rendering()
    box = figure.get_tightbbox()  # in inches, of all that is drawn
    assert box.x0 >= 0 and box.x1 <= 3.3 and box.y0 >= 0 and box.y1 <= figure.get_figheight()
    if kind not in ("differences", "rounds", "square"):
        assert LONG in words_of(drawn[kind])


def test_names_beside_a_plot_do_not_overlap(drawn: dict[str, Plot]) -> None:
    for kind in ("success", "differences", "types", "memories", "rules"):
        axes = drawn[kind].figure.axes[0]
        drawn[kind].figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert len(boxes) > 1
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]), kind


def test_many_columns_of_a_heat_map_become_rows() -> None:
    columns = [f"type {number}" for number in range(14)]
    with styled():
        figure = heat_map(["A", LONG], columns, [[*range(14)], [None] * 14], "Share")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == columns
    assert [" ".join(t.get_text().split()) for t in axes.get_xticklabels()] == ["A", LONG]
    box = figure.get_tightbbox()
    assert box.y0 >= 0 and box.x1 <= 3.3


def test_the_figures_are_those_of_the_tables(report: Report, drawn: dict[str, Plot]) -> None:
    shown = words_of(drawn["success"])
    for row in report.as_json()["tables"]["main"]["rows"]:
        assert f"{100 * row['success rate']['share']:.1f}" in shown
    compared = [line for line in report.verdict if " vs " in line]
    for line in compared:
        pair, _, rest = line.partition(":")
        pair = re.sub(r" \(.*", "", pair)
        assert pair in words_of(drawn["differences"]), pair
        assert (gain := re.findall(r"[+-][\d.]+ points", rest)) and gain[0].split()[0] in words_of(
            drawn["differences"]
        )
    steps = drawn["steps"].figure.axes[0].get_lines()
    last = {line.get_label(): line.get_ydata()[-1] for line in steps}  # type: ignore[index]
    assert last["A baseline"] == pytest.approx(100 / 3) and last["B rules"] == pytest.approx(
        1000 / 12
    )
    assert "go_to (O-ACT-001)" in words_of(drawn["rules"])
    for outcome in ("state filter (SCF)", "rules (arbitration)", "shown"):
        assert outcome in words_of(drawn["memories"])


def test_the_dotted_line_of_the_2x2_is_what_both_gains_add_up_to(drawn: dict[str, Plot]) -> None:
    (axes,) = drawn["square"].figure.axes
    (line,) = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    # B won 10 of 12, C 6 and A 4.
    assert list(line.get_xdata()) == [pytest.approx(100 * (10 + 6 - 4) / 12)] * 2
    assert "additive expectation, 100.0" in words_of(drawn["square"])


def test_an_expectation_beyond_100_percent_leaves_the_axis_as_it_is(tmp_path: Path) -> None:
    wins = {name: [number < won for number in range(4)]
            for name, won in {"A": 1, "B": 3, "C": 3, "D": 4}.items()}  # fmt: skip
    plot = read_report(write_run(tmp_path, wins, logs=False)).plot("square")
    assert plot.figure.axes[0].get_xlim() == (0, 100)
    assert "Not on the axis: additive expectation, 125.0" in words_of(plot)
    assert "dotted" not in plot.caption


def test_the_learning_curve_has_the_entries_of_each_round(tmp_path: Path) -> None:
    arms = {"A": contexts("A")["A"], "B": contexts("B")["B"]}
    arms |= {
        f"{letter} round {n}": {**contexts(letter)[letter], "memory_file": f"m.round{n}.jsonl"}
        for letter in "CD"
        for n in (1, 2)
    }
    digests = {name: name[-1] * 64 for name in arms if "round" in name}
    wins = {name: [True] * n + [False] * (8 - n) for n, name in enumerate(arms, start=1)}
    folder = write_run(
        tmp_path, wins, logs=False, conditions=arms, hashes={"memory": digests},
        memories={"1" * 64: {"entries": 233}, "2" * 64: {"entries": 331}},
    )  # fmt: skip
    report = read_report(folder)
    rows = report.only(["rounds"]).tables[0].as_json()["rows"]
    assert [(row["round"], row["entries"]) for row in rows] == [("R0", 0), ("R1", 233), ("R2", 331)]
    # The arms in their order won one task more each: A, B, then C and D.
    assert [row["C memory"]["share"] * 8 for row in rows] == [1, 3, 4]
    assert [row["D rules+memory"]["share"] * 8 for row in rows] == [2, 5, 6]
    words = words_of(report.plot("rounds"))
    assert "R1 233" in words and "R2 331" in words


def test_arms_with_equal_results_are_all_seen(tmp_path: Path) -> None:
    """A solid line is under the broken ones and wider."""
    names = ("A", "B", "C", "D", "D k=9")
    same = read_report(write_run(tmp_path / "same", {name: [True, False] for name in names}))
    axes = same.plot("differences").figure.axes[0]
    assert axes.get_xlim() == (-10, 10) and "all tasks agree" in axes.get_xlabel()
    lines = same.plot("steps").figure.axes[0].get_lines()
    assert len({line.get_linewidth() for line in lines}) == len(names)
    solid = [line.get_zorder() for line in lines if line.get_linestyle() == "-"]
    broken = [line.get_zorder() for line in lines if line.get_linestyle() != "-"]
    assert len(solid) == 2 and max(solid) < min(broken)


def test_a_file_has_the_format_of_its_name_and_the_same_bytes_each_time(
    report: Report, tmp_path: Path
) -> None:
    heads = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for form, head in heads.items():
        report.plot("success", tmp_path / f"a.{form}")
        report.plot("success", tmp_path / f"b.{form}")
        data = (tmp_path / f"a.{form}").read_bytes()
        assert data.startswith(head) and data == (tmp_path / f"b.{form}").read_bytes()
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(3.3 * 72)
    assert report.plot("success")._repr_svg_() == (tmp_path / "a.svg").read_text()


def test_the_runs_of_an_experiment_are_points_beside_their_mean(tmp_path: Path) -> None:
    both = read_report([eight_arms(tmp_path, 1), eight_arms(tmp_path, 2)])
    lines = both.plot("success").figure.axes[0].get_lines()
    assert sum(len(line.get_xdata()) == 2 and line.get_marker() == "o" for line in lines) == len(
        WINS
    )


def test_a_plot_without_data_says_what_it_needs(tmp_path: Path) -> None:
    alone = read_report(write_run(tmp_path / "alone", {"A": [True]}, logs=False))
    for kind in ("differences", "memories", "rules", "rounds", "square"):
        with pytest.raises(RpmsError, match=f"no plot '{kind}': it needs"):
            alone.plot(kind)


def test_without_matplotlib_one_is_told_what_to_install(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RpmsError, match=r"plots need matplotlib.*pip install -e '\.\[report\]'"):
        report.plot()
