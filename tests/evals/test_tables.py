from __future__ import annotations

import pytest

from rpms.evals.analysis.measures import Interval
from rpms.evals.analysis.tables import Cell, Table, count, label, number, p_value, percent, points


def table(**changes: object) -> Table:
    rows = [[label("A"), percent(0.5, Interval(0.25, 0.75), "2/4"), count(1234)]]
    parts: dict[str, object] = {
        "id": "t", "title": "Title", "source": "model: m", "columns": ["", "rate", "n"],
        "rows": rows, "notes": ["note"],
    }  # fmt: skip
    return Table(**{**parts, **changes})  # type: ignore[arg-type]


def test_markdown_has_heading_source_and_aligned_figures() -> None:
    assert table().as_markdown().splitlines() == [
        "## Title", "", "model: m", "",
        "|  | rate | n |", "| --- | ---: | ---: |", "| A | 50.0% 2/4 [25.0, 75.0] | 1,234 |",
        "", "note",
    ]  # fmt: skip


def test_markdown_of_foreign_text_is_no_markup() -> None:
    nasty = "a|b <img src=x> `c` **d** [e](http://f)\n| g |"
    text = table(rows=[[label(nasty), Cell(""), Cell("")]]).as_markdown()
    row = text.splitlines()[6]
    escaped = r"a\|b &lt;img src=x&gt; \`c\` \*\*d\*\* [e]\(http://f) \| g \|"
    assert row == f"| {escaped} |  |  |"
    assert len(text.splitlines()) == 9


def test_a_notebook_shows_a_table_and_its_name_is_short() -> None:
    nasty = table(rows=[[label("<b>&"), Cell("1"), count(2)]])
    html = nasty._repr_html_()
    assert "<h4>Title</h4>" in html and "&lt;b&gt;&amp;" in html and "<b>" not in html
    assert "<td>2</td>" in html and "note" in html
    assert repr([nasty]) == "[<table t: Title, 1 rows>]"


def test_json_has_raw_values() -> None:
    assert table().as_json()["rows"] == [
        {"": "A", "rate": {"share": 0.5, "low": 0.25, "high": 0.75}, "n": 1234}
    ]


def test_csv_and_frames_have_a_column_for_each_end_of_an_interval() -> None:
    """Also where the first row has none; what is not there is nothing, not a dash."""
    rows = [
        [label("a, b"), percent(None), count(1)],
        [label(""), percent(0.5, Interval(0.25, 0.75)), Cell("-")],
    ]
    assert table(rows=rows).as_csv().splitlines() == [
        "row,rate,rate low,rate high,n,model", '"a, b",,,,1.0,', ",0.5,0.25,0.75,,",
    ]  # fmt: skip
    frame = table(rows=rows).as_dataframe()
    assert frame["rate high"].sum() == 0.75 and frame["n"].sum() == 1
    assert len(table(rows=[], model="m").as_csv().splitlines()) == 1
    assert table(model="m").as_csv().splitlines()[1].endswith(",m")


def test_latex_is_escaped_and_ruled_and_names_the_model() -> None:
    rows = [[label("50%_a&b \\ {y} #1"), p_value(0.2), Cell("1", "[0, 2]")]]
    latex = table(rows=rows, model="gpt_4").as_latex()
    assert latex.startswith("% model: m\n\\begin{table}")
    assert latex.endswith("\\end{tabular}\n\\par\\footnotesize note\n\\end{table}\n")
    assert r"\caption{Title; model: gpt\_4}" in latex and r"\label{tab:t}" in latex
    assert r"50\%\_a\&b \textbackslash{} \{y\} \#1 & 0.200 & 1 [0, 2] \\" in latex
    assert all(rule in latex for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"\begin{tabular}{lrr}" in latex


def test_latex_has_the_signs_of_minus_and_times() -> None:
    latex = table(rows=[[label("rules x memory 2x2"), points(-0.05, Interval(-0.1, 0.2)),
                         Cell("-")]]).as_latex()  # fmt: skip
    assert r"rules $\times$ memory 2$\times$2 & $-$5.0 [$-$10.0, +20.0] & - \\" in latex


def test_a_last_column_of_text_is_aligned_to_the_left() -> None:
    words = table(rows=[[label("A"), count(1), label("rules, memory")]], remark=True)
    assert "| --- | ---: | --- |" in words.as_markdown()
    assert r"\begin{tabular}{lrp{0.25\linewidth}}" in words.as_latex()


@pytest.mark.parametrize(
    ("p", "text"), [(0.00001, "< 0.0001"), (0.00779, "0.0078"), (0.784, "0.784"), (1.0, "1.000")]
)
def test_p_values_show_what_tells_something(p: float, text: str) -> None:
    assert p_value(p) == Cell(text, value=p)


def test_differences_have_signs_and_zero_has_no_minus() -> None:
    assert points(0.1567, Interval(-0.01, 0.3)).text == "+15.7"
    assert points(0.1567, Interval(-0.01, 0.3)).note == "[-1.0, +30.0]"
    assert points(-1e-15).text == "+0.0"
    assert number(None).text == percent(None).text == points(None).text == "-"
