"""Home after home: first curiosity, then experiments.

Curiosity needs no rule: it tries what is at hand, and what it is unsure of. An experiment brings
about a situation in which exactly one thing is in doubt, acts, and looks. The way there is found
with the very rules that are being learned: an effect that makes a wanted statement true, then what
that action needs in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import NamedTuple

from rpms.envs.base import Environment, LiveGame, Task
from rpms.rule_learning.evidence import CommandTemplate, ObservedUse, ObservedUses, Snapshot
from rpms.rule_learning.induction import Hypotheses, Hypothesis
from rpms.rules.predicates import Predicate, evaluate, unify
from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.turn import Turn

STEPS = 600
"""Commands per home."""
RELEARN = 200
"""Commands after which the rules are induced again."""
WEIGHED = 24
"""How many candidates are weighed before one command is chosen."""
DISTRUST = 0.3
"""How often a pair of kinds is tried although each of them was refused with others."""
DEPTH = 4
"""How many actions deep the reasons of an action are followed."""
LONGEST = 14
"""How many commands one experiment may take to set up."""
ENOUGH = 3
"""Tests of one literal after which it is no longer asked about."""
PURPOSEFUL = 0.1
"""How often somebody else may play for a while, where there is one."""
ASKED_AGAIN = 6
"""How often one case is put again at most."""
SELDOM = 20
"""Uses that worked, below which an action is tried again for its own sake."""

Trials = Counter[tuple[str, object]]
"""How often each experiment was made, in all homes together."""


def explore(
    env: Environment,
    tasks: Sequence[Task],
    seed: int,
    report: Callable[[int, ObservedUses], None] = lambda number, experience: None,
    steps: int = STEPS,
    watchers: Sequence[Watcher] = (),
    pursue: Callable[[Explorer], None] | None = None,
) -> ObservedUses:
    """Play the tasks' homes and note every answer; ``report`` is called after each home.

    Whatever the tasks ask for is of no interest here, but to somebody who is let play now and then.
    """
    game, trials = env.open_game(), Trials()
    try:
        # Places that every home has under the same name: a rule may speak of them.
        named = [set(env.first_belief(game.reset(task))["places"]) for task in tasks[:20]]
        constants = sorted(set.intersection(*named)) if len(named) > 1 else []
        experience = ObservedUses(env.command_templates(), constants, env.states_decide)
        for number, task in enumerate(tasks, start=1):
            rng = Random(f"{seed}/{number}")
            _play_home(Explorer(env, game, task, steps, experience, rng, watchers), trials, pursue)
            report(number, experience)
    finally:
        game.close()
    return experience


class Watcher:
    """Somebody who looks over the explorer's shoulder and does not interfere."""

    def before(self, explorer: Explorer, action: str) -> None:
        """A command is about to be given."""

    def after(self, explorer: Explorer, action: str, worked: bool) -> None:
        """It was answered; the explorer's belief is still the one from before."""


class Explorer:
    """Plays one home, command by command, and writes every answer down."""

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
        """Start a home with a budget of commands."""
        self.env, self.game, self.task, self.budget = env, game, task, steps
        self.experience, self.rng, self.watchers = experience, rng, watchers
        # Whoever chooses the commands learns; no rule leads to expect anything before.
        self.rules = Hypotheses(ObservedUses(()))
        self.surprises: list[Surprise] = []
        self._reset()

    def _reset(self) -> None:
        self.belief = self.env.first_belief(self.game.reset(self.task))
        self.history: list[Turn] = []
        self.now = self.experience.look_at(self.belief)

    def say(self, action: str, noted: bool = True) -> bool:
        """Play a command and note what came of it; True if it was accepted.

        What is not ``noted`` is said on the side: it leaves no trace in what is learned.
        """
        self.budget -= noted
        for watcher in self.watchers if noted else ():
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
        if done and noted:
            self._wonder(done, worked)
            self.experience.note(done, self.now, after, worked)
            for watcher in self.watchers:
                watcher.after(self, done, worked)
        if worked or after != self.belief:
            self.belief, self.now = after, self.experience.look_at(after)
        if outcome.done:
            # A home that was won is no longer played: begin it again, it is still the same home.
            self.experience.note_spots(self.belief)
            self._reset()
        return worked

    def _wonder(self, action: str, worked: bool) -> None:
        """Remember an answer that the rules did not lead to expect, to ask again.

        Where no answer was ever false only those that contradict a rule are worth it.
        """
        if matched := self.experience.match(action):
            template, names = matched
            rule = self.rules.rules.get(template.syntax)
            expected = self.rules.judge(template, names, self.now) if rule else False
            contradicted = rule is not None and expected is (not worked)
            if contradicted or (self.rules.noise.rate and expected is not worked):
                self.surprises.append(Surprise(template, names, self.now, worked))


class Surprise(NamedTuple):
    """An answer that the rules do not explain, and what was believed before it."""

    template: CommandTemplate
    names: Mapping[str, str]
    before: Snapshot
    worked: bool


def _play_home(
    explorer: Explorer, trials: Trials, pursue: Callable[[Explorer], None] | None
) -> None:
    curiosity = Curiosity(explorer)
    laboratory = Laboratory(curiosity, trials)
    due = explorer.budget - RELEARN
    while explorer.budget > 0:
        laboratory.ask_again()
        if explorer.budget <= due:
            curiosity.learn()
            due = explorer.budget - RELEARN
        if pursue and explorer.rng.random() < PURPOSEFUL:
            pursue(explorer)
        curiosity.test_here()
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
    """What the agent stands at, carries or sees."""
    here = [belief["location"] or "", *belief["reachable"]]
    lying = [thing for thing, place in belief["last_seen"].items() if place in here]
    named = [*here, *belief["holding"], *belief["visible"], *lying]
    return sorted({name for name in named if name}, key=in_order)


def names_known(belief: Belief) -> list[str]:
    """Everything that has a name so far."""
    named = [*belief["places"], *belief["last_seen"], *belief["containers"], *belief["flags"]]
    return sorted({*named, *names_at_hand(belief)}, key=in_order)


def draw_names(template: CommandTemplate, belief: Belief, rng: Random) -> Mapping[str, str] | None:
    """Things for a command: mostly such as are at hand, else any; None if nothing has a name."""
    near, known = names_at_hand(belief), names_known(belief)
    if not known:
        return {} if not template.parameters else None
    return {
        parameter: rng.choice(near if near and rng.random() < 0.7 else known)
        for parameter in template.parameters
    }


class Curiosity:
    """Chooses the command whose answer says most, and otherwise walks on."""

    def __init__(self, explorer: Explorer) -> None:
        """The rules are induced again whenever ``learn`` is called."""
        self.explorer, self.rng = explorer, explorer.rng
        self.learn()

    def learn(self) -> None:
        """Take up what has been seen since."""
        self.rules = self.explorer.rules = Hypotheses(self.explorer.experience)
        matter = {
            rule.template.atoms[literal.atom].name
            for rule in self.rules.rules.values()
            for literal in (*rule.conditions, *rule.ways)
        }
        self.masks: dict[str, int] = {}
        self.worked: set[tuple[str, ...]] = set()
        self.seen: Counter[tuple[str | int, ...]] = Counter()
        for syntax, evidence in self.explorer.experience.evidence.items():
            atoms = enumerate(evidence.template.atoms)
            self.masks[syntax] = sum(1 << n for n, atom in atoms if atom.name in matter)
            for use, count in evidence.uses.items():
                self._count(syntax, use, count)
            self.worked |= {(syntax, *use.kinds) for use in evidence.accepted}

    def _count(self, syntax: str, use: ObservedUse, count: int = 1) -> None:
        pattern = (syntax, use.true & self.masks[syntax])
        self.seen[pattern] += count
        self.seen[*pattern, *use.kinds] += count

    def _use(self, template: CommandTemplate, values: Sequence[str]) -> ObservedUse:
        names = dict(zip(template.parameters, values, strict=True))
        return ObservedUse(*self.explorer.now.masks(template, names), template.kinds(names), False)

    def test_here(self) -> None:
        """Try what is open at this very spot: one command of each template."""
        explorer = self.explorer
        belief, near = explorer.belief, names_at_hand(explorer.belief)
        templates = [template for template in explorer.experience.templates if template.parameters]
        self.rng.shuffle(templates)
        for template in templates:
            best = max(self._open_questions(template, near), default=None)
            if best is None:
                continue
            self._count(template.syntax, self._use(template, best[-1]))
            explorer.say(template.command(dict(zip(template.parameters, best[-1], strict=True))))
            if explorer.budget <= 0 or explorer.belief is not belief:
                return

    def _open_questions(
        self, template: CommandTemplate, near: Sequence[str]
    ) -> Iterator[tuple[float, float, tuple[str, ...]]]:
        """Bindings that no rule judges and that were not tried in such a situation.

        Where nothing is known of an action, others may be like it: half the time what comes closest
        to the conditions of another one goes first, else what was tried least.
        """
        count = len(template.parameters)
        bindings = list(permutations(near, count))
        rule = self.rules.rules.get(template.syntax)
        others = [r for r in self.rules.rules.values() if len(r.template.parameters) == count]
        by_likeness = self.rng.random() < 0.5
        for values in self.rng.sample(bindings, min(len(bindings), WEIGHED)):
            use = self._use(template, values)
            pattern = (template.syntax, use.true & self.masks[template.syntax])
            if self.seen[*pattern, *use.kinds] or (rule and not self._open(rule, use)):
                continue
            if by_likeness and not rule:
                rank = max((_likeness(other, use) for other in others), default=0.0)
            else:
                rank = -float(self.seen[pattern])
            yield rank, self.rng.random(), values

    def _open(self, rule: Hypothesis, use: ObservedUse) -> bool:
        """A rule leaves it open; or only its kinds speak against it, which may belong together."""
        possible = rule.allows(use)
        if possible is None:
            return True
        if possible:
            # Where no table speaks against a kind, it may only never have been tried.
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
                if likely and self.rules.judge(template, names, explorer.now):
                    explorer.say(template.command(names))
                    return
        self.try_anything()

    def try_anything(self) -> None:
        """A command drawn blindly: it may contradict what everybody is sure of."""
        template = self.rng.choice(self.explorer.experience.templates)
        names = draw_names(template, self.explorer.belief, self.rng)
        if names is not None:
            self.explorer.say(template.command(names))

    def look(self) -> None:
        """Commands about nothing in particular cost little and may show something."""
        plain = [t.syntax for t in self.explorer.experience.templates if not t.parameters]
        if plain:
            self.explorer.say(self.rng.choice(plain))


def _likeness(rule: Hypothesis, use: ObservedUse) -> float:
    """How much of what another action needs holds here, its parameters taken in their order."""
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
    """Sets experiments up and carries them out in the home that is being played."""

    def __init__(self, curiosity: Curiosity, trials: Trials) -> None:
        """The rules are those that curiosity has learned by now."""
        self.explorer, self.curiosity, self.trials = curiosity.explorer, curiosity, trials
        self.rng = curiosity.rng

    def run_one(self) -> None:
        """Carry out the next experiment, if there is one to be had here."""
        rules = list(self.curiosity.rules.rules.values())
        self.rng.shuffle(rules)
        for rule in filter(lambda rule: rule.template.parameters, rules):
            questions = [*self._kinds(rule), *self._literals(rule), *self._once_more(rule)]
            if due := [
                question for question in questions if self.trials[question.key] < ENOUGH * ENOUGH
            ]:
                experiment = self.rng.choice(due)
                self.trials[experiment.key] += 1
                if self._set_up(experiment.needs):
                    self.trials[experiment.key] += ENOUGH
                    self.explorer.say(experiment.template.command(experiment.names))
                return

    def ask_again(self) -> None:
        """Put every surprising case once more, until one answer leads: neither is believed before.

        What is played meanwhile raises no further questions.
        """
        explorer, noise = self.explorer, self.curiosity.rules.noise
        surprises, explorer.surprises = explorer.surprises, []
        for surprise in surprises:
            command, lead = surprise.template.command(surprise.names), 1
            if not noise.rate and self._is_confirmed(surprise, command):
                continue
            for _ in range(ASKED_AGAIN):
                settled = noise.settles(abs(lead), explorer.experience.commands)
                if settled or explorer.budget <= 1 or not self._restore(surprise):
                    break
                lead += 1 if explorer.say(command) == surprise.worked else -1
        explorer.surprises = []

    def _is_confirmed(self, surprise: Surprise, command: str) -> bool:
        """Whether nothing speaks against an answer of a world that never gave a false one.

        Asked on the side, so that such a world is explored as if nobody had doubted it.
        """
        if self.explorer.belief != surprise.before.belief:
            return True
        return self.explorer.say(command, noted=False) == surprise.worked

    def _restore(self, surprise: Surprise) -> bool:
        """Let the conditions of an action stand as they stood; those unknown are left to chance.

        Where none is known of, only the very same situation will do.
        """
        template, names, before, _ = surprise
        if self.explorer.belief == before.belief:
            return True
        rule = self.curiosity.rules.rules.get(template.syntax)
        if rule is None:
            return False
        use = ObservedUse(*before.masks(template, names), template.kinds(names), False)
        literals = [
            literal._replace(positive=literal.positive == use.grants(literal))
            for literal in rule.conditions
            if use.grants(literal) or use.denies(literal)
        ]
        return self._set_up([template.predicate(literal).bind(names) for literal in literals])

    def _kinds(self, rule: Hypothesis) -> Iterator[Experiment]:
        """A kind of thing that was never tried while everything else was right."""
        template, tables = rule.template, rule.tables
        evidence = self.explorer.experience.evidence[template.syntax]
        worked = {use.kinds for use in evidence.accepted}
        for at, parameter in enumerate(template.parameters):
            names = self._likely_names(rule)
            known = names_known(self.explorer.belief)
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
                    needs = _needs(rule, chosen)
                    yield Experiment((template.syntax, kinds), template, chosen, needs)
                    break

    def _literals(self, rule: Hypothesis) -> Iterator[Experiment]:
        """One literal false, all others true, things of kinds that work."""
        template = rule.template
        untested = [literal for literal in rule.conditions if rule.tested.get(literal, 0) < ENOUGH]
        for literal in untested + rule.doubtful:
            names = self._likely_names(rule)
            if _distinct(template, names):
                others = [other for other in rule.conditions if other != literal]
                denied = literal._replace(positive=not literal.positive)
                needs = [template.predicate(other).bind(names) for other in (*others, denied)]
                yield Experiment((template.syntax, literal), template, names, needs)

    def _once_more(self, rule: Hypothesis) -> Iterator[Experiment]:
        """What has seldom worked, again: the next time something else will be different."""
        template, names = rule.template, self._likely_names(rule)
        if rule.accepted < SELDOM and _distinct(template, names):
            key = (template.syntax, rule.accepted)
            yield Experiment(key, template, names, _needs(rule, names))

    def _likely_names(self, rule: Hypothesis) -> dict[str, str]:
        """Known things of kinds that have worked together."""
        by_kind: dict[str, list[str]] = {}
        for name in names_known(self.explorer.belief):
            by_kind.setdefault(kind_of(name), []).append(name)
        evidence = self.explorer.experience.evidence[rule.template.syntax]
        worked = sorted({u.kinds for u in evidence.accepted if all(k in by_kind for k in u.kinds)})
        kinds = self.rng.choice(worked) if worked else ()
        pairs = zip(rule.template.parameters, kinds, strict=False)
        return {parameter: self.rng.choice(by_kind[kind]) for parameter, kind in pairs}

    def _holds(self, predicate: Predicate) -> bool | None:
        return evaluate(predicate, self.explorer.belief, self.curiosity.rules.facts, {})

    def _set_up(self, needs: Sequence[Predicate]) -> bool:
        """Bring the needed statements about; what is undone on the way is done again."""
        for _ in range(LONGEST):
            missing = [need for need in needs if not self._holds(need)]
            if not missing:
                return True
            action = self._way_to(missing[0], DEPTH)
            if action is None or self.explorer.budget <= 1 or not self.explorer.say(action):
                return False
        return False

    def _way_to(self, fact: Predicate, depth: int) -> str | None:
        """A command that can be given now and leads to a fact."""
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
                if depth and (first := self._way_to(missing[0], depth - 1)):
                    return first
        return None

    def _complete(self, rule: Hypothesis, bound: Mapping[str, str]) -> dict[str, str] | None:
        """Things for the other parameters: those with which least is missing."""
        names = dict(bound)
        for parameter in rule.template.parameters:
            if parameter in names:
                continue
            scores = {
                name: self._score(rule, {**names, parameter: name}) + self.rng.random()
                for name in names_known(self.explorer.belief)
                if name not in names.values()
            }
            if not scores:
                return None
            names[parameter] = max(scores, key=scores.__getitem__)
        return names

    def _score(self, rule: Hypothesis, names: Mapping[str, str]) -> float:
        known = (n for n in _needs(rule, names) if set(n.arguments) <= {*names.values()})
        score = sum(2.0 for need in known if self._holds(need))
        if len(names) == len(rule.template.parameters):
            works = rule.tables.works(rule.template.kinds(names))
            score += 3.0 if works else -3.0 if works is False else 0.0
        return score


def _needs(rule: Hypothesis, names: Mapping[str, str]) -> list[Predicate]:
    literals = (*rule.conditions, *rule.ways[:1])
    return [rule.template.predicate(literal).bind(names) for literal in literals]


def _distinct(template: CommandTemplate, names: Mapping[str, str]) -> bool:
    """A thing for every parameter, and none twice."""
    return len(set(names.values())) == len(template.parameters)
