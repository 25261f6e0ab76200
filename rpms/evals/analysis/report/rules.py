"""The rules of a run: their texts, and the table of the rules that proposals broke."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from textwrap import shorten
from typing import NamedTuple

from rpms.envs.manuals import load_manual
from rpms.evals.analysis.measures import share
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.step_analysis import analyses
from rpms.evals.analysis.tables import Cell, Table, label, percent
from rpms.evals.records.run_folder import Run
from rpms.rules.judgement import KNOWN_ACTION
from rpms.rules.schema import HERE_BLANKS
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

LONGEST = 44
"""The characters of a rule's text in the table."""


class RuledAction(NamedTuple):
    """The action of a rule: its name, and its syntax with blanks, ``put <object> in <place>``."""

    name: str
    blank: str


def rule_table(run: Run) -> Table | None:
    """One row per broken rule, one column per condition; None if no proposal broke a rule."""
    counts = {name: analyses(run, run.judged(name)) for name in run.conditions}
    totals = sum((Counter(each.broken) for side in counts.values() for each in side.values()),
                 Counter[str]())  # fmt: skip
    if not totals:
        return None
    texts, actions = run_rules(run), run_actions(run)
    rows = []
    for rule, _ in totals.most_common():
        syntax = actions[rule].blank if rule in actions else ""
        text = texts.get(rule, syntax)
        short = syntax or shorten(text, LONGEST, placeholder=" ...")
        row = [label(rule), Cell(short, value=text)]
        rows.append([*row, *(_broken(run, name, rule) for name in run.conditions)])
    notes = [
        "The share of the model's proposals that broke the rule, before any guard. The manual "
        "judges every proposal in the belief of its step, also in arms that show no rules. An "
        "environment may accept an action that breaks a rule. Intervals resample tasks."
    ]
    return Table(
        "rules", "Rules broken", source_of(run),
        ["rule", "rule text", *map(condition_title, run.conditions)], rows, notes=notes, labels=2,
    )  # fmt: skip


def _broken(run: Run, name: str, rule: str) -> Cell:
    """The share of an arm's proposals that broke a rule; the page links to these steps."""
    counts = analyses(run, run.judged(name))
    logged = [e for e in run.judged(name) if e.key in counts]
    rate = share(
        logged, lambda e: counts[e.key].broken.get(rule, 0), lambda e: counts[e.key].judged
    )
    cell = percent(rate.value, rate.interval)
    return replace(cell, steps=(("c", name), ("r", rule), ("g", "broken"))) if rate.value else cell


def run_actions(run: Run) -> dict[str, RuledAction]:
    """The action of every rule that is about one, by the rule's id."""
    contexts = run.manifest.conditions.values()
    actions: dict[str, RuledAction] = {}
    for folder in {"": None, **{str(each.get("rules_dir") or ""): None for each in contexts}}:
        try:
            manual = load_manual(run.manifest.env, folder)
        except RpmsError:
            continue
        for rule in manual.actions:
            blanks = {name: f"<{name}>" for name in rule.parameters}
            actions.setdefault(rule.id, RuledAction(rule.name, rule.syntax.format(**blanks)))
    return actions


def run_rules(run: Run) -> dict[str, str]:
    """The text of every rule by its id; texts that differ between conditions are joined.

    The logs record which rules were shown, so rules that a condition leaves out are included.
    """
    env, folders = run.manifest.env, defaultdict[str, list[str]](list)
    for arm, context in run.manifest.conditions.items():
        folders[str(context.get("rules_dir") or "")].append(arm)
    texts = rule_texts(env)
    for folder in filter(None, folders):
        for rule, text in rule_texts(env, folder).items():
            if texts.setdefault(rule, text) != text:
                texts[rule] += f" ({', '.join(folders[folder])}: {text})"
    return texts


def rule_texts(env: str, rules_dir: str = "") -> dict[str, str]:
    """Every rule of a manual by its id; empty if the environment or the folder is missing."""
    try:
        manual = load_manual(env, rules_dir)
    except RpmsError:
        return {}
    texts = {KNOWN_ACTION: "The action must be one of the listed actions."}
    texts |= {
        place.id: f"{', '.join(place.about)}: {place.how_often} at {' -> '.join(place.places)}"
        for place in manual.domain.likely_places
    }
    # Their blanks are filled with names of the scene, which the prompt shows.
    blanks = {name: f"<{name}>" for name in HERE_BLANKS}
    texts |= {rule.id: rule.text.format(**blanks) for rule in manual.domain.here}
    for rule in (rule for _, rules in manual.tiers for rule in rules):
        texts[rule.id] = f"CRITICAL: {rule.text}" if rule.critical else rule.text
    goal = GoalSpec(sentence="", type="", object="", state="", count=1, destination="",
                    signature="")  # fmt: skip
    for line in manual.active(goal, empty_belief())["environment"]:
        texts.setdefault(line["id"], line["text"])
    return texts
