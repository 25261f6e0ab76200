"""The manual of one environment: loaded, validated and asked for its active rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

from rpms.rules.predicates import StaticFacts, evaluate, need, parse_predicate
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
from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import is_a

RULES_FOLDER = Path(__file__).parent


Scope = Literal["goal", "all"]
LIKELIEST = 3
"""So many kinds of places, from the first, are where a thing is "usually"."""


class RuleLine(TypedDict):
    """One line of the manual as it enters the prompt.

    ``last_action`` marks the line about the last action, which stands next to the decision.
    """

    id: str
    text: str
    last_action: NotRequired[bool]


class Rejection(NamedTuple):
    """The last action, if it came to nothing: what became of it, and why."""

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
    """The tiers and the questions the stages ask of them."""

    def __init__(
        self,
        universal: UniversalTier,
        domain: DomainTier,
        env: EnvironmentTier,
        extra: Mapping[str, list[Rule]] | None = None,
        without: frozenset[str] = frozenset(),
        needed: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """Keep the tiers; nothing is derived until it is asked for.

        ``extra`` are tiers of the user's own, ``without`` has the ids and the tiers left out, and
        ``needed`` the actions that types of goals take, where Tier 2 is not to be asked for them.
        """
        self.universal = universal
        self.domain = domain
        self.environment = env
        self.extra = dict(extra or {})
        self.without = without
        self._fixed: dict[tuple[str, ...], ActiveRules] = {}
        self._needed: dict[str, frozenset[str]] = dict(needed or {})
        self._told: dict[tuple[str, ...], list[tuple[str, Locality]]] = {}
        self._kinds: dict[str, frozenset[str]] = {}

    @property
    def tiers(self) -> list[tuple[str, list[Rule]]]:
        """Every tier's sentences, in the order they are printed."""
        shipped = (self.universal.rules, self.domain.rules, self.environment.rules)
        return [*zip(TIERS, shipped, strict=True), *self.extra.items()]

    @property
    def actions(self) -> list[ActionRule]:
        """Tier-3 actions in file order."""
        return self.environment.actions

    def knows(self, rule: ActionRule) -> bool:
        """Whether anything may be said of an action; of one left out only its form is known."""
        return rule.id not in self.without

    @cached_property
    def principles(self) -> frozenset[str]:
        """The ids of all sentences: who acts by one of them asks whether it is there."""
        return frozenset(rule.id for _, rules in self.tiers for rule in rules)

    def demanded(self, sub_goal: str) -> str:
        """The action that Tier 2 demands for a sub-goal; none where the tier was left out."""
        return "" if "domain" in self.without else self.domain.advances.get(sub_goal, "")

    def is_foreign(self, action: str, goal_type: str) -> bool:
        """Whether an action completes steps of other types of goals alone, by Tier 2.

        A step that stands in no procedure, such as freeing the hand, may be taken under any goal.
        """
        domain = self.domain
        if "domain" in self.without or goal_type not in domain.procedures:
            return False
        others = {step for kind, steps in domain.procedures.items() for step in steps}
        others -= {*domain.procedures[goal_type]}
        steps = {step for step, completing in domain.advances.items() if completing == action}
        return bool(steps) and steps <= others

    def around(self, goal_type: str, sub_goal: str) -> tuple[set[str], set[str]]:
        """The actions that complete steps before this one alone, and those of this and later ones.

        By Tier 2; nothing where the tier was left out, or does not have the step.
        """
        steps = self.domain.procedures.get(goal_type, [])
        if "domain" in self.without or sub_goal not in steps:
            return set(), set()
        here = steps.index(sub_goal)
        completing = [self.domain.advances.get(step, "") for step in steps]
        ahead = set(completing[here:]) - {""}
        return set(completing[:here]) - ahead - {""}, ahead

    @property
    def forbidden(self) -> list[Forbidden]:
        """Action patterns that rules forbid."""
        return self.environment.forbidden

    @cached_property
    def facts(self) -> StaticFacts:
        """Static properties of kinds, for evaluating predicates."""
        ways: dict[str, set[str]] = {}
        for place, others in self.environment.connected.items():
            for other in others:
                ways.setdefault(place, set()).add(other)
                ways.setdefault(other, set()).add(place)
        return StaticFacts(
            _sets(self.environment.affordances),
            _sets(self.environment.contains),
            [frozenset(unit) for unit in self.environment.built_together],
            {place: frozenset(others) for place, others in ways.items()},
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
            ),
        )

    @cached_property
    def by_name(self) -> dict[str, ActionRule]:
        """The actions by their names, which for tools are the names of the tools."""
        return {rule.name: rule for rule in self.actions}

    @cached_property
    def brought_about(self) -> frozenset[str]:
        """The facts that actions have as their effects."""
        outcomes = (outcome for rule in self.actions for outcome in rule.outcomes)
        return frozenset(o.arguments[1] for o in outcomes if o.name == "state" and o.positive)

    @cached_property
    def policy(self) -> dict[str, list[PolicyRule]]:
        """What the policy demands of each action; nothing of what was left out."""
        table: dict[str, list[PolicyRule]] = {}
        for rule in self.environment.policy:
            for name in rule.action if rule.id not in self.without else ():
                table.setdefault(name, []).append(rule)
        return table

    def categories_of(self, kind: str) -> set[str]:
        """The object categories a kind belongs to."""
        return {name for name, kinds in self.domain.categories.items() if kind in kinds}

    def likely_places(self, kind: str) -> list[str]:
        """Kinds of places where a kind of object is usually found, likeliest first."""
        return [p for rule in self.localities_of(kind) for p in rule.places]

    def localities_of(self, kind: str) -> list[Locality]:
        """What Tier 2 says of where a kind of object is: by its categories, or by its own name."""
        mine = self.categories_of(kind) | {kind}
        return [rule for rule in self.domain.likely_places if mine & set(rule.about)]

    def localities(self, goal: GoalSpec) -> list[tuple[str, Locality]]:
        """What is printed of where things are under this goal, and the thing that each is about.

        A search rests on these lines alone, so that whoever reads them can follow it.
        """
        key = (goal["object"], goal["destination"], goal["sentence"])
        if key not in self._told:
            self._told[key] = [*self._localities_of_goal(goal)]
        return self._told[key]

    def _localities_of_goal(self, goal: GoalSpec) -> Iterator[tuple[str, Locality]]:
        kinds = [kind for kind in (goal["object"], goal["destination"]) if kind]
        found = [(rule.what or kind, rule) for kind in kinds for rule in self.localities_of(kind)]
        found += [(rule.what, rule) for rule in self.domain.likely_places if _says(goal, rule.said)]
        for what, rule in {(what, rule.id): (what, rule) for what, rule in found}.values():
            if not _says(goal, rule.unless_said):
                yield what, rule

    def holds_kind(self, rule: Locality, name: str) -> bool:
        """Whether a line about where things are is about this one: a ``pear seed`` is a seed."""
        if rule.id not in self._kinds:
            tables = (self.domain.categories, self.environment.affordances)
            listed = {k for about in rule.about for table in tables for k in table.get(about, ())}
            self._kinds[rule.id] = frozenset({*listed, *rule.about})
        return is_a(name, self._kinds[rule.id]) is True

    def needed_for(self, goal_type: str) -> frozenset[str]:
        """The actions that goals of a type take, by Tier 2: what completes and serves their steps.

        Steps that no procedure lists, such as freeing the hand, may come up under any goal. A
        manual that does not say what serves its steps may need every action.
        """
        if goal_type not in self._needed:
            domain = self.domain
            own = domain.procedures.get(goal_type, [])
            others = {step for steps in domain.procedures.values() for step in steps} - {*own}
            steps = [step for step in (*own, *domain.applicable) if step not in others]
            services = [s for step in steps for s in domain.applicable.get(step, [])]
            names = {s.action for s in (*services, *domain.urgent)
                     if {"all", goal_type} & {*s.goal_types}}  # fmt: skip
            names |= {domain.advances[step] for step in own if step in domain.advances}
            everything = {rule.name for rule in self.actions}
            known = own and all(step in domain.applicable for step in own)
            self._needed[goal_type] = frozenset(names if known else everything)
        return self._needed[goal_type]

    def active(
        self,
        goal: GoalSpec,
        belief: Belief,
        rejected: Rejection | None = None,
        scope: Scope = "goal",
    ) -> ActiveRules:
        """R_active = R_U + R_D(type) + R_E, plus the lines for the present situation.

        Args:
            goal: its type and object select the domain rules.
            belief: decides which situation lines apply.
            rejected: the last action, if it was rejected or sent back.
            scope: ``goal`` has the actions that this type of goal takes; ``all`` has every action.
        """
        # Only numbered places differ from home to home; the others are the same wherever one is.
        places = tuple(place for place in belief["places"] if kind_of(place) != place)
        key = (scope, goal["type"], goal["object"], goal["destination"], goal["sentence"], *places)
        if key not in self._fixed:
            self._fixed[key] = self._assemble(goal, places, scope)
        return {**self._fixed[key], SITUATION: self._situations(belief, rejected)}

    def _assemble(self, goal: GoalSpec, places: Sequence[str], scope: Scope) -> ActiveRules:
        goal_type, kind = goal["type"], goal["object"]
        mine = self.categories_of(kind)

        def applies(rule: Rule) -> bool:
            by_type = "all" in rule.goal_types or goal_type in rule.goal_types
            holds = set(rule.requires) <= set(self.environment.features)
            if scope == "goal" and goal["sentence"]:
                told = not rule.said or _says(goal, rule.said)
                holds = holds and told and not _says(goal, rule.unless_said)
            holds = holds and (scope == "all" or rule.scope == "goal")
            return holds and by_type and (not rule.about or bool(mine & set(rule.about)))

        def wanted(rule: ActionRule) -> bool:
            taken = scope == "all" or rule.name in self.needed_for(goal_type)
            return rule.printed and self.knows(rule) and taken

        before = {
            "domain": [*self._localities(goal, places), *self._here(goal, places)],
            "environment": [
                _action_line(rule, self.environment.understood, self.facts, once=scope == "goal")
                for rule in self.actions
                if wanted(rule)
            ]
            + [
                _policy_line(rule, self.facts)
                for rule in self.environment.policy
                if rule.id not in self.without and any(wanted(self.by_name[n]) for n in rule.action)
            ],
        }
        return {
            name: [
                line
                for line in (*before.get(name, []), *map(_line, filter(applies, rules)))
                if line["id"] not in self.environment.unprinted
            ]
            for name, rules in self.tiers
        }

    def _localities(self, goal: GoalSpec, places: Sequence[str]) -> Iterator[RuleLine]:
        """Where what the goal names is usually found, unless it is a place itself.

        In places of this home, in the order to try them; as kinds where the home is not known.
        """
        for kind, rule in self.localities(goal):
            if any(kind_of(place) == kind for place in places):
                continue
            groups = [_of_kind(sort, places) for sort in rule.places]
            order = " -> ".join(group for group in groups if group)
            if order:
                # Where none of its likeliest places is here, the others are no more than possible.
                likely = any(groups[:LIKELIEST])
                text = f"{kind} {f'is {rule.how_often}' if likely else 'may be'} at: {order}"
                if rule.inside:
                    text += f"; it may be in a closed {_either(rule.inside)} there"
                yield RuleLine(id=rule.id, text=text)

    def _here(self, goal: GoalSpec, places: Sequence[str]) -> Iterator[RuleLine]:
        for rule in self.domain.here:
            if not {"all", goal["type"]} & set(rule.goal_types):
                continue
            kind = goal["destination"] if rule.kind == "$destination" else rule.kind
            if rule.kind and not kind:  # a page about the type, not about one goal of it
                continue
            named = _of_kind(kind, places)
            if named or not kind:
                blanks = {"object": goal["object"], "destination": goal["destination"]}
                yield RuleLine(id=rule.id, text=rule.text.format(places=named, **blanks))

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
    """Whether the task's own sentence has one of these words, or rows of words."""
    sentence = f" {re.sub(r'[^a-z0-9-]+', ' ', goal['sentence'].lower())} "
    return any(f" {word} " in sentence for word in words)


def _sets(table: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(kinds) for name, kinds in table.items()}


def _either(names: Sequence[str]) -> str:
    """``fridge, freezer or cupboard``."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _of_kind(kind: str, places: Sequence[str]) -> str:
    """The places of a kind by number, or the kind itself where no place is known yet."""
    if not places:
        return kind
    return ", ".join(sorted((p for p in places if kind_of(p) == kind), key=in_order))


def _line(rule: Rule) -> RuleLine:
    return RuleLine(id=rule.id, text=f"CRITICAL: {rule.text}" if rule.critical else rule.text)


def _policy_line(rule: PolicyRule, facts: StaticFacts) -> RuleLine:
    """The policy's demand in its own words, or made from its needs."""
    names = " and ".join(rule.action)
    needs = "; ".join(need(predicate, {}, facts) for predicate in rule.demands)
    return RuleLine(id=rule.id, text=rule.text or f"{names} needs {needs}")


def _action_line(
    rule: ActionRule, understood: Sequence[str], facts: StaticFacts, once: bool
) -> RuleLine:
    """An action as the prompt shows it: syntax, needs, and a warning that is said ``once``."""
    blanks = {name: f"<{name}>" for name in rule.parameters}
    needs = "; ".join(need(p, blanks, facts) for p in rule.needs if p.name not in understood)
    text = rule.syntax.format(**blanks)
    if needs:
        text += f" | needs {needs}"
    if rule.text:
        text += f" | {rule.text}"
    if rule.critical and not (once and rule.critical_in):
        text += f" | CRITICAL: {rule.critical}"
    return RuleLine(id=rule.id, text=text)
