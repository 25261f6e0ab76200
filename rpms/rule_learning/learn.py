"""``rpms rules learn``: from what a world answered to a Tier 3 file, as everybody writes them.

Beside it ``evidence.json`` has the counts behind every rule.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from rpms.envs import Environment
from rpms.evals.records.run_folder import read_records
from rpms.evals.running.learn import find_runs
from rpms.evals.running.learning_splits import is_learning_split, learning_splits
from rpms.guard.answers import belief_after
from rpms.rule_learning.evidence import CERTAIN, CommandTemplate, ObservedUses
from rpms.rule_learning.explore import STEPS, explore
from rpms.rule_learning.induction import Hypotheses, Hypothesis, writable
from rpms.rules.check import check_manual
from rpms.rules.predicates import ARGUMENT
from rpms.rules.schema import ActionRule
from rpms.rules.wording import statement
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import write_whole
from rpms.vocabulary.output import quantity
from rpms.vocabulary.turn import EpisodeRecord

SOURCE = "learned"
UNSEEN = "seen_to_work"
"""The condition of an action that was never accepted: nobody can say when it works."""
NAMED = 8
"""A table of no more kinds than that is printed in the prompt."""

Report = Callable[[str], None]
Sections = defaultdict[str, dict[str, Any]]
"""The tables that the conditions of actions speak of, by their section of the tier."""


def learn_by_exploring(
    env: Environment, out: Path, homes: int, seed: int = 0, steps: int = 0, report: Report = print
) -> None:
    """Play homes of the learning split, then write down what their answers support.

    ``steps`` are commands per home; 0: as usual. ``report`` is given a line now and then.
    """
    tasks = env.tasks(env.learning_split, homes) if homes > 0 else []
    if not tasks:
        raise RpmsError(f"--explore {homes}: there is no home to explore; ask for at least 1")
    latest: Hypotheses | None = None

    def learn(number: int, experience: ObservedUses) -> None:
        nonlocal latest
        latest = Hypotheses(experience)
        far = f"home {number}/{len(tasks)}: {experience.commands} commands"
        report(f"{far}, {_progress(latest)}")

    try:
        explore(env, tasks, seed, learn, steps or STEPS)
    except KeyboardInterrupt:
        if latest is None:
            raise
        report("interrupted: what was learned so far is written down")
    if latest:
        source = f"{quantity(len(tasks), 'home')} of {env.learning_split}, seed {seed}"
        _write(env, out, latest, source, report)


def learn_from_runs(env: Environment, out: Path, folder: Path, report: Report = print) -> None:
    """Learn from the recorded episodes of a run, or of all runs below a folder."""
    experience = ObservedUses(env.command_templates(), states=env.states_decide)
    episodes = [list(_replay(env, record)) for record in _records(env, folder)]
    # Whether places share a spot has to be known before the first use is noted.
    experience.doubts = any(use.after["reachable"] for episode in episodes for use in episode)
    for episode in episodes:
        for action, before, after, worked in episode:
            experience.note(action, experience.look_at(before), after, worked)
        if episode:
            experience.note_spots(episode[-1].after)
    rules, source = Hypotheses(experience), f"{len(episodes)} recorded episodes"
    report(f"{source}: {_progress(rules)}")
    _write(env, out, rules, source, report)


def _records(env: Environment, folder: Path) -> Iterator[EpisodeRecord]:
    for run in find_runs(folder, env.name):
        split = run.manifest.split
        if not is_learning_split(env.name, split):
            raise RpmsError(
                f"{run.folder}: split '{split}' judges: no rule may be learned from its tasks; use "
                f"runs of {' or '.join(learning_splits(env.name))}"
            )
        yield from read_records(run, run.conditions)


class RecordedUse(NamedTuple):
    """An action that was carried out or refused, and what was believed before and after it."""

    action: str
    before: Belief
    after: Belief
    worked: bool


def _replay(env: Environment, record: EpisodeRecord) -> Iterator[RecordedUse]:
    """An episode on paper, by its actions and the answers."""
    belief, manual = (
        env.first_belief(record["first_observation"]),
        load_manual(env.name, syntax_only=True),
    )
    for turn in record["history"]:
        if not turn["action"]:
            continue
        done = env.carried_out(turn["action"], belief, turn["observation"])
        before, belief = belief, belief_after(env, manual, belief, turn)
        if done:
            yield RecordedUse(done, before, belief, not turn["failed"])


def _progress(rules: Hypotheses) -> str:
    """Actions seen to work, conditions, what is unexplained."""
    known, experience = rules.rules.values(), rules.experience
    conditions = sum(
        len(rule.conditions) + len(rule.ways) + len(rule.tables.single) + bool(rule.tables.pair)
        for rule in known
    )
    unexplained = sum(rule.unexplained for rule in known)
    return (  # what is refuted is given up
        f"{len(experience.worked)} of {len(experience.templates)} actions seen to work; "
        f"now {quantity(conditions, 'condition')}, {quantity(unexplained, 'refusal')} unexplained"
    )


def _write(env: Environment, out: Path, rules: Hypotheses, source: str, report: Report) -> None:
    """Write down what is known, and check it as ``rpms rules check`` does."""
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


def _names(templates: Iterable[CommandTemplate]) -> list[tuple[str, CommandTemplate]]:
    """A name of its own for every action."""
    named: dict[str, CommandTemplate] = {}
    for template in templates:
        name, number = template.name, 2
        while name in named:
            name, number = f"{template.name}_{number}", number + 1
        named[name] = template
    return list(named.items())


def _action(
    template: CommandTemplate, rule: Hypothesis | None, name: str, sections: Sections
) -> dict[str, Any]:
    identity = f"L-{re.sub(r'[^A-Z0-9]+', '-', name.upper())}"
    head: dict[str, Any] = {"id": identity, "name": name, "syntax": template.syntax}
    if rule is None:
        # No belief ever tells whether something will have `changed`: the answer stays open.
        sections["predicates"][UNSEEN] = [["changed(anything)"]]
        sections["phrases"][UNSEEN] = "it is known to work"
        return {**head, "preconditions": [UNSEEN], "effects": [], "source": SOURCE,
                "support": 0, "confidence": 0.0, "printed": False}  # fmt: skip
    general = [
        template.predicate(literal) for literal in rule.conditions if template.is_general(literal)
    ]
    named = [
        template.predicate(literal)
        for literal in rule.conditions
        if not template.is_general(literal)
    ]
    conditions = [str(predicate) for predicate in general]
    if named:
        sections["predicates"][f"{name}_ready"] = [[str(predicate) for predicate in named]]
        phrases = (statement(predicate, {}, CERTAIN) for predicate in named)
        sections["phrases"][f"{name}_ready"] = "; ".join(phrases)
        conditions.append(f"{name}_ready")
    if rule.ways:
        conditions.append(_ways(rule, name, sections))
    conditions += _tables(rule, name, sections)
    judged = rule.accepted + rule.refused
    effects = [str(template.predicate(literal)) for literal in writable(template, rule.effects)]
    action = {**head, "preconditions": conditions, "effects": effects, "source": SOURCE}
    action["support"] = judged
    action["confidence"] = round((judged - rule.unexplained + 1) / (judged + 2), 3)
    away = [
        p for p in map(template.predicate, rule.conditions) if not p.positive and p.name == "at"
    ]
    if away and away[0] in general:
        action["rejected_means_here"] = away[0].arguments[0]
    return action


def _ways(rule: Hypothesis, name: str, sections: Sections) -> str:
    """One of several conditions: a predicate of the world's own."""
    own = f"{name}_{rule.about}"
    ways = [rule.template.predicate(way) for way in rule.ways]
    sections["predicates"][own] = [[str(way.bind({rule.about: ARGUMENT}))] for way in ways]
    phrases = (statement(way, {rule.about: "{0}"}, CERTAIN) for way in ways)
    sections["phrases"][own] = " or ".join(phrases)
    return f"{own}({rule.about})"


def _tables(rule: Hypothesis, name: str, sections: Sections) -> list[str]:
    """What kinds of things it takes: a predicate of the world's own for each parameter, or one."""
    conditions = []
    parameters = rule.template.parameters
    for at, table in rule.tables.single.items():
        own = f"{name}_{parameters[at]}_kind"
        good = [kind for kind, (yes, no) in table.items() if yes and not no]
        sections["affordances"][own] = good
        sections["ruled_out"][own] = [kind for kind, (yes, no) in table.items() if no and not yes]
        what = f"a {' or '.join(good)}" if len(good) <= NAMED else f"of a kind to {name}"
        sections["phrases"][own] = f"{{0}} is {what}"
        conditions.append(f"{own}({parameters[at]})")
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
    """Which of two parameters is the place: the one that is known to be one, else the second."""
    literals = map(rule.template.predicate, (*rule.conditions, *rule.doubtful))
    places = [p.arguments[0] for p in literals if p.positive and p.name in ("place", "at")]
    return (0, 1) if rule.template.parameters[0] in places else (1, 0)


def counts_of(rule: Hypothesis) -> dict[str, Any]:
    """The counts behind every literal and every kind, for people and plots."""
    template = rule.template
    text = {
        literal: str(template.predicate(literal)) for literal in (*rule.conditions, *rule.doubtful)
    }
    return {
        "accepted": rule.accepted,
        "refused": rule.refused,
        "unexplained": rule.unexplained,
        "kept": {text[literal]: rule.tested.get(literal, 0) for literal in rule.conditions},
        "ways": [[str(template.predicate(way))] for way in rule.ways],
        "doubtful": [text[literal] for literal in rule.doubtful],
        "kinds": {
            template.parameters[at]: {kind: list(counts) for kind, counts in table.items()}
            for at, table in rule.tables.single.items()
        },
        "pairs": {" + ".join(kinds): list(n) for kinds, n in rule.tables.pair.items()},
    }
