"""The report page: one HTML file with the verdict, the tables and every episode step by step.

The page loads nothing: style and scripts are inlined, and each episode's step log stays gzipped
inside the page until it is opened. Observations and replies are untrusted text, so the page
escapes them, and its content security policy runs no other script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rpms.evals.analysis.causes import Cause
from rpms.evals.analysis.experiment import run_names
from rpms.evals.analysis.measures import groups, metric_of
from rpms.evals.analysis.plotting import all_plots
from rpms.evals.analysis.plotting.style import is_installed
from rpms.evals.analysis.report import Report, heading
from rpms.evals.analysis.report.plots import conditions_plot
from rpms.evals.analysis.report.rules import run_rules
from rpms.evals.analysis.report.source import settings_of, short_type, source_of
from rpms.evals.analysis.step_analysis import analysis_of
from rpms.evals.analysis.tables import Cell, Table
from rpms.evals.records.checksums import rules_hash
from rpms.evals.records.protocol_card import protocol_card
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode, JobKey
from rpms.prompts.examples import NEW_TASK
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import refuse_special, write_whole
from rpms.vocabulary.glossary import explanations
from rpms.vocabulary.output import quantity

HERE = Path(__file__).parent
SCRIPTS = ("base", "search", "list", "step", "episode", "compare", "router")


def _explained(term: str) -> str:
    """The glossary's sentence about a term; empty if it has none."""
    return explanations().get(term.lower(), "")


_jinja = Environment(
    loader=FileSystemLoader(HERE),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)


def written(moment: str) -> str:
    """``6 Nov 2026, 13:08 UTC``; empty if no time was recorded."""
    if not moment:
        return ""
    time = datetime.fromisoformat(moment)
    return f"{time.day} {time:%b %Y, %H:%M} {time.tzname() or ''}".rstrip()


_jinja.filters |= {"written": written, "quantity": quantity, "explained": _explained}


def write_report(report: Report, html: Path | None = None) -> list[Path]:
    """Write report.md, report.json and the page, and return the files.

    Joined runs have no folder of their own, so only the page is written, and only to ``html``.
    """
    folder, texts = report.run.folder, dict[Path, str]()
    if not report.run.parts:
        html = html or folder / "report.html"
        text = json.dumps(report.as_json(), ensure_ascii=False, indent=2) + "\n"
        texts = {folder / "report.md": report.as_markdown(), folder / "report.json": text}
    if html:
        refuse_special(html)
        texts[html] = render_page(report)
    for file, text in texts.items():
        write_whole(file, text)  # a reader never sees half a page
    return list(texts)


def render_page(report: Report) -> str:
    """The page as text."""
    run = report.run
    return _rendered(
        "report.html.j2",
        SCRIPTS,
        title=heading(run),
        source=source_of(run),
        protocol=protocol_card(run.manifest),
        settings=settings_of(run.manifest),
        run=run,
        manifest=run.manifest,
        verdict=report.verdict,
        tables=report.tables,
        plot=conditions_plot(run),
        pictures=pictures(run),
        rules_changed=rules_changed(run),
        set_link=set_link,
        data=_embedded(page_data(report)),
        logs=[(n, _log(run, e)) for n, e in enumerate(run.episodes.values())],
    )


def pictures(run: Run) -> list[dict[str, str]]:
    """The plots of a run as images inside the page; none if matplotlib is missing."""
    if not is_installed():
        return []
    return [
        {"kind": plot.kind, "caption": plot.caption, "source": _image(plot.as_svg())}
        for plot in all_plots(run)
    ]


def _image(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode('ascii')}"


def _rendered(template: str, scripts: Sequence[str], **values: Any) -> str:
    """A page with its style and its scripts, which are joined into one without global names."""
    style = (HERE / "report.css").read_text(encoding="utf-8")
    parts = [(HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in scripts]
    script = "'use strict';\n(() => {\n" + "\n".join(parts) + "\n})();\n"
    return _jinja.get_template(template).render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        **values,
    )


def page_data(report: Report) -> dict[str, Any]:
    """The data of the list and of the page's filters; the steps stay in the embedded logs."""
    run = report.run
    types = sorted({e.type for e in run.episodes.values()} | {*filter(None, groups(run))})
    return {
        "scored": metric_of(run.manifest.env) == "score",
        "conditions": [[label, condition_title(label)] for label in run.conditions],
        "types": [[kind, short_type(run, kind)] for kind in types],
        "episodes": [_row(run, e) for e in run.episodes.values()],
        "sets": sets_of(report.tables, {key: n for n, key in enumerate(run.episodes)}),
        "rules": run_rules(run),
        "new_task": NEW_TASK,
        "glossary": explanations(),
    }


def set_link(table: Table, row: Sequence[Cell], column: int) -> str:
    """The address of the list of a cell's steps or episodes; empty for a cell without any."""
    if row[column].steps:
        return f"#/episodes?{urlencode(row[column].steps)}"
    if not row[column].behind:
        return ""
    return f"#/episodes?{urlencode({'set': _name(table, row, column)})}"


def sets_of(tables: Iterable[Table], numbers: Mapping[JobKey, int]) -> dict[str, dict[str, Any]]:
    """The episodes behind each figure: by the set's name its title and the episodes' numbers.

    A set is named by its table, row and column, so that a link still leads to the same cell after
    more episodes have finished.
    """
    return {
        _name(table, row, column): {
            "title": f"{table.title}: {', '.join(_labels(table, row, column))}",
            "of": [numbers[key] for key in cell.behind],
        }
        for table in tables
        for row in table.rows
        for column, cell in enumerate(row)
        if cell.behind
    }


def _labels(table: Table, row: Sequence[Cell], column: int) -> list[str]:
    return [*(cell.text for cell in row[: table.labels]), table.columns[column]]


def _name(table: Table, row: Sequence[Cell], column: int) -> str:
    return "/".join([table.id, *_labels(table, row, column)])


def rules_changed(run: Run) -> bool:
    """True if the current manual, or that of an arm, differs from the one of the run."""
    hashes = run.manifest.hashes
    for label, digest in {"": hashes.rules, **hashes.rules_of}.items():
        context = run.manifest.conditions.get(label, {})
        settings = (str(context.get(name) or "") for name in ("rules_dir", "without_rules"))
        try:
            if digest and digest != rules_hash(run.manifest.env, *settings):
                return True
        except RpmsError:  # the folder is gone, or no longer a manual
            return True
    return False


def _row(run: Run, episode: Episode) -> dict[str, Any]:
    analysis = analysis_of(run, episode)
    cause = analysis.cause or Cause("", 0, "")
    return {
        "c": episode.condition,
        "task": _task_name(run, episode),
        "n": episode.index,
        "type": episode.type,
        "goal": episode.goal,
        "won": episode.success,
        "score": episode.score,
        "steps": episode.steps,
        "invalid": analysis.invalid_actions,
        "belief_errors": analysis.belief_error_steps,
        "mode": episode.failure_mode or "",
        "error": episode.error,
        "place": episode.error_place,
        "cause": cause.kind,
        "at": cause.step,
        "why": cause.text,
        "tokens": episode.prompt_tokens + episode.output_tokens,
        "recalled": analysis.recalled,
        "proposals": analysis.proposals,
    }


def _task_name(run: Run, episode: Episode) -> str:
    """The task, with its run in an experiment and the numbers of repeat and trial above 1."""
    part = run.part_number(episode)
    counters = (("repeat", episode.repeat - part * run.repeats_of_part), ("trial", episode.trial))
    places = [run_names(run)[part]] if run.pooled else []
    suffix = ", ".join(places + [f"{name} {number}" for name, number in counters if number > 1])
    return f"{episode.task} ({suffix})" if suffix else episode.task


def _log(run: Run, episode: Episode) -> str:
    """The gzipped log as text; empty if it is missing or damaged."""
    if not analysis_of(run, episode).logged:
        return ""
    return base64.b64encode(run.log_file(episode).read_bytes()).decode("ascii")


def _embedded(data: dict[str, Any]) -> Markup:
    """JSON that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
