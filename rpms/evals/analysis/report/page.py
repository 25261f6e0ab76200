"""The report page, and beside it a page for each task with the steps of its episodes.

A page loads nothing: style and scripts are inlined, and each step log stays gzipped inside the page
of its task until it is opened. Observations and replies are untrusted text, so the pages escape
them, and their content security policy runs no other script.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rpms.evals.analysis.experiment import run_names
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.glossary import explanations
from rpms.evals.analysis.plotting import all_plots
from rpms.evals.analysis.report import Report, heading
from rpms.evals.analysis.report.rules import run_rules
from rpms.evals.analysis.report.source import short_type, source_of
from rpms.evals.analysis.tables import Cell
from rpms.evals.records.checksums import rules_hash
from rpms.evals.records.protocol_card import protocol_card
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode
from rpms.prompts.examples import NEW_TASK
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import make_folder, refuse_special, write_whole
from rpms.vocabulary.output import quantity
from rpms.vocabulary.safe_text import slug

HERE = Path(__file__).parent
LIST = ("base", "list", "router")
STEPS = ("base", "step", "episode", "compare", "router")


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


def write_page(report: Report, html: Path | None = None) -> Path:
    """Write the page and those of the tasks, by default into the run's folder."""
    html = html or report.run.folder / "report.html"
    refuse_special(html)
    beside = html.with_name(f"{html.stem}-steps")
    make_folder(beside)
    for name, text in step_pages(report, html.name):
        write_whole(beside / name, text)
    write_whole(html, render_page(report, beside.name))  # a reader never sees half a page
    return html


def render_page(report: Report, steps: str = "report-steps") -> str:
    """The page as text; ``steps`` is the folder beside it that has the pages of the tasks."""
    run = report.run
    data = {**_shared(report), "episodes": [
        {**row, "page": f"{steps}/{_page_of(e)}"} for e, row in _rows(report)]}  # fmt: skip
    return _rendered(
        "report.html.j2",
        LIST,
        data,
        title=heading(run),
        home="",
        source=source_of(run),
        protocol=protocol_card(run.manifest),
        run=run,
        manifest=run.manifest,
        verdict=report.verdict,
        tables=report.tables,
        pictures=pictures(report.data),
        rules_changed=rules_changed(run),
        link_of=link_of,
    )


def step_pages(report: Report, home: str) -> Iterator[tuple[str, str]]:
    """For each task the name and the text of the page with the steps of all its episodes."""
    run = report.run
    shared = {**_shared(report), "home": f"../{home}", "rules": run_rules(run)}
    shared |= {"new_task": NEW_TASK}
    tasks: dict[str, list[tuple[Episode, dict[str, Any]]]] = {}
    for episode, row in _rows(report):
        tasks.setdefault(episode.task, []).append((episode, row))
    for name, episodes in tasks.items():
        # The numbers of the logs are those of the rows, before the page sorts them; a log that is
        # missing or damaged is left out.
        data = {**shared, "episodes": [{**row, "page": ""} for _, row in episodes]}
        yield (
            _page_of(episodes[0][0]),
            _rendered(
                "steps.html.j2",
                STEPS,
                data,
                title=f"{name}: {heading(run)}",
                home=f"../{home}",
                source=source_of(run),
                logs=[
                    (number, _packed(run.log_file(episode).read_bytes()))
                    for number, (episode, row) in enumerate(episodes)
                    if row["logged"]
                ],
            ),
        )


def _page_of(episode: Episode) -> str:
    return f"{slug(episode.task)}.html"


def _shared(report: Report) -> dict[str, Any]:
    """The data that every page has."""
    data = report.data
    types = sorted({*data.episodes.type} | {t.type for t in data.run.manifest.tasks if t.type})
    return {
        "scored": data.metric == "floored",
        "conditions": [[label, condition_title(label)] for label in data.arms],
        "types": [[kind, short_type(data.run, kind)] for kind in types],
        "glossary": explanations(),
    }


def _rows(report: Report) -> Iterator[tuple[Episode, dict[str, Any]]]:
    rows = report.data.episodes.to_dict("records")
    for episode, row in zip(report.run.episodes.values(), rows, strict=True):
        yield episode, _row(report.run, episode, row)


def pictures(data: Results) -> list[dict[str, str]]:
    """The plots of a run as images inside the page."""
    return [
        {"kind": plot.kind, "caption": plot.caption,
         "source": f"data:image/svg+xml;base64,{_packed(plot.as_svg().encode())}"}
        for plot in all_plots(data)
    ]  # fmt: skip


def _rendered(template: str, names: Sequence[str], data: dict[str, Any], **values: Any) -> str:
    """A page with its style and its scripts, which are joined into one without global names."""
    style, script, hashes = _inlined(tuple(names))
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return _jinja.get_template(template).render(
        style=Markup(style),
        script=Markup(script),
        style_hash=hashes[0],
        script_hash=hashes[1],
        data=_packed(gzip.compress(text.encode("utf-8", "replace"), mtime=0)),
        **values,
    )


@cache
def _inlined(names: tuple[str, ...]) -> tuple[str, str, tuple[str, str]]:
    style = (HERE / "report.css").read_text(encoding="utf-8")
    parts = [(HERE / "js" / f"{name}.js").read_text(encoding="utf-8") for name in names]
    script = "'use strict';\n(async () => {\n" + "\n".join(parts) + "\n})();\n"
    return style, script, (_hash(style), _hash(script))


def link_of(cell: Cell) -> str:
    """The address of the list of a cell's episodes; empty for a cell without any."""
    return f"#/episodes?{urlencode(cell.link)}" if cell.link else ""


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


def _row(run: Run, episode: Episode, row: Mapping[Hashable, Any]) -> dict[str, Any]:
    return {
        "c": episode.condition,
        "run": row["run"],
        "task": _task_name(run, episode),
        "n": episode.index,
        "type": episode.type,
        "goal": episode.goal,
        "won": episode.success,
        "score": episode.score,
        "steps": episode.steps,
        "counted": row["counted"],
        "logged": bool(row["logged"]),
        "invalid": row["invalid_actions"],
        "belief_errors": row["belief_error_steps"],
        "mode": episode.failure_mode or "",
        "error": episode.error,
        "place": episode.error_place,
        "cause": row["cause"],
        "at": row["cause_step"],
        "why": row["cause_text"],
        "broken": [*row["broken"]],
        "tokens": episode.prompt_tokens + episode.output_tokens,
    }


def _task_name(run: Run, episode: Episode) -> str:
    """The task, with its run in an experiment and the numbers of repeat and trial above 1."""
    part = run.part_number(episode)
    counters = (("repeat", episode.repeat - part * run.repeats_of_part), ("trial", episode.trial))
    places = [run_names(run)[part]] if run.pooled else []
    suffix = ", ".join(places + [f"{name} {number}" for name, number in counters if number > 1])
    return f"{episode.task} ({suffix})" if suffix else episode.task


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _hash(text: str) -> str:
    return _packed(hashlib.sha256(text.encode()).digest())
