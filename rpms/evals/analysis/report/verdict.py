"""The verdict: a few sentences on which arms differ significantly, and why episodes were lost.

Every figure is also in the tables. The pairs are those of the plan (``compare``); a reader may ask
for others: all arms against one. A difference is called significant if it is so after Holm's
correction for these comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten

from rpms.evals.analysis.arm_differences import PARTS, Comparison, comparisons
from rpms.evals.analysis.causes import UNKNOWN
from rpms.evals.analysis.experiment import arms_left_out, commits_text, run_names
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.analysis.measures import Pair, holm
from rpms.evals.analysis.report.behaviour import activity
from rpms.evals.analysis.report.results import UNITS, figure, tested, unfinished
from rpms.evals.analysis.shared_steps import shared_steps
from rpms.evals.analysis.tables import p_value
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.context import BUILT_IN, condition_title
from rpms.vocabulary.output import quantity

LEVEL = 0.05
MAX_COMPARISONS = 6
LONGEST_ERROR = 160
"""The longest text of an error in a sentence, in characters."""


def verdict(data: Results) -> list[str]:
    """The sentences: caveats, then comparisons, then causes of losses."""
    return [*_caveats(data), *_comparison_lines(data), *_losses(data)]


def _caveats(data: Results) -> Iterator[str]:
    run = data.run
    if run.pooled:
        yield from _experiment_caveats(run)
    for name, part in () if run.pooled else named_parts(run):
        if _is_built_in(part):
            subject = f"{name}: the" if name else "The"
            yield (
                f"{subject} model is {part.manifest.model_label}, so these results are no evidence "
                "about language models."
            )
    tasks, counted = len(run.manifest.tasks), {task.id for task in run.manifest.tasks}
    extra = {name: sum(task.id not in counted for task in part.manifest.tasks)
             for name, part in named_parts(run)}  # fmt: skip
    if left_out := ", ".join(f"{more} of {name}" for name, more in extra.items() if more):
        shared = quantity(tasks, "task")
        yield f"Compared on the {shared} that all runs share; left out: {left_out}."
    if not run.complete:
        yield unfinished(run)
    if errors := int(data.played.is_error.sum()):
        yield f"Left out below: {errors} of {run.done} episodes, which ended in an error."


def _is_built_in(run: Run) -> bool:
    """True if no arm was run by a language model."""
    return all(run.model(arm) in BUILT_IN for arm in run.conditions)


def _experiment_caveats(run: Run) -> Iterator[str]:
    """What the means are over, and in what the runs differ beyond the model and the seed."""
    names = run_names(run)
    yield (
        f"Figures are means over {quantity(len(names), 'run')}: {', '.join(names)}. Each test "
        "counts a task once, with its mean difference over the runs."
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


def _comparison_lines(data: Results) -> Iterator[str]:
    run = data.run
    pairs = {each: paired for each in comparisons(run) if (paired := tested(data, each)).n}
    tests = [paired.p for paired in pairs.values()]
    shown = len(pairs) if run.against else MAX_COMPARISONS
    for (comparison, paired), p, corrected in list(
        zip(pairs.items(), tests, holm(tests), strict=True)
    )[:shown]:
        yield _sentence(data, comparison, paired, p, corrected, len(tests))
    if (more := len(pairs) - shown) > 0:
        yield f"{quantity(more, 'further comparison')}: rpms report DIR --table pairs."
    for name in data.arms:
        if errors := _errors_only(data, name):
            yield f"{condition_title(name)}: no result, {errors}."
        elif not pairs:
            cell = figure(data.sides[name], data.metric)
            text = f"{condition_title(name)}: {UNITS[data.metric]} {cell.text} {cell.note}"
            yield f"{text.strip()}."


def _errors_only(data: Results, name: str) -> str:
    """What ended the episodes of an arm if each ended in an error; else empty."""
    episodes = data.played[data.played.condition == name]
    if episodes.empty or not episodes.is_error.all():
        return ""
    places = [*episodes.error_place]
    lines = {f"{Path(place['file']).name}:{place['line']}" if place else "" for place in places}
    where = f"failed at {lines.pop()}" if all(places) and len(lines) == 1 else "ended in an error"
    texts = [shorten(error, LONGEST_ERROR, placeholder="...") for error in episodes.error]
    reason = texts[0] if len({*texts}) == 1 else f"the first: {texts[0]}"
    count = quantity(len(episodes), "episode")
    return (
        f"{'all ' if len(episodes) > 1 else ''}{count} {where}{f' ({reason})' if texts[0] else ''}"
    )


def _sentence(
    data: Results, comparison: Comparison, paired: Pair, p: float, corrected: float, tests: int
) -> str:
    run, graded = data.run, data.metric == "floored"
    difference = (paired.difference.value or 0.0) * (1 if graded else 100)
    figures = [f"{difference:+.1f} {'points of score' if graded else 'points'}"]
    if paired.only_first + paired.only_second and not graded:
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
    acted = activity(data, comparison.first, comparison.second)
    acted += _differing_prompts(run, comparison)
    words = ", ".join([result, *figures, test, quantity(paired.n, "task"), *over, *acted])
    return f"{_pair_title(run, comparison)}: {words}."


def _differing_prompts(run: Run, comparison: Comparison) -> list[str]:
    """For a graph of one's own, how often its prompts differ from those of the other arm."""
    arms = comparison[:2]
    if not any("graph" in run.manifest.swapped.get(arm, {}) for arm in arms):
        return []
    steps, differing = shared_steps(run, *arms)
    return [f"prompts differ at {differing:,} of {quantity(steps, 'shared step')}"] if steps else []


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


def _losses(data: Results) -> Iterator[str]:
    """The causes that most lost episodes of an arm have in common, each with all its arms."""
    arms_of: dict[str, list[str]] = {}
    for name, side in data.sides.items():
        causes = side.cause[~side.success].value_counts()
        if len(causes) and UNKNOWN not in causes and 2 * causes.iloc[0] > causes.sum():
            text = f"{name} ({causes.iloc[0]} of {causes.sum()})"
            arms_of.setdefault(str(causes.index[0]), []).append(text)
    for kind, arms in arms_of.items():
        names = " and ".join(filter(None, [", ".join(arms[:-1]), arms[-1]]))
        yield f"Main cause of losses of {names}: {kind}."
