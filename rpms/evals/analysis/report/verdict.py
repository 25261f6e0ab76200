"""The verdict: a few sentences on which arms differ significantly, and why episodes were lost.

Every figure is also in the tables. The pairs are those of the plan (``compare``); a reader may ask
for others: all arms against one. A difference is called significant if it is so after Holm's
correction for these comparisons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten

from rpms.evals.analysis.causes import UNKNOWN
from rpms.evals.analysis.experiment import arms_left_out, by_run, commits_text, run_names
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.analysis.measures import Pair, holm, metric_of, pair, per_task, shared_tasks
from rpms.evals.analysis.report.behaviour import activity, cause_of
from rpms.evals.analysis.report.comparisons import PARTS, Comparison, comparisons
from rpms.evals.analysis.report.results import figure, unfinished
from rpms.evals.analysis.tables import p_value
from rpms.evals.records.run_folder import Run
from rpms.models.opening import LABELS
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.output import quantity

LEVEL = 0.05
MAX_COMPARISONS = 6
LONGEST_ERROR = 160
"""The longest text of an error in a sentence, in characters."""


def verdict(run: Run) -> list[str]:
    """The sentences: caveats, then comparisons, then causes of losses."""
    return [*_caveats(run), *_comparison_lines(run), *_losses(run)]


def _caveats(run: Run) -> Iterator[str]:
    if run.pooled:
        yield from _experiment_caveats(run)
    for name, part in () if run.pooled else named_parts(run):
        if _is_built_in(part):
            subject = f"{name}: the" if name else "The"
            yield (
                f"{subject} model is {part.manifest.model_label}, so these results are no evidence "
                "about language models."
            )
    tasks = len(run.manifest.tasks)
    extra = {name: len(part.manifest.tasks) - tasks for name, part in named_parts(run)}
    if left_out := ", ".join(f"{more} of {name}" for name, more in extra.items() if more):
        shared = quantity(tasks, "task")
        yield f"Compared on the {shared} that all runs share; left out: {left_out}."
    if not run.complete:
        yield unfinished(run)
    if errors := sum(e.is_error for name in run.conditions for e in run.played(name)):
        yield f"Left out below: {errors} of {run.done} episodes, which ended in an error."


def _is_built_in(run: Run) -> bool:
    """True if no arm was run by a language model."""
    return all(run.model(arm) in LABELS for arm in run.conditions)


def _experiment_caveats(run: Run) -> Iterator[str]:
    """What the means are over, and in what the runs differ beyond the model and the seed."""
    names = run_names(run)
    yield (
        f"Figures are means over {quantity(len(names), 'run')}: {', '.join(names)}. Each test "
        "counts a task once, with its differences summed over the runs."
    )
    built_in = {part.manifest.model_label: None for part in run.parts if _is_built_in(part)}
    if built_in:
        yield (
            f"Among the models: {', '.join(built_in)}. These runs are no evidence about language "
            "models."
        )
    if len({part.manifest.commits for part in run.parts}) > 1:
        yield f"Not one version: {commits_text(run)}."
    for kind in ("rules", "prompts"):
        if len({getattr(part.manifest.hashes, kind) for part in run.parts}) > 1:
            yield f"The {kind} of the runs differ (their checksums are in the manifests)."
    if left_out := arms_left_out(run):
        arms = ", ".join(f"{arm} ({', '.join(runs)})" for arm, runs in left_out.items())
        yield f"Left out, because not every run has the arm: {arms}."


def _comparison_lines(run: Run) -> Iterator[str]:
    metric = metric_of(run.manifest.env)
    pairs = {
        comparison: paired
        for comparison in comparisons(run)
        if (paired := _paired(run, comparison)).n
    }
    tests = [paired.p_score if metric == "score" else paired.p for paired in pairs.values()]
    shown = len(pairs) if run.against else MAX_COMPARISONS
    for (comparison, paired), p, corrected in list(
        zip(pairs.items(), tests, holm(tests), strict=True)
    )[:shown]:
        yield _sentence(run, comparison, paired, p, corrected, len(tests))
    if len(pairs) > shown:
        yield "The other comparisons are in the table 'pairs'."
    what = "success rate" if metric == "success" else "mean floored score"
    for name in run.conditions:
        if errors := _errors_only(run, name):
            yield f"{condition_title(name)}: no result, {errors}."
        elif not pairs:
            cell = figure(run.judged(name), metric)
            yield f"{condition_title(name)}: {what} {cell.text} {cell.note}".strip() + "."


def _errors_only(run: Run, name: str) -> str:
    """What ended the episodes of an arm if each ended in an error; else empty."""
    episodes = run.played(name)
    if not episodes or not all(episode.is_error for episode in episodes):
        return ""
    places = [episode.error_place for episode in episodes]
    lines = {f"{Path(place['file']).name}:{place['line']}" if place else "" for place in places}
    where = f"failed at {lines.pop()}" if all(places) and len(lines) == 1 else "ended in an error"
    texts = [shorten(episode.error, LONGEST_ERROR, placeholder="...") for episode in episodes]
    reason = texts[0] if len({*texts}) == 1 else f"the first: {texts[0]}"
    count = quantity(len(episodes), "episode")
    return f"{'all ' if episodes[1:] else ''}{count} {where}{f' ({reason})' if texts[0] else ''}"


def _paired(run: Run, comparison: Comparison) -> Pair:
    first, second = (run.judged(name) for name in comparison[:2])
    return pair(first, second, metric_of(run.manifest.env), run.pooled)


def discordant_by_run(run: Run, comparison: Comparison) -> list[tuple[int, int]]:
    """For each run, the number of tasks that only the first arm won, and only the second."""
    counts = []
    for sides in zip(*(by_run(run, run.judged(name)) for name in comparison[:2]), strict=True):
        first, second = (per_task(side, lambda e: e.success) for side in sides)
        gains = [second[task] - first[task] for task in shared_tasks(first, second)]
        counts.append((sum(gain < 0 for gain in gains), sum(gain > 0 for gain in gains)))
    return counts


def _sentence(
    run: Run, comparison: Comparison, paired: Pair, p: float, corrected: float, tests: int
) -> str:
    graded = metric_of(run.manifest.env) == "score"
    difference = (paired.difference or 0.0) * (1 if graded else 100)
    figures = [f"{difference:+.1f} {'points of score' if graded else 'points'}"]
    if run.pooled:
        # As in the title of the line: the second arm comes first.
        counts = (f"{second}:{first}" for first, second in discordant_by_run(run, comparison))
        figures.append(f"discordant games by run {', '.join(counts)}")
    elif paired.only_first + paired.only_second and not graded:
        figures.append(f"{paired.only_second}:{paired.only_first} discordant games")
    if corrected < LEVEL:
        result = f"significantly {'worse' if difference < 0 else 'better'}"
    else:
        result = "no significant difference"
    text = _p_text(p)
    test = f"p {text}" if text.startswith("<") else f"p = {text}"
    if tests > 1:
        test += f" ({_p_text(corrected)} after Holm's correction for {tests} comparisons)"
    over = [f"{len(run.parts)} runs"] if run.pooled else []
    acted = activity(run, comparison.first, comparison.second)
    words = ", ".join([result, *figures, test, quantity(paired.n, "task"), *over, *acted])
    return f"{_pair_title(run, comparison)}: {words}."


def _p_text(p: float) -> str:
    text = p_value(p).text
    return "1.0" if text == "1.000" else text


def _pair_title(run: Run, comparison: Comparison) -> str:
    """``D vs B (memory on top of rules)``; a common end of both labels is printed once."""
    (first, _, end), (second, _, other) = (label.partition(" ") for label in comparison[:2])
    if end and end == other:
        title = f"{second} vs {first}, {end}"
    else:
        title = f"{comparison.second} vs {comparison.first}"
    if not comparison.part:
        return title
    settings, part = run.settings(comparison.first), PARTS[comparison.part]
    if parts := [each for each in ("rules", "memory") if settings.get(each)]:
        return f"{title} ({part} on top of {' and '.join(parts)})"
    if settings.get("state_block"):
        return f"{title} ({part} on top of the state)"
    if comparison.part != "state_block":  # rules and memory always show the state
        part = f"{part} and state"
    return f"{title} ({part} on top of the baseline)"


def _losses(run: Run) -> Iterator[str]:
    """The causes that most lost episodes of an arm have in common, each with all its arms."""
    arms_of: dict[str, list[str]] = {}
    for name in run.conditions:
        causes = [cause.kind for e in run.judged(name) if (cause := cause_of(run, e))]
        if not causes or UNKNOWN in causes:
            continue
        kind, times = Counter(causes).most_common(1)[0]
        if 2 * times > len(causes):
            arms_of.setdefault(kind, []).append(f"{name} ({times} of {len(causes)})")
    for kind, arms in arms_of.items():
        names = " and ".join(filter(None, [", ".join(arms[:-1]), arms[-1]]))
        yield f"Main cause of losses of {names}: {kind}."
