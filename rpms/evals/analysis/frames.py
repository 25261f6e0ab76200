"""Run folders as tidy pandas tables, for analyses beyond the report.

pandas is optional: the extra ``analysis`` installs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpms.envs import get_environment
from rpms.evals.analysis.report.behaviour import cause_of
from rpms.evals.analysis.step_analysis import analysis_of, in_prompt, shown_rules, source_type
from rpms.evals.analysis.tables import frame
from rpms.evals.records.run_folder import Run, as_folders, read_log, read_run
from rpms.evals.records.schema import Episode, Step, columns
from rpms.vocabulary.turn import Decision

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

KEY = ("condition", "task")
# The columns of tables that may be empty, so that a query on an empty table works.
COLUMNS = {
    "recalls": ("entry", "type", "source_type", "target_type", "advice", "score", "count",
                "dropped_by", "reason", "warning", "rule", "shown", "success"),
    "decisions": tuple(name for name in Decision.__annotations__ if name != "step"),
    "compliance": ("rule", "verdict", "shown", "failed"),
    "causes": ("cause", "text"),
}  # fmt: skip
EPISODE = tuple(columns(Episode))
# The fields of a step that are columns; ``_steps`` adds counts and names of the others.
STEP = tuple(name for name in columns(Step) if name != "step")


def load(folders: str | Path | Iterable[str | Path]) -> Frames:
    """One or several run folders as pandas tables; no file is read twice."""
    return Frames([read_run(folder) for folder in as_folders(folders)])


class Frames:
    """Tables with one row for each episode, step, recalled memory, proposal, or rule judged.

    Every row has its ``run`` (the folder), ``condition``, ``task`` and, except in ``episodes``,
    its ``step``: tables are joined by these. A table is made on first access.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        """Keep the runs; step logs are read on access to a table."""
        self.runs = list(runs)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row for each finished episode."""
        return frame(_episode(run, e) for run in self.runs for e in run.episodes.values())

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row for each step, without the texts of prompts."""
        return self._of_steps(_steps)

    @cached_property
    def causes(self) -> pd.DataFrame:
        """One row for each episode that was not won: its cause and the step (0 for none)."""
        rows = (
            {**_key(run, episode), "step": cause.step, "cause": cause.kind, "text": cause.text}
            for run in self.runs
            for episode in run.episodes.values()
            if (cause := cause_of(run, episode))
        )
        return frame(rows, ("run", *KEY, "step", *COLUMNS["causes"]))

    @cached_property
    def recalls(self) -> pd.DataFrame:
        """One row for each memory recalled at a step, with its outcome."""
        return self._of_steps(_recalls, COLUMNS["recalls"])

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """One row for each proposal that a guard judged."""
        return self._of_steps(_decisions, COLUMNS["decisions"])

    @cached_property
    def compliance(self) -> pd.DataFrame:
        """One row for each rule that judged a proposal."""
        return self._of_steps(_compliance, COLUMNS["compliance"])

    def _of_steps(
        self, rows: Callable[[Run, Episode, Row], Iterator[Row]], columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Rows of all steps; an episode without a readable log has none."""
        table = (
            {**_key(run, episode), "step": step["step"], **row}
            for run in self.runs
            for episode in run.episodes.values()
            for step in (read_log(run.log_file(episode)) or {"steps": []})["steps"]
            for row in rows(run, episode, step)
        )
        return frame(table, ("run", *KEY, "step", *columns) if columns else ())


def _key(run: Run, episode: Episode) -> Row:
    return {"run": str(run.folder), **{name: getattr(episode, name) for name in KEY}}


def _episode(run: Run, episode: Episode) -> Row:
    return {
        **_key(run, episode),
        **{name: getattr(episode, name) for name in EPISODE},
        "env": run.manifest.env,
        "split": run.manifest.split,
        "model": run.model(episode.condition),
        **analysis_of(run, episode).columns(),
    }


def _steps(run: Run, episode: Episode, step: Row) -> Iterator[Row]:
    kinds = analysis_of(run, episode).kinds
    yield {
        **{name: step.get(name) for name in STEP},
        "sub_goal": step["sub_goal"]["name"],
        "progress": step["sub_goal"]["progress"],
        "location": step["belief"]["location"],
        "holding": ", ".join(step["belief"]["holding"]),
        "proposal": step.get("proposal", step["action"]),
        "failure_kind": kinds[step["step"] - 1] if step["step"] <= len(kinds) else "",
        "broken": ", ".join(
            rule for rule, verdict in step.get("judged", []) if verdict == "broken"
        ),
        "rules_shown": len(shown_rules(step)),
        "recalled": len(step.get("recalls", [])),
        "memories_shown": len(in_prompt(step, run.settings(episode.condition))),
        "belief_errors": len(step["belief_errors"]),
        **step["usage"],
    }


def _recalls(run: Run, episode: Episode, step: Row) -> Iterator[Row]:
    shown = [id(recall) for recall in in_prompt(step, run.settings(episode.condition))]
    parse = get_environment(run.manifest.env).read_signature
    for recall in step.get("recalls", []):
        entry = recall["entry"]
        yield {
            "entry": entry.get("id", ""),
            "type": entry.get("type", ""),
            "source_type": source_type(entry, lambda printed: parse(printed).type),
            "target_type": episode.type,
            "advice": " -> ".join(recall.get("advice", {}).get("actions", [])),
            "score": recall["score"],
            "count": recall.get("count"),
            "dropped_by": recall["dropped_by"],
            "reason": recall["reason"],
            "warning": recall["warning"],
            "rule": recall["rule"],
            "shown": id(recall) in shown,
            "success": episode.success,
        }


def _decisions(run: Run, episode: Episode, step: Row) -> Iterator[Row]:
    for decision in step.get("decisions", []):
        yield {name: value for name, value in decision.items() if name != "step"}


def _compliance(run: Run, episode: Episode, step: Row) -> Iterator[Row]:
    shown = shown_rules(step)
    for rule, verdict in step.get("judged", []):
        yield {"rule": rule, "verdict": verdict, "shown": rule in shown, "failed": step["failed"]}
