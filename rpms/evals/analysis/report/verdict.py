"""What a run says, in a few sentences: gains, what is not told apart, and why games were lost.

Nothing is computed here that the tables do not have. Each arm is compared with the one that it
varies in a single setting, and rules, memory and state with the arm that lacks just them. Only
what Holm's correction for these comparisons leaves standing is called a gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rpms.evals.analysis.arm_differences import ArmOfRun, arm_differences
from rpms.evals.analysis.causes import UNKNOWN
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.analysis.measures import Pair, holm, metric_of, pair
from rpms.evals.analysis.report.behaviour import cause_of
from rpms.evals.analysis.report.results import figure, unfinished
from rpms.evals.analysis.report.source import names
from rpms.evals.analysis.tables import p_value
from rpms.evals.records.run_folder import Run
from rpms.models.opening import LABELS
from rpms.vocabulary.output import quantity, with_article

LEVEL = 0.05
MOST = 6
"""So many comparisons are told; the rest is in the tables."""
PARTS = {
    "state_block": ("The state adds", "The state takes"),
    "memory": ("Memory adds", "Memory takes"),
    "rules": ("Rules add", "Rules take"),
}
"""What is switched on or off as a whole, and how a gain or a loss by it begins."""
LOST_BY = {
    "repeated rejection": "repeat a refused action",
    "belief error": "follow a belief that is wrong",
    "undone": "undo what was achieved",
    "loop": "go in circles",
    "missed sub-goal": "miss a sub-goal",
    "out of steps": "run out of steps while getting on",
    "unreadable replies": "are unreadable replies",
}


class Comparison(NamedTuple):
    """Two arms; ``part`` is the one part that the second has and the first lacks, if it is that."""

    first: str
    second: str
    part: str = ""


def verdict(run: Run) -> list[str]:
    """The sentences, the caveats first."""
    return [*_caveats(run), *_compared(run), *_losses(run)]


def _caveats(run: Run) -> Iterator[str]:
    for name, part in named_parts(run):
        if all(part.model(arm) in LABELS for arm in part.conditions):
            played = f"{name} was played" if name else "Played"
            yield f"{played} by {part.manifest.model_label}: no evidence of what helps a model."
    tasks = len(run.manifest.tasks)
    extra = {name: len(part.manifest.tasks) - tasks for name, part in named_parts(run)}
    if left_out := ", ".join(f"{more} of {name}" for name, more in extra.items() if more):
        yield f"Over the {quantity(tasks, 'task')} that all runs have; left out: {left_out}."
    if not run.complete:
        yield unfinished(run)
    if errors := sum(e.is_error for name in run.conditions for e in run.played(name)):
        yield f"Left out of all that follows: {errors} of {run.done} episodes, for errors."


def _compared(run: Run) -> Iterator[str]:
    metric = metric_of(run.manifest.env)
    pairs = {
        comparison: paired
        for comparison in comparisons(run)
        if (paired := pair(run.judged(comparison.first), run.judged(comparison.second), metric)).n
    }
    tests = [paired.p_score if metric == "score" else paired.p for paired in pairs.values()]
    for (comparison, paired), p, corrected in list(
        zip(pairs.items(), tests, holm(tests), strict=True)
    )[:MOST]:
        yield _sentence(run, comparison, paired, p, corrected, len(tests))
    if len(pairs) > MOST:
        yield "The table 'pairs' has the other comparisons."
    if not pairs:
        what = "success rate" if metric == "success" else "mean floored score"
        for name in run.conditions:
            cell = figure(run.judged(name), metric)
            yield f"{names(name)}, {what}: {cell.text} {cell.note}".strip() + "."


def comparisons(run: Run) -> list[Comparison]:
    """The pairs that say something: those that differ in one thing, the rest with the first arm.

    Of several runs, an arm that they share comes first.
    """
    twins = _twins(run)
    others = [name for name in run.conditions if name not in twins]
    bases = {name: base for name in others if (base := _varied(run, name))}
    arms = [name for name in run.conditions if name not in bases]
    chosen = [Comparison(base, name) for name, base in twins.items()]
    chosen += [
        Comparison(first, second, part)
        for second in arms
        for part in PARTS
        for first in _lacking(run, arms, second, part)
    ]
    chosen += [Comparison(base, name) for name, base in bases.items()]
    named = {name for comparison in chosen for name in comparison[:2]}
    first, *others = run.conditions
    return [*chosen, *(Comparison(first, name) for name in others if name not in named)]


def _twins(run: Run) -> dict[str, str]:
    """Arms of later runs, and what the first run that has an arm of this name calls it."""
    firsts: dict[str, str] = {}
    named = ((label, firsts.setdefault(own, label)) for label, (_, own) in run.homes.items())
    return {label: first for label, first in named if label != first}


def _varied(run: Run, name: str) -> str:
    """The first earlier arm that has the same parts and at most one other setting; else empty."""
    for other in run.conditions[: run.conditions.index(name)]:
        changes = _changes(run, other, name)
        if len(changes) < 2 and not changes & {*PARTS}:
            return other
    return ""


def _lacking(run: Run, arms: Sequence[str], second: str, part: str) -> list[str]:
    """The arms that lack just this part; not the baseline where one shows the state, as all do."""
    if not run.settings(second).get(part):
        return []
    grounds = [first for first in arms if _changes(run, first, second) == {part}]
    return [n for n in grounds if any(run.settings(n).get(each) for each in PARTS)] or grounds


BROUGHT_ALONG = {"rules": "state_block", "memory": "state_block", "memory_method": "memory_file",
                 "commit": "manual"}  # fmt: skip
"""What differs because something else does: no second change."""


def _changes(run: Run, first: str, second: str) -> set[str]:
    """In what two arms differ, less what one of the differences brings along."""
    names = {*arm_differences(ArmOfRun(run.manifest, first), ArmOfRun(run.manifest, second))}
    return names - {BROUGHT_ALONG[name] for name in names if name in BROUGHT_ALONG}


def _sentence(
    run: Run, comparison: Comparison, paired: Pair, p: float, corrected: float, tests: int
) -> str:
    """One comparison: what is gained or lost, or that so many tasks do not tell."""
    first, second, part = comparison
    graded = metric_of(run.manifest.env) == "score"
    difference = (paired.difference or 0.0) * (1 if graded else 100)
    tasks = quantity(paired.n, "task")
    unit = "points of score" if graded else "points"
    size = f"{abs(difference):.1f} {unit}"
    figures = f"p {p_value(p).text}"
    if not graded:
        figures = f"{paired.only_second}:{paired.only_first} games, {figures}"
    gain, loss = PARTS.get(part, ("", ""))
    if corrected >= LEVEL:
        if p < LEVEL:
            figures += f", but {p_value(corrected).text} for {tests} comparisons"
        figures = f"{difference:+.1f} {unit}, {figures}"
        if part:
            question = f"Whether {gain.lower()} to {_ground(run, comparison)}"
            return f"{question} ({_over(comparison)}) is not told by {tasks}: {figures}."
        return f"{second} is not told apart from {first} by {tasks}: {figures}."
    if part:
        words = f"{loss} {size} from" if difference < 0 else f"{gain} {size} to"
        return f"{words} {_ground(run, comparison)} ({_over(comparison)}), {figures}."
    more = "less" if difference < 0 else "more"
    return f"{second} gets {size} {more} than {first}, {figures}."


def _over(comparison: Comparison) -> str:
    """``D over B``; what both labels end in stands once."""
    (first, _, end), (second, _, other) = (label.partition(" ") for label in comparison[:2])
    if end and end == other:
        return f"{second} over {first}, {end}"
    return f"{comparison.second} over {comparison.first}"


def _ground(run: Run, comparison: Comparison) -> str:
    """What the first arm has already; rules and memory bring the baseline the state besides."""
    settings = run.settings(comparison.first)
    if parts := [part for part in ("rules", "memory") if settings.get(part)]:
        return " and ".join(parts)
    if settings.get("state_block"):
        return "the state"
    return "the baseline" if comparison.part == "state_block" else "the baseline, state included"


def _losses(run: Run) -> Iterator[str]:
    """What most lost games of the first and the last arm have in common."""
    arms_of: dict[str, list[str]] = {}
    for name in dict.fromkeys((run.conditions[0], run.conditions[-1])):
        causes = [cause.kind for e in run.judged(name) if (cause := cause_of(run, e))]
        if not causes or UNKNOWN in causes:
            continue
        kind, times = Counter(causes).most_common(1)[0]
        if 2 * times > len(causes):
            words = LOST_BY.get(kind, f"end in {with_article(kind)}")
            arms_of.setdefault(words, []).append(f"{name} ({times} of {len(causes)})")
    for words, arms in arms_of.items():
        yield f"Most losses of {' and '.join(arms)} {words}."
