"""Rules as everybody writes them: a Tier 3 file in the usual schema, and the counts behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from rpms.rule_learning.induction import Hypotheses, Hypothesis, writable
from rpms.rule_learning.templates import Template
from rpms.rules.predicates import ARGUMENT, PHRASES, Predicate
from rpms.rules.schema import ActionRule
from rpms.vocabulary.files import write_whole

SOURCE = "learned"
UNSEEN = "seen_to_work"
"""The condition of an action that was never accepted: nobody can say when it works."""
NAMED = 8
"""A table of no more kinds than that is printed in the prompt."""


def tier_of(rules: Hypotheses) -> dict[str, Any]:
    """Tier 3 as plain data."""
    tables: dict[str, Any] = {}
    actions = [
        _action(template, rules.rules.get(template.syntax), name, tables)
        for name, template in _names(rules.experience.templates)
    ]
    shared = [sorted(unit) for unit in rules.world.built_together]
    found: dict[str, Any] = {"tier": "environment", "replaces": True}
    for section in ("affordances", "ruled_out", "contains", "cannot_contain", "predicates"):
        if section in tables:
            found[section] = tables[section]
    if shared:
        found["built_together"] = shared
    if wording := {name: tables[name] for name in ("phrases", "recalled") if tables.get(name)}:
        found["wording"] = wording
    return {**found, "actions": actions}


def beside(tier: Mapping[str, Any], shipped: Iterable[ActionRule]) -> dict[str, Any]:
    """The tier, laid over a manual that has more actions than could be learned about.

    Each learned action then takes the id and the name of the one it replaces; the others, and all
    that they need, stay as they are.
    """
    known = {rule.syntax: rule for rule in shipped}
    if known.keys() <= {action["syntax"] for action in tier["actions"]}:
        return dict(tier)
    actions = []
    for action in tier["actions"]:
        old = known.get(action["syntax"])
        actions.append({**action, "id": old.id, "name": old.name} if old else action)
    return {**{key: tier[key] for key in tier if key != "replaces"}, "actions": actions}


def _names(templates: Iterable[Template]) -> list[tuple[str, Template]]:
    """A name of its own for every action."""
    found: dict[str, Template] = {}
    for template in templates:
        name, number = template.name, 2
        while name in found:
            name, number = f"{template.name}_{number}", number + 1
        found[name] = template
    return list(found.items())


def _action(
    template: Template, rule: Hypothesis | None, name: str, tables: dict[str, Any]
) -> dict[str, Any]:
    head: dict[str, Any] = {"id": f"L-{re.sub(r'[^A-Z0-9]+', '-', name.upper())}", "name": name}
    head["syntax"] = template.syntax
    if rule is None:
        # No belief ever tells whether something will have `changed`: the answer stays open.
        _section(tables, "predicates")[UNSEEN] = [["changed(anything)"]]
        _section(tables, "phrases")[UNSEEN] = "nobody has seen it work yet"
        return {**head, "preconditions": [UNSEEN], "effects": [], "source": SOURCE,
                "support": 0, "confidence": 0.0, "printed": False}  # fmt: skip
    conditions = [str(template.predicate(o)) for o in rule.kept if template.is_general(o)]
    if named := [template.predicate(o) for o in rule.kept if not template.is_general(o)]:
        _section(tables, "predicates")[f"{name}_ready"] = [[str(one) for one in named]]
        _section(tables, "phrases")[f"{name}_ready"] = "; ".join(map(_phrase, named))
        conditions.append(f"{name}_ready")
    if rule.ways:
        conditions.append(_ways(rule, name, tables))
    conditions += _tables(rule, name, tables)
    judged = rule.accepted + rule.refused
    effects = [str(template.predicate(one)) for one in writable(template, rule.effects)]
    found = {**head, "preconditions": conditions, "effects": effects, "source": SOURCE}
    found["support"] = judged
    found["confidence"] = round((judged - rule.unexplained + 1) / (judged + 2), 3)
    here = [one for one in rule.kept if not one.positive and template.atoms[one.atom].name == "at"]
    if here and template.is_general(here[0]):
        found["refused_means_here"] = template.atoms[here[0].atom].arguments[0]
    return found


def _ways(rule: Hypothesis, name: str, tables: dict[str, Any]) -> str:
    """One of several conditions: a predicate of the world's own."""
    own = f"{name}_{rule.about}"
    renamed = {rule.about: ARGUMENT}
    _section(tables, "predicates")[own] = [
        [str(rule.template.about(way, renamed))] for way in rule.ways
    ]
    named = {rule.about: "{0}"}
    phrases = (_phrase(rule.template.about(way, named)) for way in rule.ways)
    _section(tables, "phrases")[own] = " or ".join(phrases)
    return f"{own}({rule.about})"


def _phrase(predicate: Predicate) -> str:
    key = predicate.name if predicate.positive else f"not {predicate.name}"
    if key in PHRASES:
        return PHRASES[key].format(*predicate.arguments)
    form = PHRASES.get(predicate.name, f"{{0}} is {predicate.name}")
    words = form.format(*predicate.arguments, "", "")
    return words if predicate.positive else f"not: {words}"


def _tables(rule: Hypothesis, name: str, tables: dict[str, Any]) -> list[str]:
    conditions = []
    parameters = rule.template.parameters
    for at, table in rule.tables.single.items():
        own = f"{name}_{parameters[at]}_kind"
        good = [kind for kind, (yes, no) in table.items() if yes and not no]
        _section(tables, "affordances")[own] = good
        bad = [kind for kind, (yes, no) in table.items() if no and not yes]
        _section(tables, "ruled_out")[own] = bad
        said = f"a {' or '.join(good)}" if len(good) <= NAMED else f"of a kind to {name}"
        _section(tables, "phrases")[own] = f"{{0}} is {said}"
        _section(tables, "recalled")[own] = f"{{0}} is {{how}}fit for '{name.replace('_', ' ')}'"
        conditions.append(f"{own}({parameters[at]})")
    if rule.tables.pair:
        place, thing = _sides(rule)
        for kinds, (yes, no) in rule.tables.pair.items():
            if not (yes and no):
                section = _section(tables, "contains" if yes else "cannot_contain")
                listed = section.setdefault(kinds[place], [])
                if kinds[thing] not in listed:
                    listed.append(kinds[thing])
        conditions.append(f"can_contain({parameters[place]}, {parameters[thing]})")
    return conditions


def _sides(rule: Hypothesis) -> tuple[int, int]:
    """Which of two parameters is the place: the one that is known to be one, else the second."""
    is_place = [
        rule.template.atoms[one.atom].arguments[0]
        for one in (*rule.kept, *rule.doubtful)
        if one.positive and rule.template.atoms[one.atom].name in ("place", "at")
    ]
    return (0, 1) if rule.template.parameters[0] in is_place else (1, 0)


def _section(tables: dict[str, Any], name: str) -> dict[str, Any]:
    section: dict[str, Any] = tables.setdefault(name, {})
    return section


def write_tier(folder: Path, tier: Mapping[str, Any], head: str) -> None:
    """Write the tier's file; ``head`` says where it comes from."""
    text = yaml.safe_dump(dict(tier), sort_keys=False, default_flow_style=None, width=96)
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    write_whole(folder / f"{tier['tier']}.yaml", comment + text)


def write_evidence(folder: Path, rules: Hypotheses) -> None:
    """The counts behind every literal and every kind, for people and plots."""
    found: dict[str, Any] = {}
    for syntax, rule in rules.rules.items():
        template = rule.template
        found[syntax] = {
            "accepted": rule.accepted,
            "refused": rule.refused,
            "unexplained": rule.unexplained,
            "kept": {str(template.predicate(one)): rule.tested.get(one, 0) for one in rule.kept},
            "ways": [[str(template.predicate(way))] for way in rule.ways],
            "doubtful": [str(template.predicate(one)) for one in rule.doubtful],
            "kinds": {
                template.parameters[at]: {kind: list(counts) for kind, counts in table.items()}
                for at, table in rule.tables.single.items()
            },
            "pairs": {" + ".join(kinds): list(n) for kinds, n in rule.tables.pair.items()},
        }
    write_whole(folder / "evidence.json", json.dumps(found, indent=1) + "\n")
