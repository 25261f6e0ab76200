"""What became of knowledge: which rules proposals kept, and why actions and episodes failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rpms.evals.measures import share
from rpms.evals.records import Episode
from rpms.evals.report.source import names, source_of
from rpms.evals.rule_compliance import KINDS, KNOWN_ACTION, NOTHING_REFUSED, spans
from rpms.evals.run_folder import Run
from rpms.evals.tables import Cell, Table, count, counted, label, linked, percent

NOT_SHOWN = "Rules judge in every condition, also where the model was not shown them."


def obedience_table(run: Run) -> Table | None:
    """Rules down, conditions across: how many proposals kept each rule."""
    rules = sorted({rule for e in _judged(run) for rule in e.obeyed}, key=_known_last)
    if not rules:
        return None
    rows = [
        [label(rule), *(_kept([e.obeyed.get(rule) for e in run.judged(n)]) for n in run.conditions)]
        for rule in rules
    ]
    notes = [
        "Of the model's own proposals that a rule speaks of and the belief settles, the share that "
        "kept it, before any guard. An action's rule is kept if all it needs holds; a forbidding "
        f"rule if its pattern is not met. '{KNOWN_ACTION}': the proposal is an action of the list "
        f"that every prompt shows. {NOT_SHOWN}",
    ]
    return Table(
        "obedience", "Rules kept by the model's own proposals", source_of(run),
        ["rule", *map(names, run.conditions)], rows, notes=notes,
    )  # fmt: skip


def obedience_steps_table(run: Run) -> Table | None:
    """Spans of steps down, conditions across: does obedience decay?"""
    found = {span for e in _judged(run) for span in e.obeyed_by_step}
    if not found:
        return None
    rows = []
    for span in (span for span in spans() if span in found):
        counts = ([e.obeyed_by_step.get(span) for e in run.judged(n)] for n in run.conditions)
        rows.append([label(span), *map(_kept, counts)])
    notes = [
        "Proposals that some rule settles, and the share of them that break none. Later spans hold "
        "only the episodes that lasted so long, which are the harder ones: compare conditions "
        f"within a row first. {NOT_SHOWN}",
    ]
    return Table(
        "obedience_steps", "Rules kept, by step", source_of(run),
        ["steps", *map(names, run.conditions)], rows, notes=notes,
    )  # fmt: skip


def prediction_table(run: Run) -> Table | None:
    """One row per rule: how often the world said otherwise."""
    found: dict[str, Counter[int]] = {}
    for episode in _judged(run):
        for rule, counts in episode.foretold.items():
            found.setdefault(rule, Counter()).update(dict(enumerate(counts)))
    if not found:
        return None
    rows = []
    for rule, n in sorted(found.items()):
        rows.append([
            label(rule), count(n[0]), _part(n[1], n[0]), count(n[2]), _part(n[3], n[2]),
        ])  # fmt: skip
    wrong = sum(n[1] + n[3] for n in found.values())
    notes = [
        "Over all conditions, of the actions played as proposed where the belief settles all that "
        "the rule asks for. A refusal of what a rule calls possible means that it leaves out a "
        "condition, and an acceptance of what it calls impossible that it has a false one: 'rpms "
        "rules learn --revise --from-runs DIR' corrects a manual by such runs.",
    ]
    return Table(
        "predictions", f"Rules that turned out wrong: {wrong} times", source_of(run),
        ["rule", "called possible", "refused after all", "called impossible",
         "accepted after all"], rows, notes=notes,
    )  # fmt: skip


def _known_last(rule: str) -> tuple[bool, str]:
    return rule == KNOWN_ACTION, rule


def _kept(counts: Iterable[Sequence[int] | None]) -> Cell:
    """A share with an interval that resamples episodes, and the count behind it."""
    found = [one for one in counts if one and one[0]]
    kept = share([one[1] for one in found], [one[0] for one in found])
    return percent(kept.value, kept.interval, of=f"of {sum(one[0] for one in found):,}")


def lacking_table(run: Run) -> Table | None:
    """Refused actions and lost episodes: was the knowledge missing, wrong or ignored?"""
    known = {name: [e for e in run.judged(name) if e.refused] for name in run.conditions}
    if not any(known.values()):
        return None
    rows = []
    for name, episodes in known.items():
        refused = sum((Counter(e.refused) for e in episodes), Counter[str]())
        lost = [e for e in episodes if e.failure_mode]
        sides = [[e for e in lost if e.lost_by == kind] for kind in (*KINDS, NOTHING_REFUSED)]
        row = [label(names(name)), count(refused.total())]
        row += [_part(refused[kind], refused.total()) for kind in KINDS]
        row.append(counted(lost))
        rows.append([*row, *(linked(_part(len(side), len(lost)), side) for side in sides)])
    columns = ["condition", "actions refused", *KINDS, "episodes lost"]
    notes = [
        "Ignored: a rule or a memory in the prompt definitely spoke against the action, or it was "
        "no action of the list. Wrong: a memory in the prompt said to do it, or all that the rule "
        "in the prompt asks for held in the belief, and the world refused it. Missing: nothing in "
        "the prompt settled it. A lost episode counts under the kind of most of its refused "
        "actions, or of the action that ended it.",
    ]
    return Table(
        "lacking", "Knowledge missing, wrong or ignored", source_of(run),
        [*columns, *(f"{kind} (episodes)" for kind in KINDS), NOTHING_REFUSED], rows, notes=notes,
    )  # fmt: skip


def _part(part: int, whole: int) -> Cell:
    return percent(part / whole if whole else None, of=f"{part:,}")


def _judged(run: Run) -> list[Episode]:
    return [episode for name in run.conditions for episode in run.judged(name)]
