"""``rpms rules audit``: how true a manual is, and how often it is right, in games not learned from.

The explorer is the one that explores: it knows no manual and learns as it goes, draws some commands
blindly, means others to work and sets up situations in which just one thing is wrong. By itself it
seldom comes to do what takes many steps, so now and then the built-in policy pursues the task, with
the world's own manual, and does on the way what has seldom worked. A manual is asked before each
command, with the explorer's belief alone: its *predictions*.

Where the simulator's own rules can be read it is also held against those, with commands put
together from everything at hand. A precondition is *true* if it was never false where the simulator
allows the command. A demand of the simulator is *found* if it was never false where the manual,
asked by somebody who knows everything, calls the command possible. An effect is true if it held
after every use, and found if the manual has what every use changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rpms.envs.base import Environment
from rpms.evals.analysis.tables import NONE, Cell, Table, count
from rpms.evals.running.plan import choose_tasks
from rpms.guard.policy import applicable_actions
from rpms.rule_learning.evidence import CERTAIN, CommandTemplate, ObservedUses, Snapshot
from rpms.rule_learning.explore import (
    SELDOM,
    Explorer,
    Watcher,
    explore,
    names_at_hand,
    names_known,
)
from rpms.rule_learning.induction import changes, writable
from rpms.rules.conditions import DecisionPoint
from rpms.rules.manual import Manual
from rpms.rules.predicates import Predicate, evaluate
from rpms.rules.semantics import can_work, match_action, simulate
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.naming import Truth
from rpms.vocabulary.output import quantity

STEPS = 400
"""Commands per game."""
SAMPLED = 30
"""Commands of each action that are looked at in one state."""
EVERY = 15
"""Commands played between two states that are looked at."""
STINT = 12
"""Commands that the policy plays in a row."""

Statements = dict[str, str]
"""What is said of an action, each with the command that speaks against it, if there is one."""


def audit_manual(
    env: Environment,
    folder: Path | None,
    split: str,
    games: int,
    seed: int = 0,
    only: Collection[str] = (),
) -> Audit:
    """Let a manual, laid over the world's own, watch games that it was not learned from."""
    manual = load_manual(env.name, str(folder or ""))
    comparison, predictions = RuleComparison(env, manual, seed), Predictions(manual, only)
    tasks = choose_tasks(env.name, split, games, spread=True)
    explore(env, tasks, seed, steps=STEPS, watchers=[comparison, predictions],
            pursue=Purpose(load_manual(env.name)))  # fmt: skip
    if only and not predictions.actions:
        names = ", ".join(only)
        raise RpmsError(f"--only {names}: nothing of that name was tried; leave it out to see all")
    heading = f"{folder or env.rules} in {quantity(games, 'game')} of {split}"
    return Audit(heading, comparison.result(), predictions)


class Purpose:
    """Plays a task for its own sake, so that what its steps lead up to is met as possible, too."""

    def __init__(self, manual: Manual) -> None:
        """The world's own manual, whichever is judged."""
        self.manual = manual

    def __call__(self, explorer: Explorer) -> None:
        """Some commands towards the goal; where the policy has none, it is somebody else's turn."""
        try:
            goal = explorer.env.parse_goal(explorer.task["goal"])
        except RpmsError:
            return
        in_vain: list[str] = []
        for _ in range(STINT):
            belief = explorer.belief
            pointer = explorer.env.sub_goal(goal, belief, explorer.history)
            now = DecisionPoint(self.manual, goal, pointer, belief, in_vain)
            serving = [choice["action"] for choice in applicable_actions(now)[:1]]
            actions = self._opportunities(explorer) or serving
            if not actions or explorer.budget <= 0:
                return
            explorer.say(explorer.rng.choice(actions))
            in_vain = [*in_vain, *actions] if explorer.belief == belief else []

    def _opportunities(self, explorer: Explorer) -> list[str]:
        """What the manual calls possible here, or one command later, and has seldom worked."""
        near = names_at_hand(explorer.belief)
        every = explorer.experience.evidence.values()
        seldom = [
            command
            for evidence in every
            if evidence.total(evidence.accepted) < SELDOM
            for command in _about(near, evidence.template)
        ]

        def possible(commands: Iterable[str], belief: Belief) -> list[str]:
            return [command for command in commands if can_work(self.manual, command, belief)]

        if now := possible(seldom, explorer.belief):
            return now
        commands = (command for evidence in every for command in _about(near, evidence.template))
        return [
            command
            for command in possible(commands, explorer.belief)
            if possible(seldom, simulate(self.manual, command, explorer.belief))
        ]


def _about(names: Sequence[str], template: CommandTemplate) -> Iterator[str]:
    """Every command of a template about some of these names."""
    for values in permutations(names, len(template.parameters)) if template.parameters else ():
        yield template.command(dict(zip(template.parameters, values, strict=True)))


class Audit(NamedTuple):
    """Everything there is to say about one manual; no actions where no rules can be read."""

    heading: str
    actions: dict[str, ActionAudit] | None
    predictions: Predictions

    def described(self) -> Iterator[str | Table]:
        """For people."""
        yield self.heading
        if self.actions is None:
            yield "this world's own rules cannot be read: only predictions are judged"
        else:
            yield from _described(self.actions)
        yield self.predictions.table()

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        actions, predictions = self.actions or {}, self.predictions
        shares = {kind: share(actions, kind) for kind in SHARES} if actions else {}
        return {
            "shares": shares | predictions.rates()._asdict(),
            "truths": {name: asdict(audit) for name, audit in actions.items()},
            "predictions": {n: predictions.rates(n)._asdict() for n in predictions.actions},
        }


@dataclass
class ActionAudit:
    """One action: what the manual says of it and what is so, each with what speaks against it.

    Attributes:
        preconditions: those of the manual; against it, a command that was possible without.
        demands: those of the simulator that ever failed; a command that the manual called possible
            all the same.
        effects: those of the manual; a use after which it did not hold.
        changes: common to all uses; whether the manual has them.
        allowed: commands the simulator allowed.
        granted: commands the manual called possible.
    """

    preconditions: Statements = field(default_factory=dict)
    demands: Statements = field(default_factory=dict)
    effects: Statements = field(default_factory=dict)
    changes: Statements = field(default_factory=dict)
    allowed: int = 0
    granted: int = 0

    def statements(self, kind: str) -> Statements:
        """Those that a share is counted over."""
        statements: Statements = getattr(self, SHARES[kind][0])
        return statements


# Kind of share -> the statements of an action it is about, and how one that is wrong is told.
SHARES = {
    "preconditions true": ("preconditions", "false: {}: '{}' was possible without it"),
    "demands found": ("demands", "missed: {}: '{}'"),
    "effects true": ("effects", "not an effect: {}: '{}'"),
    "effects found": ("changes", "missed effect: {}"),
}


def share(actions: Mapping[str, ActionAudit], kind: str) -> float:
    """Of all actions' statements of a kind, how many are right."""
    against = [example for audit in actions.values() for example in audit.statements(kind).values()]
    return against.count("") / len(against) if against else 1.0


def _described(actions: Mapping[str, ActionAudit]) -> Iterator[str | Table]:
    rows = []
    for name, audit in actions.items():
        against = [list(audit.statements(kind).values()) for kind in SHARES]
        rows.append([Cell(name), *(Cell(f"{a.count('')}/{len(a)}") for a in against)])
    yield Table("", "", "", ["action", *SHARES], rows)
    for name, audit in actions.items():
        for kind, (_, words) in SHARES.items():
            for text, example in audit.statements(kind).items():
                if example:
                    yield f"{name}: {words.format(text, example)}"
    shares = [share(actions, kind) for kind in SHARES]
    yield "preconditions: precision {:.3f}, recall {:.3f}".format(*shares[:2])
    yield "effects: precision {:.3f}, recall {:.3f}".format(*shares[2:])


class RuleComparison(Watcher):
    """Holds a manual against the simulator's rules while somebody plays."""

    def __init__(self, env: Environment, manual: Manual, seed: int = 0) -> None:
        """``seed`` decides which commands are looked at."""
        self.env, self.manual = env, manual
        self.readable = True
        self._actions: dict[str, ActionAudit] = {}
        self._seen = ObservedUses(env.command_templates())
        self._seen.doubts = True
        self._rng = Random(f"{seed}/states")
        self._count = 0
        self._before: Belief | None = None

    def before(self, explorer: Explorer, action: str) -> None:
        """Every now and then, look at all that could be done here."""
        self._before = self.env.true_belief(explorer.game.facts()) if self.readable else None
        self.readable = self._before is not None
        self._count += 1
        if self._before is None or self._count % EVERY:
            return
        commands = self._commands(self._before)
        demanded = self.env.demands(explorer.game, commands) or []
        for command, parts in zip(commands, demanded, strict=False):
            if parts is not None:
                self._judge(command, parts, self._before, explorer.game.facts())

    def after(self, explorer: Explorer, action: str, worked: bool) -> None:
        """The effects of what was accepted."""
        after = self.env.true_belief(explorer.game.facts()) if self.readable and worked else None
        if after is None or self._before is None:
            return
        if matched := match_action(self.manual, action):
            rule, names = matched
            audit = self._actions.setdefault(rule.name, ActionAudit())
            for effect in rule.outcomes:
                wrong = self._holds(effect, after, names) is False
                _note(audit.effects, str(effect), action if wrong else "")
        # Things may be in several states at once, which atoms cannot say.
        before = Belief(**{**self._before, "flags": {}})
        self._seen.note(action, Snapshot(before, CERTAIN), Belief(**{**after, "flags": {}}), True)

    def result(self) -> dict[str, ActionAudit] | None:
        """What was seen, by action; None where the simulator's rules cannot be read."""
        if not self.readable:
            return None
        for syntax, evidence in self._seen.evidence.items():
            template = evidence.template
            matched = match_action(self.manual, syntax)
            audit = self._actions.setdefault(
                matched[0].name if matched else template.name, ActionAudit()
            )
            for literal in writable(template, changes(evidence)):
                text = str(template.predicate(literal))
                audit.changes[text] = "" if text in audit.effects else syntax
            # Where the manual calls nothing possible it implies nothing either.
            if audit.allowed and not audit.granted:
                audit.demands = dict.fromkeys(audit.demands, "the manual never calls it possible")
        return {name: a for name, a in self._actions.items() if a.allowed or a.demands}

    def _commands(self, belief: Belief) -> list[str]:
        """Commands about what is at hand, and some about anything."""
        near, known, rng = names_at_hand(belief), names_known(belief), self._rng
        commands: list[str] = []
        for template in self._seen.templates:
            size = len(template.parameters)
            local = list(permutations(near, size))
            wide = [tuple(rng.sample(known, size)) for _ in range(SAMPLED // 3)] if size else []
            for values in [*rng.sample(local, min(len(local), SAMPLED)), *wide]:
                commands.append(
                    template.command(dict(zip(template.parameters, values, strict=True)))
                )
        return commands

    def _judge(
        self, command: str, demanded: Mapping[str, bool], belief: Belief, facts: Any
    ) -> None:
        matched = match_action(self.manual, command)
        name = matched[0].name if matched else command.split()[0]
        audit = self._actions.setdefault(name, ActionAudit())
        failing = [text for text, holds in demanded.items() if not holds]
        granted = bool(matched and can_work(self.manual, command, belief))
        audit.allowed += not failing
        audit.granted += granted
        for text in failing:
            _note(audit.demands, text, command if granted else "")
        if matched:
            rule, names = matched
            for effect in rule.outcomes:
                _note(audit.effects, str(effect), "")
            for need in rule.needs:
                wrong = not failing and self._holds(need, belief, names) is False
                if wrong and (other := self.env.true_belief(facts, names.values())):
                    wrong = self._holds(need, other, names) is False
                _note(audit.preconditions, str(need), command if wrong else "")

    def _holds(self, predicate: Predicate, belief: Belief, names: Mapping[str, str]) -> Truth:
        """Like any predicate, but things may be in several states at once."""
        if predicate.name == "state":
            thing, state = predicate.bind(names).arguments
            return (state in belief["flags"].get(thing, "").split(", ")) == predicate.positive
        return evaluate(predicate, belief, self.manual.facts, names)


def _note(statements: Statements, text: str, against: str) -> None:
    """A statement was put to the test; the first command against it stands as its example."""
    statements[text] = statements.get(text) or against


class AuditRates(NamedTuple):
    """Shares of predictions that came true, 1.0 where none were made; and of what was left open."""

    possible: float
    impossible: float
    open: float


class Predictions(Watcher):
    """Asks a manual before every command and counts what came of it, by action."""

    def __init__(self, manual: Manual, only: Collection[str] = ()) -> None:
        """``only`` names the actions that count; all if empty."""
        self.manual, self.only = manual, only
        self.counts: Counter[tuple[str, Truth, bool]] = Counter()

    def after(self, explorer: Explorer, action: str, worked: bool) -> None:
        """The belief is still the one from before the command."""
        matched = match_action(self.manual, action)
        name = matched[0].name if matched else action.split()[0]
        if not self.only or name in self.only:
            predicted = can_work(self.manual, action, explorer.belief) if matched else None
            self.counts[name, predicted, worked] += 1

    @property
    def actions(self) -> list[str]:
        """Every action that was tried."""
        return list(dict.fromkeys(name for name, _, _ in self.counts))

    def outcomes(self, action: str = "") -> list[int]:
        """Called possible, impossible, neither: each how often it worked, and how often not."""
        totals: Counter[tuple[Truth, bool]] = Counter()
        for (name, predicted, worked), number in self.counts.items():
            if action in ("", name):
                totals[predicted, worked] += number
        return [totals[truth, did] for truth in (True, False, None) for did in (True, False)]

    def rates(self, action: str = "") -> AuditRates:
        """Of what was called possible or impossible, how much was so; and what was left open."""
        worked, failed, mistaken, refused, *undecided = cells = self.outcomes(action)
        return AuditRates(
            worked / (worked + failed) if worked + failed else 1.0,
            refused / (refused + mistaken) if refused + mistaken else 1.0,
            sum(undecided) / sum(cells) if sum(cells) else 0.0,
        )

    def table(self) -> Table:
        """A row for each action, and one for all."""
        rows: list[Sequence[Cell]] = []
        for name in (*self.actions, ""):
            worked, failed, mistaken, refused, *undecided = self.outcomes(name)
            rates = self.rates(name)
            rows.append([
                Cell(name or "all"),
                count(worked + failed), _rate(rates.possible, worked + failed),
                count(mistaken + refused), _rate(rates.impossible, mistaken + refused),
                Cell(f"{sum(undecided)}", f"({rates.open:.1%})"), count(undecided[0]),
            ])  # fmt: skip
        heads = ["action", "called possible", "worked", "called impossible", "refused", "left open",
                 "of which worked"]  # fmt: skip
        return Table("", "", "", heads, rows, total=True)


def _rate(rate: float, of: int) -> Cell:
    return Cell(f"{rate:.2%}" if of else NONE)
