"""The manual of one environment, and its active rules for a goal and a belief."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

from rpms.rules.predicates import StaticFacts, evaluate, parse_predicate
from rpms.rules.schema import (
    ActionRule,
    DomainTier,
    EnvironmentTier,
    Forbidden,
    Locality,
    PolicyRule,
    Rule,
    UniversalTier,
)
from rpms.rules.values import Tools
from rpms.rules.wording import need
from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.context import RulesScope
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import is_a

RULES_FOLDER = Path(__file__).parent


LIKELIEST = 3
"""The first so many kinds of places are where a thing is "usually"."""


class RuleLine(TypedDict):
    """One line of the manual as the prompt prints it.

    ``last_action`` marks the line about the last action, which is printed next to the decision.
    """

    id: str
    text: str
    last_action: NotRequired[bool]


class Rejection(NamedTuple):
    """The last action, if it was rejected or vetoed: its outcome, and the reason."""

    action: str
    outcome: str
    reason: str


# The tiers every manual has, in the order they are printed.
TIERS = ("universal", "domain", "environment")
SITUATION = "situation"

ActiveRules = dict[str, list[RuleLine]]
"""R_active: the rules that apply to this goal, tier by tier in the order they are printed, and
under ``situation`` the lines that apply to this state.

The tiers never change within an episode, which is what lets a prompt layout keep them in a cached
prefix; ``situation`` changes with the belief.
"""


class Manual:
    """The tiers, and the queries that stages make on them."""

    def __init__(
        self,
        universal: UniversalTier,
        domain: DomainTier,
        env: EnvironmentTier,
        extra: Mapping[str, list[Rule]] | None = None,
        without: frozenset[str] = frozenset(),
        needed: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """Keep the tiers; everything else is derived on demand.

        ``extra`` has custom tiers, ``without`` the ids and tiers that are left out, and ``needed``
        the actions of each goal type if they must not be derived from Tier 2.
        """
        self.universal = universal
        self.domain = domain
        self.environment = env
        self.extra = dict(extra or {})
        self.without = without
        self._fixed: dict[tuple[object, ...], ActiveRules] = {}
        self._needed: dict[str, frozenset[str]] = dict(needed or {})
        self._locality_lines: dict[tuple[str, ...], list[tuple[str, Locality]]] = {}
        self._kinds: dict[str, frozenset[str]] = {}

    @property
    def tiers(self) -> list[tuple[str, list[Rule]]]:
        """Every tier's sentences, in print order."""
        shipped = (self.universal.rules, self.domain.rules, self.environment.rules)
        return [*zip(TIERS, shipped, strict=True), *self.extra.items()]

    @property
    def actions(self) -> list[ActionRule]:
        """Tier-3 actions in file order."""
        return self.environment.actions

    def knows(self, rule: ActionRule) -> bool:
        """Return whether the rule is active; of a rule left out only the syntax is known."""
        return rule.id not in self.without

    @cached_property
    def principles(self) -> frozenset[str]:
        """The ids of all sentences; code that acts by one checks that it is in the manual."""
        return frozenset(rule.id for _, rules in self.tiers for rule in rules)

    def demanded(self, sub_goal: str) -> str:
        """The action that Tier 2 demands for a sub-goal; empty if the tier is left out."""
        return "" if "domain" in self.without else self.domain.advances.get(sub_goal, "")

    @cached_property
    def completing(self) -> frozenset[str]:
        """The actions that complete a sub-goal, by Tier 2."""
        return frozenset() if "domain" in self.without else frozenset(self.domain.advances.values())

    def is_foreign(self, action: str, goal_type: str) -> bool:
        """Return whether an action completes only steps of other goal types, by Tier 2.

        A step that is in no procedure, such as freeing the hand, may be taken under any goal.
        """
        domain = self.domain
        if "domain" in self.without or goal_type not in domain.procedures:
            return False
        others = {step for kind, steps in domain.procedures.items() for step in steps}
        others -= {*domain.procedures[goal_type]}
        steps = {step for step, completing in domain.advances.items() if completing == action}
        return bool(steps) and steps <= others

    @property
    def forbidden(self) -> list[Forbidden]:
        """Action patterns that rules forbid."""
        return self.environment.forbidden

    @cached_property
    def facts(self) -> StaticFacts:
        """Static properties of kinds, for evaluating predicates."""
        connections: dict[str, set[str]] = {}
        for place, others in self.environment.connected.items():
            for other in others:
                connections.setdefault(place, set()).add(other)
                connections.setdefault(other, set()).add(place)
        return StaticFacts(
            _sets(self.environment.affordances),
            _sets(self.environment.contains),
            [frozenset(unit) for unit in self.environment.built_together],
            {place: frozenset(others) for place, others in connections.items()},
            self.environment.predicates,
            wording=self.environment.wording,
            ruled_out=_sets(self.environment.ruled_out),
            cannot_contain=_sets(self.environment.cannot_contain),
            alternatives=[frozenset(facts) for facts in self.environment.alternatives],
            unmoved=self.environment.unmoved,
            tools=Tools(
                {
                    rule.name: {parameter: name for name, parameter in rule.called.items()}
                    for rule in self.actions
                },
                self.environment.now,
                self.environment.tables,
                self.environment.definitions,
                self.environment.timezone,
            ),
        )

    @cached_property
    def by_name(self) -> dict[str, ActionRule]:
        """The actions by name; for tools, by the tool's name."""
        return {rule.name: rule for rule in self.actions}

    @cached_property
    def brought_about(self) -> frozenset[str]:
        """The states that actions have as effects."""
        outcomes = (outcome for rule in self.actions for outcome in rule.outcomes)
        return frozenset(o.arguments[1] for o in outcomes if o.name == "state" and o.positive)

    @cached_property
    def policy(self) -> dict[str, list[PolicyRule]]:
        """The policy rules of each action, without those left out."""
        table: dict[str, list[PolicyRule]] = {}
        for rule in self.environment.policy:
            for name in rule.action if rule.id not in self.without else ():
                table.setdefault(name, []).append(rule)
        return table

    def categories_of(self, kind: str) -> set[str]:
        """The object categories a kind belongs to."""
        return {name for name, kinds in self.domain.categories.items() if kind in kinds}

    def localities_of(self, kind: str) -> list[Locality]:
        """Tier 2's lines on where a kind of object is, by its categories or its name."""
        names = self.categories_of(kind) | {kind}
        return [rule for rule in self.domain.likely_places if names & set(rule.about)]

    def localities(self, goal: GoalSpec) -> list[tuple[str, Locality]]:
        """The lines on where things are under this goal, each with the thing that it is about.

        A search uses only these printed lines, so that a reader can follow it.
        """
        key = (goal["object"], goal["destination"], goal["sentence"])
        if key not in self._locality_lines:
            self._locality_lines[key] = [*self._localities_of_goal(goal)]
        return self._locality_lines[key]

    def _localities_of_goal(self, goal: GoalSpec) -> Iterator[tuple[str, Locality]]:
        kinds = [kind for kind in (goal["object"], goal["destination"]) if kind]
        found = [(rule.what or kind, rule) for kind in kinds for rule in self.localities_of(kind)]
        found += [(rule.what, rule) for rule in self.domain.likely_places if _says(goal, rule.said)]
        for what, rule in {(what, rule.id): (what, rule) for what, rule in found}.values():
            if not _says(goal, rule.unless_said):
                yield what, rule

    def holds_kind(self, rule: Locality, name: str) -> bool:
        """Return whether a line on where things are covers this name: a ``pear seed`` is a seed."""
        if rule.id not in self._kinds:
            tables = (self.domain.categories, self.environment.affordances)
            listed = {k for name in rule.about for table in tables for k in table.get(name, ())}
            self._kinds[rule.id] = frozenset({*listed, *rule.about})
        return is_a(name, self._kinds[rule.id]) is True

    def needed_for(self, goal_type: str) -> frozenset[str]:
        """The actions that goals of a type take: those that Tier 2 lists for their steps.

        Steps that no procedure lists, such as freeing the hand, may occur under any goal. If the
        manual lists no patterns for a step, every action may be needed.
        """
        if goal_type not in self._needed:
            domain = self.domain
            procedure = domain.procedures.get(goal_type, [])
            others = {step for steps in domain.procedures.values() for step in steps} - {*procedure}
            steps = [step for step in (*procedure, *domain.applicable) if step not in others]
            patterns = [p for step in steps for p in domain.applicable.get(step, [])]
            names = {p.action for p in (*patterns, *domain.urgent)
                     if {"all", goal_type} & {*p.goal_types}}  # fmt: skip
            names |= {domain.advances[step] for step in procedure if step in domain.advances}
            everything = {rule.name for rule in self.actions}
            complete = procedure and all(step in domain.applicable for step in procedure)
            self._needed[goal_type] = frozenset(names if complete else everything)
        return self._needed[goal_type]

    def active(
        self,
        goal: GoalSpec,
        belief: Belief,
        rejected: Rejection | None = None,
        scope: RulesScope = "goal",
    ) -> ActiveRules:
        """R_active = R_U + R_D(type) + R_E, plus the lines for the present situation.

        Args:
            goal: its type and object select the domain rules.
            belief: decides which situation lines apply.
            rejected: the last action, if it was rejected or sent back.
            scope: ``goal`` has the actions that this type of goal takes; ``all`` has every action.
        """
        # Only numbered places differ between scenes.
        places = tuple(place for place in belief["places"] if kind_of(place) != place)
        goal_key = (goal["type"], goal["object"], goal["destination"], goal["sentence"])
        key = (scope, goal_key, places)
        if key not in self._fixed:
            self._fixed[key] = self._assemble(goal, places, scope)
        return {**self._fixed[key], SITUATION: self._situations(belief, rejected)}

    def _assemble(self, goal: GoalSpec, places: Sequence[str], scope: RulesScope) -> ActiveRules:
        goal_type, kind = goal["type"], goal["object"]
        categories = self.categories_of(kind)

        def applies(rule: Rule) -> bool:
            by_type = "all" in rule.goal_types or goal_type in rule.goal_types
            holds = set(rule.requires) <= set(self.environment.features)
            if scope != "all" and goal["sentence"]:
                said = not rule.said or _says(goal, rule.said)
                holds = holds and said and not _says(goal, rule.unless_said)
            holds = holds and (scope == "all" or rule.scope == "goal")
            return holds and by_type and (not rule.about or bool(categories & set(rule.about)))

        def printed(rule: ActionRule) -> bool:
            needed = scope == "all" or rule.name in self.needed_for(goal_type)
            return rule.printed and self.knows(rule) and needed

        leading = {
            "domain": [*self._localities(goal, places), *self._scene_lines(goal, places)],
            "environment": [
                _action_line(rule, self.environment.understood, self.facts, once=scope != "all")
                for rule in self.actions
                if printed(rule)
            ]
            + [
                _policy_line(rule, self.facts)
                for rule in self.environment.policy
                if rule.id not in self.without
                and any(printed(self.by_name[n]) for n in rule.action)
            ],
        }
        for name, rules in self.tiers:
            leading.setdefault(name, []).extend(
                RuleLine(id=rule.id, text=f"CRITICAL: {rule.text}" if rule.critical else rule.text)
                for rule in rules
                if applies(rule)
            )
        unprinted = self.environment.unprinted
        return {
            name: [line for line in leading[name] if line["id"] not in unprinted]
            for name, _ in self.tiers
        }

    def _localities(self, goal: GoalSpec, places: Sequence[str]) -> Iterator[RuleLine]:
        """The lines on where the goal's things are usually found, except things that are places.

        They name places of this scene in the order to try them, or kinds if no place is known.
        """
        for kind, rule in self.localities(goal):
            if any(kind_of(place) == kind for place in places):
                continue
            groups = [_of_kind(sort, places) for sort in rule.places]
            order = " -> ".join(group for group in groups if group)
            if order:
                # If the scene has none of the likeliest places, the others are merely possible.
                likely = any(groups[:LIKELIEST])
                text = f"{kind} {f'is {rule.how_often}' if likely else 'may be'} at: {order}"
                if rule.inside:
                    text += f"; it may be in a closed {_either(rule.inside)} there"
                yield RuleLine(id=rule.id, text=text)

    def _scene_lines(self, goal: GoalSpec, places: Sequence[str]) -> Iterator[RuleLine]:
        for rule in self.domain.here:
            if not {"all", goal["type"]} & set(rule.goal_types):
                continue
            kind = goal["destination"] if rule.kind == "$destination" else rule.kind
            if rule.kind and not kind:  # for a page about the goal type, without a goal
                continue
            names = _of_kind(kind, places)
            if names or not kind:
                blanks = {"object": goal["object"], "destination": goal["destination"]}
                yield RuleLine(id=rule.id, text=rule.text.format(places=names, **blanks))

    def _situations(self, belief: Belief, rejected: Rejection | None) -> list[RuleLine]:
        fields = {"held": ", ".join(belief["holding"]), "place": belief["location"] or ""}
        fields |= (rejected or Rejection("", "", ""))._asdict()
        lines = []
        for situation in self.environment.situations:
            predicates = [parse_predicate(text) for text in situation.when]
            if all(
                (rejected is not None) == predicate.positive
                if predicate.name == "last_failed"
                else evaluate(predicate, belief, self.facts, {})
                for predicate in predicates
            ):
                line = RuleLine(id=situation.id, text=situation.text.format(**fields))
                if any(predicate.name == "last_failed" for predicate in predicates):
                    line["last_action"] = True
                lines.append(line)
        return lines


def _says(goal: GoalSpec, words: Sequence[str]) -> bool:
    """Return whether the task sentence has one of these words or phrases."""
    sentence = f" {re.sub(r'[^a-z0-9-]+', ' ', goal['sentence'].lower())} "
    return any(f" {word} " in sentence for word in words)


def _sets(table: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(kinds) for name, kinds in table.items()}


def _either(names: Sequence[str]) -> str:
    """``fridge, freezer or cupboard``."""
    *others, last_name = names
    return f"{', '.join(others)} or {last_name}" if others else last_name


def _of_kind(kind: str, places: Sequence[str]) -> str:
    """The places of a kind by number, or the kind itself if no place is known yet."""
    if not places:
        return kind
    return ", ".join(sorted((p for p in places if kind_of(p) == kind), key=in_order))


def _policy_line(rule: PolicyRule, facts: StaticFacts) -> RuleLine:
    """The policy's demand in its own words, or derived from its needs."""
    names = " and ".join(rule.action)
    needs = "; ".join(need(predicate, {}, facts) for predicate in rule.demands)
    return RuleLine(id=rule.id, text=rule.text or f"{names} needs {needs}")


def _action_line(
    rule: ActionRule, understood: Sequence[str], facts: StaticFacts, once: bool
) -> RuleLine:
    """An action as the prompt shows it; with ``once``, a warning in Tier 2 is not repeated."""
    blanks = {name: f"<{name}>" for name in rule.parameters}
    needed = (need(p, blanks, facts) for p in rule.needs if p.name not in understood)
    needs = "; ".join(dict.fromkeys(needed))  # a state and its evidence read alike
    text = rule.syntax.format(**blanks)
    if needs:
        text += f" | needs {needs}"
    if rule.text:
        text += f" | {rule.text}"
    if rule.critical and not (once and rule.critical_in):
        text += f" | CRITICAL: {rule.critical}"
    return RuleLine(id=rule.id, text=text)
