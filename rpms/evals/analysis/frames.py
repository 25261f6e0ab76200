"""The frame: one row for each episode of one or several runs, and one for each step.

Tables, figures, verdict and page are made from it. pandas comes with the extra ``report``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpms.envs import get_environment
from rpms.evals.analysis.experiment import run_names
from rpms.evals.analysis.measures import Pair, metric_of
from rpms.evals.analysis.step_analysis import (
    Analysis,
    in_prompt,
    read_analyses,
    shown_rules,
    source_type,
)
from rpms.evals.analysis.tables import frame
from rpms.evals.records.run_folder import Run, as_folders, read_log, read_run
from rpms.evals.records.schema import Episode, Step, columns
from rpms.vocabulary.turn import Decision

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

KEY = ("condition", "task", "repeat", "trial")
# The columns of tables that may be empty, so that a query on an empty table works.
COLUMNS = {
    "recalls": ("entry", "type", "source_type", "target_type", "advice", "score", "count",
                "dropped_by", "reason", "warning", "rule", "shown", "success"),
    "decisions": tuple(name for name in Decision.__annotations__ if name != "step"),
    "compliance": ("rule", "verdict", "shown", "failed"),
}  # fmt: skip
EPISODE = (*(name for name in columns(Episode) if name not in KEY), "error_place")
# The fields of a step that are columns; ``_steps`` adds counts and names of the others.
STEP = tuple(name for name in columns(Step) if name != "step")


def load(*folders: str | Path | Iterable[str | Path]) -> Frames:
    """One or several run folders as pandas tables."""
    paths = [path for each in folders or ([],) for path in as_folders(each)]
    return Frames([read_run(path) for path in paths])


@dataclass(frozen=True)
class Results:
    """A run, or several joined ones, and the frame of its episodes."""

    run: Run
    pairs: dict[tuple[str, str], Pair] = field(default_factory=dict)
    """The tests that were made."""

    @property
    def arms(self) -> list[str]:
        return self.run.conditions

    @property
    def metric(self) -> str:
        """The column of the primary figure."""
        return metric_of(self.run.manifest.env)

    @property
    def runs(self) -> list[str]:
        """The names in the column ``run``."""
        return run_names(self.run) if self.run.pooled else [str(self.run.folder)]

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """The frame, with arms and runs as categories in their order."""
        import pandas

        table = episode_frame(self.run, self.runs)
        return table.assign(
            condition=pandas.Categorical(table.condition, self.arms),
            run=pandas.Categorical(table.run, self.runs),
        )

    @cached_property
    def played(self) -> pd.DataFrame:
        """The last trial of each task and repeat, errors included."""
        return self.episodes[self.episodes.final]

    @cached_property
    def judged(self) -> pd.DataFrame:
        """The episodes that count in rates, means and tests."""
        return self.episodes[self.episodes.counted]

    def by(self, *keys: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
        """The judged episodes by arm, or by arm and run; also where there are none."""
        groups = dict(iter(self.judged.groupby([*keys], observed=True)))
        values = {"condition": self.arms, "run": self.runs}
        for key in product(*(values[name] for name in keys)):
            yield key, groups.get(key, self.judged.iloc[:0])

    @cached_property
    def sides(self) -> dict[str, pd.DataFrame]:
        """The judged episodes of each arm."""
        return {arm: side for (arm,), side in self.by("condition")}


def episode_frame(run: Run, names: Sequence[str]) -> pd.DataFrame:
    """One row for each finished episode of a run, or of joined ones by these names."""
    analyses = read_analyses(run, os.cpu_count() or 1)
    final = {episode.key for arm in run.conditions for episode in run.played(arm)}
    counted = {episode.key for arm in run.conditions for episode in run.judged(arm)}
    rows = [
        {
            "run": names[run.part_number(episode)],
            **{name: getattr(episode, name) for name in (*KEY, *EPISODE)},
            "floored": episode.floored,
            "is_error": episode.is_error,
            "final": episode.key in final,
            "counted": episode.key in counted,
            "model": run.model(episode.condition),
            **analysis.columns(),
        }
        for episode, analysis in zip(run.episodes.values(), analyses, strict=True)
    ]
    fields = ("run", *KEY, *EPISODE, "floored", "is_error", "final", "counted", "model",
             *Analysis().columns())  # fmt: skip
    table = frame(rows, fields)
    return table.astype({"final": bool, "counted": bool, "success": bool, "is_error": bool})


class Frames:
    """Tables with one row for each episode, step, recalled memory, proposal, or rule judged.

    Every row has its ``run`` (the folder), ``condition``, ``task``, ``repeat``, ``trial`` and,
    except in ``episodes``, its ``step``: tables are joined by these. A table is made on first
    access.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        """Keep the runs; step logs are read on access to a table."""
        self.runs = list(runs)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row for each finished episode."""
        tables = [episode_frame(run, [str(run.folder)]) for run in self.runs]
        import pandas

        return pandas.concat(tables, ignore_index=True)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row for each step, without the texts of prompts."""
        return self._of_steps(_steps)

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


def _steps(run: Run, episode: Episode, step: Row) -> Iterator[Row]:
    yield {
        **{name: step.get(name) for name in STEP},
        "sub_goal": step["sub_goal"]["name"],
        "progress": step["sub_goal"]["progress"],
        "location": step["belief"]["location"],
        "holding": ", ".join(step["belief"]["holding"]),
        "proposal": step.get("proposal", step["action"]),
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
