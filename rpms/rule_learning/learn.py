"""``rpms rules learn``: writes a Tier 3 file from the answers of an environment.

``evidence.json`` beside it has the counts behind every rule.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from rpms.envs import Environment
from rpms.envs.manuals import load_manual
from rpms.rule_learning.evidence import CERTAIN, CommandTemplate, ObservedUses
from rpms.rule_learning.explore import STEPS, explore
from rpms.rule_learning.induction import Hypotheses, Hypothesis, writable
from rpms.rules.check import check_manual
from rpms.rules.predicates import ARGUMENT
from rpms.rules.schema import ActionRule
from rpms.rules.wording import statement
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import write_whole
from rpms.vocabulary.output import quantity

SOURCE = "learned"
UNSEEN = "seen_to_work"
"""The condition of an action that was never accepted, so its conditions are unknown."""
MAX_PRINTED = 8
"""The prompt lists the kinds of a table with at most this many."""

Report = Callable[[str], None]
Sections = defaultdict[str, dict[str, Any]]
"""The tables that the conditions of actions refer to, by their section of the tier."""


def learn_by_exploring(
    env: Environment, out: Path, scenes: int, seed: int = 0, steps: int = 0, report: Report = print
) -> None:
    """Explore scenes of the learning split, then write the rules that the answers support.

    ``steps`` are commands per scene; 0 means the default. ``report`` receives progress lines.
    """
    tasks = env.tasks(env.learning_split, scenes) if scenes > 0 else []
    if not tasks:
        raise RpmsError(f"--explore {scenes}: there is no scene to explore; use at least 1")
    latest: Hypotheses | None = None

    def learn(number: int, experience: ObservedUses) -> None:
        nonlocal latest
        latest = Hypotheses(experience)
        head = f"scene {number}/{len(tasks)}: {experience.commands} commands"
        report(f"{head}, {_progress(latest)}")

    try:
        explore(env, tasks, seed, learn, steps or STEPS)
    except KeyboardInterrupt:
        if latest is None:
            raise
        report("interrupted: writing the rules learned so far")
    if latest:
        source = f"{quantity(len(tasks), 'scene')} of {env.learning_split}, seed {seed}"
        _write(env, out, latest, source, report)


def _progress(rules: Hypotheses) -> str:
    learned, experience = rules.rules.values(), rules.experience
    conditions = sum(
        len(rule.conditions)
        + len(rule.alternatives)
        + len(rule.tables.single)
        + bool(rule.tables.pair)
        for rule in learned
    )
    unexplained = sum(rule.unexplained for rule in learned)
    return (  # the number of conditions may fall, because refuted ones are dropped
        f"{len(experience.worked)} of {len(experience.templates)} actions seen to work; "
        f"now {quantity(conditions, 'condition')}, {quantity(unexplained, 'rejection')} unexplained"
    )


def _write(env: Environment, out: Path, rules: Hypotheses, source: str, report: Report) -> None:
    """Write the rules, and check them as ``rpms rules check`` does."""
    tier = beside(tier_of(rules), load_manual(env.name).actions)
    text = yaml.safe_dump(tier, sort_keys=False, default_flow_style=None, width=96)
    head = f"# Tier 3 of {env.name}, learned from {source}.\n# evidence.json has the counts.\n"
    write_whole(out / "environment.yaml", head + text)
    counts = {syntax: counts_of(rule) for syntax, rule in rules.rules.items()}
    write_whole(out / "evidence.json", json.dumps(counts, indent=1) + "\n")
    findings = check_manual(env.rules, env.goal_types(), env.command_verbs(), over=out)
    for finding in findings:
        report(str(finding))
    report(f"{out}: {quantity(len(findings), 'problem')}")


def tier_of(rules: Hypotheses) -> dict[str, Any]:
    """Tier 3 as plain data."""
    sections: Sections = defaultdict(dict)
    actions = [
        _action(template, rules.rules.get(template.syntax), name, sections)
        for name, template in _names(rules.experience.templates)
    ]
    tier: dict[str, Any] = {"tier": "environment", "replaces": True}
    for section in ("affordances", "ruled_out", "contains", "cannot_contain", "predicates"):
        if section in sections:
            tier[section] = sections[section]
    if rules.facts.built_together:
        tier["built_together"] = [sorted(unit) for unit in rules.facts.built_together]
    if wording := {name: sections[name] for name in ("phrases",) if sections[name]}:
        tier["wording"] = wording
    return {**tier, "actions": actions}


def beside(tier: Mapping[str, Any], shipped: Iterable[ActionRule]) -> dict[str, Any]:
    """The tier as an overlay on a manual that has further actions.

    Each learned action takes the id and the name of the action it replaces. The other actions, and
    everything they need, stay as they are.
    """
    rules = {rule.syntax: rule for rule in shipped}
    if rules.keys() <= {action["syntax"] for action in tier["actions"]}:
        return dict(tier)
    actions = []
    for action in tier["actions"]:
        old = rules.get(action["syntax"])
        actions.append({**action, "id": old.id, "name": old.name} if old else action)
    return {**{key: tier[key] for key in tier if key != "replaces"}, "actions": actions}


def _names(templates: Iterable[CommandTemplate]) -> list[tuple[str, CommandTemplate]]:
    """A unique name for every template."""
    names: dict[str, CommandTemplate] = {}
    for template in templates:
        name, number = template.name, 2
        while name in names:
            name, number = f"{template.name}_{number}", number + 1
        names[name] = template
    return list(names.items())


def _action(
    template: CommandTemplate, rule: Hypothesis | None, name: str, sections: Sections
) -> dict[str, Any]:
    identity = f"L-{re.sub(r'[^A-Z0-9]+', '-', name.upper())}"
    head: dict[str, Any] = {"id": identity, "name": name, "syntax": template.syntax}
    if rule is None:
        # `changed` is unknown in every belief, so the condition stays open.
        sections["predicates"][UNSEEN] = [["changed(anything)"]]
        sections["phrases"][UNSEEN] = "it is known to work"
        return {**head, "preconditions": [UNSEEN], "effects": [], "source": SOURCE,
                "support": 0, "confidence": 0.0, "printed": False}  # fmt: skip
    general = [
        template.predicate(literal) for literal in rule.conditions if template.is_general(literal)
    ]
    constant = [
        template.predicate(literal)
        for literal in rule.conditions
        if not template.is_general(literal)
    ]
    conditions = [str(predicate) for predicate in general]
    if constant:
        sections["predicates"][f"{name}_ready"] = [[str(predicate) for predicate in constant]]
        phrases = (statement(predicate, {}, CERTAIN) for predicate in constant)
        sections["phrases"][f"{name}_ready"] = "; ".join(phrases)
        conditions.append(f"{name}_ready")
    if rule.alternatives:
        conditions.append(_disjunction(rule, name, sections))
    conditions += _tables(rule, name, sections)
    judged = rule.accepted + rule.rejected
    effects = [str(template.predicate(literal)) for literal in writable(template, rule.effects)]
    action = {**head, "preconditions": conditions, "effects": effects, "source": SOURCE}
    action["support"] = judged
    action["confidence"] = round((judged - rule.unexplained + 1) / (judged + 2), 3)
    absent = [
        p for p in map(template.predicate, rule.conditions) if not p.positive and p.name == "at"
    ]
    if absent and absent[0] in general:
        action["rejected_means_here"] = absent[0].arguments[0]
    return action


def _disjunction(rule: Hypothesis, name: str, sections: Sections) -> str:
    """Define a predicate of the tier for the disjunction; return the condition that uses it."""
    parameter = rule.parameter
    predicate = f"{name}_{parameter}"
    literals = [rule.template.predicate(literal) for literal in rule.alternatives]
    sections["predicates"][predicate] = [[str(p.bind({parameter: ARGUMENT}))] for p in literals]
    phrases = (statement(p, {parameter: "{0}"}, CERTAIN) for p in literals)
    sections["phrases"][predicate] = " or ".join(phrases)
    return f"{predicate}({parameter})"


def _tables(rule: Hypothesis, name: str, sections: Sections) -> list[str]:
    """Conditions on the kinds of things: one predicate per parameter, or one for the pair."""
    conditions = []
    parameters = rule.template.parameters
    for at, table in rule.tables.single.items():
        predicate = f"{name}_{parameters[at]}_kind"
        good = [kind for kind, (yes, no) in table.items() if yes and not no]
        sections["affordances"][predicate] = good
        bad = [kind for kind, (yes, no) in table.items() if no and not yes]
        sections["ruled_out"][predicate] = bad
        what = f"a {' or '.join(good)}" if len(good) <= MAX_PRINTED else f"of a kind to {name}"
        sections["phrases"][predicate] = f"{{0}} is {what}"
        conditions.append(f"{predicate}({parameters[at]})")
    if rule.tables.pair:
        place, thing = _sides(rule)
        for kinds, (yes, no) in rule.tables.pair.items():
            if not (yes and no):
                section = sections["contains" if yes else "cannot_contain"]
                listed = section.setdefault(kinds[place], [])
                if kinds[thing] not in listed:
                    listed.append(kinds[thing])
        conditions.append(f"can_contain({parameters[place]}, {parameters[thing]})")
    return conditions


def _sides(rule: Hypothesis) -> tuple[int, int]:
    """The indices of place and thing; the second parameter is the place unless the first is."""
    literals = map(rule.template.predicate, (*rule.conditions, *rule.doubtful))
    places = [p.arguments[0] for p in literals if p.positive and p.name in ("place", "at")]
    return (0, 1) if rule.template.parameters[0] in places else (1, 0)


def counts_of(rule: Hypothesis) -> dict[str, Any]:
    """The counts behind every literal and every kind."""
    template = rule.template
    text = {
        literal: str(template.predicate(literal)) for literal in (*rule.conditions, *rule.doubtful)
    }
    return {
        "accepted": rule.accepted,
        "rejected": rule.rejected,
        "unexplained": rule.unexplained,
        "kept": {text[literal]: rule.tested.get(literal, 0) for literal in rule.conditions},
        "alternatives": [str(template.predicate(literal)) for literal in rule.alternatives],
        "doubtful": [text[literal] for literal in rule.doubtful],
        "kinds": {
            template.parameters[at]: {kind: list(counts) for kind, counts in table.items()}
            for at, table in rule.tables.single.items()
        },
        "pairs": {" + ".join(kinds): list(n) for kinds, n in rule.tables.pair.items()},
    }
