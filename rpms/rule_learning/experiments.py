"""Experiments: bring about a situation in which exactly one thing is in doubt, act, and look.

The way there is found with the very rules that are being learned: an effect that makes a wanted
statement true, then what that action needs in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from random import Random
from typing import NamedTuple

from rpms.rule_learning.exploring import DISTRUST, Curiosity, Player, names_known
from rpms.rule_learning.induction import Hypothesis
from rpms.rule_learning.templates import Template
from rpms.rule_learning.transitions import ground
from rpms.rules.predicates import Predicate, evaluate
from rpms.vocabulary.belief import kind_of

DEPTH = 4
"""How many actions deep the reasons of an action are followed."""
LONGEST = 14
"""How many commands one experiment may take to set up."""
ENOUGH = 3
"""Tests of one literal after which it is no longer asked about."""


SELDOM = 20
"""Uses that worked, below which an action is tried again for its own sake."""


class Experiment(NamedTuple):
    """A command to try once these statements hold."""

    key: tuple[str, object]
    template: Template
    names: Mapping[str, str]
    wanted: tuple[Predicate, ...]


class Laboratory:
    """Sets experiments up and carries them out in the home that is being played."""

    def __init__(
        self, player: Player, curiosity: Curiosity, done: Counter[tuple[str, object]]
    ) -> None:
        """``done`` says how often each experiment was tried, in other homes, too."""
        self.player = player
        self.curiosity = curiosity
        self.done = done

    def run_one(self) -> bool:
        """Carry out the next experiment; False if there is none to be had here."""
        for experiment in self._proposals():
            self.done[experiment.key] += 1
            if self._set_up(experiment):
                self.done[experiment.key] += ENOUGH
                self.player.say(experiment.template.command(experiment.names))
            return True
        return False

    def _proposals(self) -> Iterator[Experiment]:
        rules = list(self.curiosity.rules.rules.values())
        rng = self.player.rng
        rng.shuffle(rules)
        for rule in rules:
            if not rule.template.parameters:
                continue
            questions = [
                *self._about_kinds(rule), *self._about_literals(rule), *self._once_more(rule)
            ]  # fmt: skip
            open_ = [one for one in questions if self.done[one.key] < ENOUGH * ENOUGH]
            if open_:
                yield rng.choice(open_)

    def _about_kinds(self, rule: Hypothesis) -> Iterator[Experiment]:
        """A kind of thing that was never tried while everything else was right."""
        evidence = self.player.experience.evidence[rule.template.syntax]
        worked = {use.kinds for use in evidence.accepted}
        for at, parameter in enumerate(rule.template.parameters):
            rng = self.player.rng
            names = _likely_names(rule, self.player, rng)
            known = names_known(self.player.belief)
            rng.shuffle(known)
            if rng.random() < DISTRUST:
                # Kinds that fail with all others may belong together.
                names = dict(zip(rule.template.parameters, known, strict=False))
                at = len(names)
            for name in known[:12]:
                chosen = {**names, parameter: name}
                if len(set(chosen.values())) < len(rule.template.parameters):
                    continue
                kinds = rule.template.kinds(chosen)
                if self._open(rule, at, kinds, worked):
                    yield Experiment(
                        (rule.template.syntax, kinds), rule.template, chosen,
                        self._needs(rule, chosen),
                    )  # fmt: skip
                    break

    @staticmethod
    def _open(
        rule: Hypothesis, at: int, kinds: tuple[str, ...], worked: Collection[tuple[str, ...]]
    ) -> bool:
        if rule.tables.pair or at == len(kinds):
            return kinds not in rule.tables.pair and kinds not in worked
        if at in rule.tables.single:
            return kinds[at] not in rule.tables.single[at]
        return kinds not in worked

    def _about_literals(self, rule: Hypothesis) -> Iterator[Experiment]:
        """One literal false, all others true, things of kinds that work."""
        asked = [one for one in rule.kept if rule.tested.get(one, 0) < ENOUGH] + rule.doubtful
        for literal in asked:
            names = _likely_names(rule, self.player, self.player.rng)
            if len(set(names.values())) < len(rule.template.parameters):
                continue
            denied = ground(rule.template.predicate(literal), names)
            others = [one for one in rule.kept if one != literal]
            wanted = [ground(rule.template.predicate(one), names) for one in others]
            denied = denied._replace(positive=not denied.positive)
            yield Experiment(
                (rule.template.syntax, literal), rule.template, names, (*wanted, denied)
            )

    def _once_more(self, rule: Hypothesis) -> Iterator[Experiment]:
        """What has seldom worked, again: the next time something else will be different."""
        names = _likely_names(rule, self.player, self.player.rng)
        if rule.accepted < SELDOM and len(set(names.values())) == len(rule.template.parameters):
            yield Experiment(
                (rule.template.syntax, rule.accepted), rule.template, names,
                self._needs(rule, names),
            )  # fmt: skip

    @staticmethod
    def _needs(rule: Hypothesis, names: Mapping[str, str]) -> tuple[Predicate, ...]:
        literals = [*rule.kept, *(rule.ways[0] if rule.ways else [])]
        return tuple(ground(rule.template.predicate(one), names) for one in literals)

    def _holds(self, predicate: Predicate) -> bool | None:
        return evaluate(predicate, self.player.belief, self.curiosity.rules.world, {})

    def _set_up(self, experiment: Experiment) -> bool:
        """Bring the wanted statements about; what is undone on the way is done again."""
        for _ in range(LONGEST):
            missing = [one for one in experiment.wanted if not self._holds(one)]
            if not missing:
                return True
            action = self._way_to(missing[0], DEPTH)
            if action is None or self.player.left <= 1 or not self.player.say(action):
                return False
        return False

    def _way_to(self, wanted: Predicate, depth: int) -> str | None:
        """A command that can be given now and leads to what is wanted."""
        for rule in self.curiosity.rules.rules.values():
            for effect in rule.effects:
                names = _unify(rule.template.predicate(effect), wanted, rule.template)
                if names is None:
                    continue
                names = self._complete(rule, names)
                if names is None:
                    continue
                missing = [one for one in self._needs(rule, names) if not self._holds(one)]
                if not missing:
                    return rule.template.command(names)
                if depth and (first := self._way_to(missing[0], depth - 1)):
                    return first
        return None

    def _complete(self, rule: Hypothesis, given: Mapping[str, str]) -> dict[str, str] | None:
        """Things for the other parameters: those with which least is missing."""
        names = dict(given)
        for parameter in rule.template.parameters:
            if parameter in names:
                continue
            best: tuple[float, str] | None = None
            for name in names_known(self.player.belief):
                tried = {**names, parameter: name}
                if name in names.values():
                    continue
                score = self._score(rule, tried) + self.player.rng.random()
                if best is None or score > best[0]:
                    best = (score, name)
            if best is None:
                return None
            names[parameter] = best[1]
        return names

    def _score(self, rule: Hypothesis, names: Mapping[str, str]) -> float:
        known = [
            one for one in self._needs(rule, names)
            if set(one.arguments) <= {*names.values()}
        ]  # fmt: skip
        held = sum(2.0 for one in known if self._holds(one))
        if len(names) == len(rule.template.parameters):
            works = rule.tables.works(rule.template.kinds(names))
            held += 3.0 if works else -3.0 if works is False else 0.0
        return held


def _unify(effect: Predicate, wanted: Predicate, template: Template) -> dict[str, str] | None:
    """What the parameters must be for an effect to bring about what is wanted."""
    if (effect.positive, effect.name) != (wanted.positive, wanted.name):
        return None
    names: dict[str, str] = {}
    for argument, value in zip(effect.arguments, wanted.arguments, strict=True):
        if argument not in template.parameters:
            if argument != value:
                return None
        elif names.setdefault(argument, value) != value:
            return None
    return names


def _likely_names(rule: Hypothesis, player: Player, rng: Random) -> dict[str, str]:
    """Known things of kinds that have worked together."""
    known = names_known(player.belief)
    by_kind: dict[str, list[str]] = {}
    for name in known:
        by_kind.setdefault(kind_of(name), []).append(name)
    evidence = player.experience.evidence[rule.template.syntax]
    worked = sorted({u.kinds for u in evidence.accepted if all(k in by_kind for k in u.kinds)})
    kinds = rng.choice(worked) if worked else ()
    return {
        p: rng.choice(by_kind[k]) for p, k in zip(rule.template.parameters, kinds, strict=False)
    }
