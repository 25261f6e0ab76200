"""The rules of a run: their texts, and the table of the rules that proposals broke."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple

from rpms.envs.manuals import load_manual
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import share
from rpms.evals.analysis.report.behaviour import named_sums
from rpms.evals.analysis.tables import Cell, Table, label, share_cell
from rpms.evals.records.run_folder import Run
from rpms.rules.schema import HERE_BLANKS
from rpms.rules.verdicts import KNOWN_ACTION
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec

if TYPE_CHECKING:
    from pandas import DataFrame

LONGEST = 44
"""The characters of a rule's text in the table."""


class RuledAction(NamedTuple):
    """The action of a rule: its name, and its syntax with blanks, ``put <object> in <place>``."""

    name: str
    blank: str


def rule_table(data: Results) -> Table:
    """One row per broken rule, one column per arm."""
    run, totals = data.run, named_sums(data.judged, "broken")
    texts, actions = run_rules(run), run_actions(run)
    rows = []
    for rule in totals:
        syntax = actions[rule].blank if rule in actions else ""
        text = texts.get(rule, syntax)
        short = syntax or shorten(text, LONGEST, placeholder=" ...")
        row = [label(rule), Cell(short, value=text)]
        rows.append([*row, *(_broken(side, name, rule) for name, side in data.sides.items())])
    notes = [
        "The share of the model's proposals that broke the rule, before any guard. The manual "
        "judges every proposal in the belief of its step, also in arms that show no rules. An "
        "environment may accept an action that breaks a rule. Intervals resample tasks."
    ]
    return Table(
        "rules", "Rules broken",
        ["rule", "rule text", *map(condition_title, run.conditions)], rows, notes=notes, labels=2,
    )  # fmt: skip


def _broken(side: DataFrame, name: str, rule: str) -> Cell:
    """The share of an arm's proposals that broke a rule; the page links to the episodes."""
    times = side.broken.map(lambda broken: broken.get(rule, 0)).astype(int)
    rate = share(side.assign(times=times), "times", "judged")
    return replace(share_cell(rate), link=(("c", name), ("broken", rule)) if rate.value else ())


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
