"""Explores scene after scene: by curiosity and by experiments.

Curiosity needs no rule: it tries commands about things within reach whose outcome is open. An
experiment sets up a situation in which exactly one condition is in doubt, acts, and observes. It
plans with the rules learned so far, by backward chaining: from an effect that makes the needed
statement true to the conditions of that action.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import NamedTuple

from rpms.envs.base import Environment, LiveGame, Task
from rpms.rule_learning.evidence import CommandTemplate, ObservedUse, ObservedUses
from rpms.rule_learning.induction import Hypotheses, Hypothesis
from rpms.rules.predicates import Predicate, evaluate, unify
from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.turn import Turn

STEPS = 600
"""Commands per scene."""
RELEARN = 200
"""Commands after which the rules are induced again."""
WEIGHED = 24
"""Candidates that are compared before one command is chosen."""
DISTRUST = 0.3
"""The probability of trying a pair of kinds although each was rejected with other kinds."""
DEPTH = 4
"""The depth of backward chaining, in actions."""
LONGEST = 14
"""The most commands that the set-up of one experiment may take."""
ENOUGH = 3
"""Tests after which a literal needs no further experiment."""
PURPOSEFUL = 0.1
"""The probability of handing control to the ``pursue`` callback for a while."""
SELDOM = 20
"""An action with fewer accepted uses is tried again without a specific question."""

Trials = Counter[tuple[str, object]]
"""The number of runs of each experiment, over all scenes."""


def explore(
    env: Environment,
    tasks: Sequence[Task],
    seed: int,
    report: Callable[[int, ObservedUses], None] = lambda number, experience: None,
    steps: int = STEPS,
    watchers: Sequence[Watcher] = (),
    pursue: Callable[[Explorer], None] | None = None,
) -> ObservedUses:
    """Act in the scenes of the tasks and note every answer; call ``report`` after each scene.

    The goals of the tasks are ignored, except by ``pursue``, which takes over now and then.
    """
    game, trials = env.open_game(), Trials()
    try:
        # Places that every scene has under the same name: a rule may mention them.
        places = [set(env.first_belief(game.reset(task))["places"]) for task in tasks[:20]]
        constants = sorted(set.intersection(*places)) if len(places) > 1 else []
        experience = ObservedUses(env.command_templates(), constants, env.states_decide)
        for number, task in enumerate(tasks, start=1):
            rng = Random(f"{seed}/{number}")
            _explore_scene(
                Explorer(env, game, task, steps, experience, rng, watchers), trials, pursue
            )
            report(number, experience)
    finally:
        game.close()
    return experience


class Watcher:
    """Observes the explorer without interfering."""

    def before(self, explorer: Explorer, action: str) -> None:
        """Called before a command."""

    def after(self, explorer: Explorer, action: str, worked: bool) -> None:
        """Called after the answer; the explorer's belief is still the one before the command."""


class Explorer:
    """Acts in one scene, command by command, and notes every answer."""

    def __init__(
        self,
        env: Environment,
        game: LiveGame,
        task: Task,
        steps: int,
        experience: ObservedUses,
        rng: Random,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.env, self.game, self.task, self.budget = env, game, task, steps
        self.experience, self.rng, self.watchers = experience, rng, watchers
        self._reset()

    def _reset(self) -> None:
        self.belief = self.env.first_belief(self.game.reset(self.task))
        self.history: list[Turn] = []
        self.snapshot = self.experience.look_at(self.belief)

    def act(self, action: str) -> bool:
        """Execute a command and note its outcome; return True if it was accepted."""
        self.budget -= 1
        for watcher in self.watchers:
            watcher.before(self, action)
        outcome = self.game.step(action)
        answer = outcome.observation
        worked = not self.env.failed(answer)
        self.history.append(
            Turn(step=len(self.history) + 1, thought="", action=action, observation=answer,
                 failed=not worked, reply="")
        )  # fmt: skip
        done = self.env.carried_out(action, self.belief, answer)
        after = self.env.update_belief(self.belief, action, answer)
        if done:
            self.experience.note(done, self.snapshot, after, worked)
            for watcher in self.watchers:
                watcher.after(self, done, worked)
        if worked or after != self.belief:
            self.belief, self.snapshot = after, self.experience.look_at(after)
        if outcome.done:
            # The episode is over, so start the same scene again.
            self.experience.note_spots(self.belief)
            self._reset()
        return worked


def _explore_scene(
    explorer: Explorer, trials: Trials, pursue: Callable[[Explorer], None] | None
) -> None:
    curiosity = Curiosity(explorer)
    laboratory = Laboratory(curiosity, trials)
    due = explorer.budget - RELEARN
    while explorer.budget > 0:
        if explorer.budget <= due:
            curiosity.learn()
            due = explorer.budget - RELEARN
        if pursue and explorer.rng.random() < PURPOSEFUL:
            pursue(explorer)
        curiosity.test_nearby()
        chance = explorer.rng.random()
        if chance < 0.5:
            laboratory.run_one()
        elif chance < 0.6:
            curiosity.look()
        elif chance < 0.75:
            curiosity.try_anything()
        else:
            curiosity.walk()
    explorer.experience.note_spots(explorer.belief)


def names_at_hand(belief: Belief) -> list[str]:
    """The names of everything that the agent stands at, carries or sees."""
    places = [belief["location"] or "", *belief["reachable"]]
    contents = [thing for thing, place in belief["last_seen"].items() if place in places]
    names = [*places, *belief["holding"], *belief["visible"], *contents]
    return sorted({name for name in names if name}, key=in_order)


def all_names(belief: Belief) -> list[str]:
    names = [*belief["places"], *belief["last_seen"], *belief["containers"], *belief["flags"]]
    return sorted({*names, *names_at_hand(belief)}, key=in_order)


def draw_names(template: CommandTemplate, belief: Belief, rng: Random) -> Mapping[str, str] | None:
    """Draw things for a command, mostly within reach; None if the belief has no names."""
    near, names = names_at_hand(belief), all_names(belief)
    if not names:
        return {} if not template.parameters else None
    return {
        parameter: rng.choice(near if near and rng.random() < 0.7 else names)
        for parameter in template.parameters
    }


class Curiosity:
    """Chooses the command with the most informative answer, and otherwise moves on."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer, self.rng = explorer, explorer.rng
        self.learn()

    def learn(self) -> None:
        """Induce the rules again from all evidence."""
        self.rules = Hypotheses(self.explorer.experience)
        relevant = {
            rule.template.atoms[literal.atom].name
            for rule in self.rules.rules.values()
            for literal in (*rule.conditions, *rule.alternatives)
        }
        self.masks: dict[str, int] = {}
        self.worked: set[tuple[str, ...]] = set()
        self.seen: Counter[tuple[str | int, ...]] = Counter()
        for syntax, evidence in self.explorer.experience.evidence.items():
            atoms = enumerate(evidence.template.atoms)
            self.masks[syntax] = sum(1 << n for n, atom in atoms if atom.name in relevant)
            for use, count in evidence.uses.items():
                self._count(syntax, use, count)
            self.worked |= {(syntax, *use.kinds) for use in evidence.accepted}

    def _count(self, syntax: str, use: ObservedUse, count: int = 1) -> None:
        pattern = (syntax, use.true & self.masks[syntax])
        self.seen[pattern] += count
        self.seen[*pattern, *use.kinds] += count

    def _use(self, template: CommandTemplate, values: Sequence[str]) -> ObservedUse:
        names = dict(zip(template.parameters, values, strict=True))
        return ObservedUse(
            *self.explorer.snapshot.masks(template, names), template.kinds(names), False
        )

    def test_nearby(self) -> None:
        """Try one open command of each template with things within reach."""
        explorer = self.explorer
        belief, near = explorer.belief, names_at_hand(explorer.belief)
        templates = [template for template in explorer.experience.templates if template.parameters]
        self.rng.shuffle(templates)
        for template in templates:
            best = max(self._open_questions(template, near), default=None)
            if best is None:
                continue
            self._count(template.syntax, self._use(template, best[-1]))
            explorer.act(template.command(dict(zip(template.parameters, best[-1], strict=True))))
            if explorer.budget <= 0 or explorer.belief is not belief:
                return

    def _open_questions(
        self, template: CommandTemplate, near: Sequence[str]
    ) -> Iterator[tuple[float, float, tuple[str, ...]]]:
        """Bindings that no rule decides and that were not tried in such a situation.

        An action without a rule may resemble another action: half the time, the binding that comes
        closest to the conditions of another rule ranks first, else the one tried least.
        """
        count = len(template.parameters)
        bindings = list(permutations(near, count))
        rule = self.rules.rules.get(template.syntax)
        similar = [r for r in self.rules.rules.values() if len(r.template.parameters) == count]
        by_similarity = self.rng.random() < 0.5
        for values in self.rng.sample(bindings, min(len(bindings), WEIGHED)):
            use = self._use(template, values)
            pattern = (template.syntax, use.true & self.masks[template.syntax])
            if self.seen[*pattern, *use.kinds] or (rule and not self._open(rule, use)):
                continue
            if by_similarity and not rule:
                rank = max((_similarity(other, use) for other in similar), default=0.0)
            else:
                rank = -float(self.seen[pattern])
            yield rank, self.rng.random(), values

    def _open(self, rule: Hypothesis, use: ObservedUse) -> bool:
        """True if a rule leaves the use open, or rejects it only by its kinds."""
        possible = rule.allows(use)
        if possible is None:
            return True
        if possible:
            # A kind that no table rules out may just never have been tried.
            return (rule.template.syntax, *use.kinds) not in self.worked
        by_kind = len(use.kinds) > 1 and all(map(use.grants, rule.conditions))
        return by_kind and self.rng.random() < DISTRUST

    def walk(self) -> None:
        """Do something that should work, preferably something that changes the state."""
        explorer, rng = self.explorer, self.rng
        templates = explorer.experience.templates
        changing = [t for t in templates if (r := self.rules.rules.get(t.syntax)) and r.effects]
        pool = changing if changing and rng.random() < 0.8 else templates
        for _ in range(4):
            template = rng.choice(pool)
            for _ in range(WEIGHED):
                names = draw_names(template, explorer.belief, rng)
                if names is None:
                    break
                unseen = any(name not in explorer.belief["searched"] for name in names.values())
                likely = unseen or rng.random() < 0.5
                if likely and self.rules.judge(template, names, explorer.snapshot):
                    explorer.act(template.command(names))
                    return
        self.try_anything()

    def try_anything(self) -> None:
        """Execute a random command, which may contradict a rule."""
        template = self.rng.choice(self.explorer.experience.templates)
        names = draw_names(template, self.explorer.belief, self.rng)
        if names is not None:
            self.explorer.act(template.command(names))

    def look(self) -> None:
        """Execute a command without parameters, which may reveal something."""
        plain = [t.syntax for t in self.explorer.experience.templates if not t.parameters]
        if plain:
            self.explorer.act(self.rng.choice(plain))


def _similarity(rule: Hypothesis, use: ObservedUse) -> float:
    """The share of another rule's conditions that hold, with its parameters in order."""
    if not rule.conditions:
        return 0.0
    return sum(map(use.grants, rule.conditions)) / len(rule.conditions)


class Experiment(NamedTuple):
    """A command to try once these statements hold."""

    key: tuple[str, object]
    template: CommandTemplate
    names: Mapping[str, str]
    needs: Sequence[Predicate]


class Laboratory:
    """Sets up and runs experiments in the current scene."""

    def __init__(self, curiosity: Curiosity, trials: Trials) -> None:
        self.explorer, self.curiosity, self.trials = curiosity.explorer, curiosity, trials
        self.rng = curiosity.rng

    def run_one(self) -> None:
        """Run the next experiment that is possible in this scene, if there is one."""
        rules = list(self.curiosity.rules.rules.values())
        self.rng.shuffle(rules)
        for rule in filter(lambda rule: rule.template.parameters, rules):
            questions = [*self._kinds(rule), *self._literals(rule), *self._seldom_accepted(rule)]
            if due := [
                question for question in questions if self.trials[question.key] < ENOUGH * ENOUGH
            ]:
                experiment = self.rng.choice(due)
                self.trials[experiment.key] += 1
                if self._set_up(experiment.needs):
                    self.trials[experiment.key] += ENOUGH
                    self.explorer.act(experiment.template.command(experiment.names))
                return

    def _kinds(self, rule: Hypothesis) -> Iterator[Experiment]:
        """Try a kind of thing that was never tried while all conditions held."""
        template, tables = rule.template, rule.tables
        evidence = self.explorer.experience.evidence[template.syntax]
        worked = {use.kinds for use in evidence.accepted}
        for at, parameter in enumerate(template.parameters):
            names = self._likely_names(rule)
            candidates = all_names(self.explorer.belief)
            self.rng.shuffle(candidates)
            # Kinds that fail with all others may work together.
            together = self.rng.random() < DISTRUST
            if together:
                names = dict(zip(template.parameters, candidates, strict=False))
            for name in candidates[:12]:
                chosen = {**names, parameter: name}
                if not _distinct(template, chosen):
                    continue
                kinds = template.kinds(chosen)
                if tables.pair or together or at not in tables.single:
                    is_new = kinds not in tables.pair and kinds not in worked
                else:
                    is_new = kinds[at] not in tables.single[at]
                if is_new:
                    needs = _needs(rule, chosen)
                    yield Experiment((template.syntax, kinds), template, chosen, needs)
                    break

    def _literals(self, rule: Hypothesis) -> Iterator[Experiment]:
        """Make one literal false and all others true, with kinds that work."""
        template = rule.template
        untested = [literal for literal in rule.conditions if rule.tested.get(literal, 0) < ENOUGH]
        for literal in untested + rule.doubtful:
            names = self._likely_names(rule)
            if _distinct(template, names):
                rest = [condition for condition in rule.conditions if condition != literal]
                negated = literal._replace(positive=not literal.positive)
                needs = [template.predicate(each).bind(names) for each in (*rest, negated)]
                yield Experiment((template.syntax, literal), template, names, needs)

    def _seldom_accepted(self, rule: Hypothesis) -> Iterator[Experiment]:
        """Repeat an action that has seldom worked: each time the situation differs."""
        template, names = rule.template, self._likely_names(rule)
        if rule.accepted < SELDOM and _distinct(template, names):
            key = (template.syntax, rule.accepted)
            yield Experiment(key, template, names, _needs(rule, names))

    def _likely_names(self, rule: Hypothesis) -> dict[str, str]:
        """Draw things of kinds that have worked together."""
        by_kind: dict[str, list[str]] = {}
        for name in all_names(self.explorer.belief):
            by_kind.setdefault(kind_of(name), []).append(name)
        evidence = self.explorer.experience.evidence[rule.template.syntax]
        worked = sorted({u.kinds for u in evidence.accepted if all(k in by_kind for k in u.kinds)})
        kinds = self.rng.choice(worked) if worked else ()
        pairs = zip(rule.template.parameters, kinds, strict=False)
        return {parameter: self.rng.choice(by_kind[kind]) for parameter, kind in pairs}

    def _holds(self, predicate: Predicate) -> bool | None:
        return evaluate(predicate, self.explorer.belief, self.curiosity.rules.facts, {})

    def _set_up(self, needs: Sequence[Predicate]) -> bool:
        """Act until all needed statements hold; redo those that an action undoes."""
        for _ in range(LONGEST):
            missing = [need for need in needs if not self._holds(need)]
            if not missing:
                return True
            action = self._action_towards(missing[0], DEPTH)
            if action is None or self.explorer.budget <= 1 or not self.explorer.act(action):
                return False
        return False

    def _action_towards(self, fact: Predicate, depth: int) -> str | None:
        """A possible command that leads towards a fact."""
        for rule in self.curiosity.rules.rules.values():
            template = rule.template
            for effect in rule.effects:
                names = unify(template.predicate(effect), fact, template.parameters)
                names = None if names is None else self._complete(rule, names)
                if names is None:
                    continue
                missing = [need for need in _needs(rule, names) if not self._holds(need)]
                if not missing:
                    return template.command(names)
                if depth and (first := self._action_towards(missing[0], depth - 1)):
                    return first
        return None

    def _complete(self, rule: Hypothesis, bound: Mapping[str, str]) -> dict[str, str] | None:
        """Fill the other parameters with the things for which most conditions hold."""
        names = dict(bound)
        for parameter in rule.template.parameters:
            if parameter in names:
                continue
            scores = {
                name: self._score(rule, {**names, parameter: name}) + self.rng.random()
                for name in all_names(self.explorer.belief)
                if name not in names.values()
            }
            if not scores:
                return None
            names[parameter] = max(scores, key=scores.__getitem__)
        return names

    def _score(self, rule: Hypothesis, names: Mapping[str, str]) -> float:
        needs = (n for n in _needs(rule, names) if set(n.arguments) <= {*names.values()})
        score = sum(2.0 for need in needs if self._holds(need))
        if len(names) == len(rule.template.parameters):
            works = rule.tables.works(rule.template.kinds(names))
            score += 3.0 if works else -3.0 if works is False else 0.0
        return score


def _needs(rule: Hypothesis, names: Mapping[str, str]) -> list[Predicate]:
    literals = (*rule.conditions, *rule.alternatives[:1])
    return [rule.template.predicate(literal).bind(names) for literal in literals]


def _distinct(template: CommandTemplate, names: Mapping[str, str]) -> bool:
    """True if every parameter has a thing, and no thing occurs twice."""
    return len(set(names.values())) == len(template.parameters)
