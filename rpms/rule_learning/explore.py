"""Home after home: first curiosity, then experiments.

An experiment brings about a situation in which exactly one thing is in doubt, acts, and looks. The
way there is found with the very rules that are being learned: an effect that makes a wanted
statement true, then what that action needs in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from rpms.envs.base import Environment, Task
from rpms.rule_learning.evidence import Experience
from rpms.rule_learning.induction import Hypothesis
from rpms.rule_learning.player import DISTRUST, Curiosity, Player, Watcher, names_known
from rpms.rule_learning.templates import Template
from rpms.rules.predicates import Predicate, evaluate
from rpms.vocabulary.belief import kind_of

STEPS = 600
"""Commands per home."""
RELEARN = 200
"""Commands after which the rules are induced again."""
DEPTH = 4
"""How many actions deep the reasons of an action are followed."""
LONGEST = 14
"""How many commands one experiment may take to set up."""
ENOUGH = 3
"""Tests of one literal after which it is no longer asked about."""
SELDOM = 20
"""Uses that worked, below which an action is tried again for its own sake."""
Tried = Counter[tuple[str, object]]
"""How often each experiment was made, in all homes together."""


def explore(
    env: Environment,
    tasks: Sequence[Task],
    seed: int,
    report: Callable[[int, Experience], None] = lambda number, experience: None,
    steps: int = STEPS,
    watchers: Sequence[Watcher] = (),
) -> Experience:
    """Play the tasks' homes and note every answer; ``report`` is called after each home.

    Whatever the tasks ask for is of no interest here.
    """
    game, tried = env.open_game(), Tried()
    try:
        # Places that every home has under the same name: a rule may speak of them.
        named = [set(env.first_belief(game.reset(task))["places"]) for task in tasks[:20]]
        constants = sorted(set.intersection(*named)) if len(named) > 1 else []
        experience = Experience(env.command_templates(), constants)
        for number, task in enumerate(tasks, start=1):
            player = Player(env, game, experience, Random(f"{seed}/{number}"), watchers)
            player.begin(task, steps)
            _play_home(player, tried)
            report(number, experience)
    finally:
        game.close()
    return experience


def _play_home(player: Player, tried: Tried) -> None:
    curiosity = Curiosity(player)
    laboratory = Laboratory(player, curiosity, tried)
    due = player.left - RELEARN
    while player.left > 0:
        if player.left <= due:
            curiosity.learn()
            due = player.left - RELEARN
        curiosity.test_here()
        chance = player.rng.random()
        if chance < 0.5:
            laboratory.run_one()
        elif chance < 0.6:
            curiosity.look()
        elif chance < 0.75:
            curiosity.try_anything()
        else:
            curiosity.walk()
    player.end()


class Experiment(NamedTuple):
    """A command to try once these statements hold."""

    key: tuple[str, object]
    template: Template
    names: Mapping[str, str]
    wanted: Sequence[Predicate]


class Laboratory:
    """Sets experiments up and carries them out in the home that is being played."""

    def __init__(self, player: Player, curiosity: Curiosity, tried: Tried) -> None:
        """The rules are those that curiosity has learned by now."""
        self.player, self.curiosity, self.tried = player, curiosity, tried
        self.rng = player.rng

    def run_one(self) -> None:
        """Carry out the next experiment, if there is one to be had here."""
        rules = list(self.curiosity.rules.rules.values())
        self.rng.shuffle(rules)
        for rule in filter(lambda rule: rule.template.parameters, rules):
            questions = [*self._kinds(rule), *self._literals(rule), *self._once_more(rule)]
            open_ = [one for one in questions if self.tried[one.key] < ENOUGH * ENOUGH]
            if open_:
                experiment = self.rng.choice(open_)
                self.tried[experiment.key] += 1
                if self._set_up(experiment):
                    self.tried[experiment.key] += ENOUGH
                    self.player.say(experiment.template.command(experiment.names))
                return

    def _kinds(self, rule: Hypothesis) -> Iterator[Experiment]:
        """A kind of thing that was never tried while everything else was right."""
        template, tables = rule.template, rule.tables
        evidence = self.player.experience.evidence[template.syntax]
        worked = {use.kinds for use in evidence.accepted}
        for at, parameter in enumerate(template.parameters):
            names = self._likely_names(rule)
            known = names_known(self.player.belief)
            self.rng.shuffle(known)
            # Kinds that fail with all others may belong together.
            together = self.rng.random() < DISTRUST
            if together:
                names = dict(zip(template.parameters, known, strict=False))
            for name in known[:12]:
                chosen = {**names, parameter: name}
                if not _distinct(template, chosen):
                    continue
                kinds = template.kinds(chosen)
                if tables.pair or together or at not in tables.single:
                    is_new = kinds not in tables.pair and kinds not in worked
                else:
                    is_new = kinds[at] not in tables.single[at]
                if is_new:
                    needs = self._needs(rule, chosen)
                    yield Experiment((template.syntax, kinds), template, chosen, needs)
                    break

    def _literals(self, rule: Hypothesis) -> Iterator[Experiment]:
        """One literal false, all others true, things of kinds that work."""
        template = rule.template
        untested = [one for one in rule.kept if rule.tested.get(one, 0) < ENOUGH]
        for literal in untested + rule.doubtful:
            names = self._likely_names(rule)
            if _distinct(template, names):
                wanted = [template.about(one, names) for one in rule.kept if one != literal]
                denied = template.about(literal._replace(positive=not literal.positive), names)
                key = (template.syntax, literal)
                yield Experiment(key, template, names, [*wanted, denied])

    def _once_more(self, rule: Hypothesis) -> Iterator[Experiment]:
        """What has seldom worked, again: the next time something else will be different."""
        template, names = rule.template, self._likely_names(rule)
        if rule.accepted < SELDOM and _distinct(template, names):
            key = (template.syntax, rule.accepted)
            yield Experiment(key, template, names, self._needs(rule, names))

    def _likely_names(self, rule: Hypothesis) -> dict[str, str]:
        """Known things of kinds that have worked together."""
        by_kind: dict[str, list[str]] = {}
        for name in names_known(self.player.belief):
            by_kind.setdefault(kind_of(name), []).append(name)
        evidence = self.player.experience.evidence[rule.template.syntax]
        worked = sorted({u.kinds for u in evidence.accepted if all(k in by_kind for k in u.kinds)})
        kinds = self.rng.choice(worked) if worked else ()
        pairs = zip(rule.template.parameters, kinds, strict=False)
        return {parameter: self.rng.choice(by_kind[kind]) for parameter, kind in pairs}

    @staticmethod
    def _needs(rule: Hypothesis, names: Mapping[str, str]) -> list[Predicate]:
        return [rule.template.about(one, names) for one in (*rule.kept, *rule.ways[:1])]

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
                names = None if names is None else self._complete(rule, names)
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
            scored = [
                (self._score(rule, {**names, parameter: name}) + self.rng.random(), name)
                for name in names_known(self.player.belief)
                if name not in names.values()
            ]
            if not scored:
                return None
            names[parameter] = max(scored, key=lambda pair: pair[0])[1]
        return names

    def _score(self, rule: Hypothesis, names: Mapping[str, str]) -> float:
        known = (n for n in self._needs(rule, names) if set(n.arguments) <= {*names.values()})
        held = sum(2.0 for need in known if self._holds(need))
        if len(names) == len(rule.template.parameters):
            works = rule.tables.works(rule.template.kinds(names))
            held += 3.0 if works else -3.0 if works is False else 0.0
        return held


def _distinct(template: Template, names: Mapping[str, str]) -> bool:
    """A thing for every parameter, and none twice."""
    return len(set(names.values())) == len(template.parameters)


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
