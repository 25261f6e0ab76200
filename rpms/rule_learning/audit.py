"""``rpms rules audit``: measures how correct a manual is, on games it was not learned from.

The explorer that learns rules generates the commands, without the manual: some at random, some that
should work, some in situations in which exactly one condition is false. It seldom reaches states
that take many steps. So now and then the built-in policy pursues the task with the environment's
manual, and tries on the way actions that have seldom worked. Before each command the audited manual
predicts the outcome from the explorer's belief: its *predictions*.

If the simulator's rules can be read, the manual is also compared with them, on commands about
everything within reach. A precondition is *true* if it was never false for a command that the
simulator allows. A demand of the simulator is *found* if it was never false for a command that the
manual, evaluated on the true state, calls possible. An effect is *true* if it held after every use.
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
from rpms.envs.manuals import load_manual
from rpms.evals.analysis.tables import NONE, Cell, Table, count
from rpms.evals.running.plan import choose_tasks
from rpms.guard.procedure import applicable_actions
from rpms.rule_learning.evidence import CommandTemplate
from rpms.rule_learning.explore import (
    SELDOM,
    Explorer,
    Watcher,
    all_names,
    explore,
    names_at_hand,
)
from rpms.rules.conditions import DecisionPoint
from rpms.rules.effects import simulate
from rpms.rules.manual import Manual
from rpms.rules.predicates import Predicate, evaluate
from rpms.rules.verdicts import can_work, match_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.naming import Truth
from rpms.vocabulary.output import quantity

STEPS = 400
"""Commands per game."""
SAMPLED = 30
"""Commands of each action that are compared in one state."""
EVERY = 15
"""Commands between two compared states."""
STINT = 12
"""Commands that the policy executes in a row."""

Statements = dict[str, str]
"""Statements about an action, each with a command that contradicts it, or an empty text."""


def audit_manual(
    env: Environment,
    folder: Path | None,
    split: str,
    games: int,
    seed: int = 0,
    only: Collection[str] = (),
) -> Audit:
    """Audit a manual, as an overlay on the shipped one, on games it was not learned from."""
    manual = load_manual(env.name, str(folder or ""))
    comparison, predictions = RuleComparison(env, manual, seed), Predictions(manual, only)
    tasks = choose_tasks(env.name, split, games, spread=True)
    explore(env, tasks, seed, steps=STEPS, watchers=[comparison, predictions],
            pursue=GoalPursuit(load_manual(env.name)))  # fmt: skip
    if only and not predictions.actions:
        names = ", ".join(only)
        raise RpmsError(f"--only {names}: no such action was tried; leave --only out to see all")
    heading = f"{folder or env.rules} in {quantity(games, 'game')} of {split}"
    return Audit(heading, comparison.result(), predictions)


class GoalPursuit:
    """Pursues the goal of a task, so that the audit also sees states that take many steps.

    Left to itself, the explorer hardly ever changes the state of a thing, so the audit would miss
    errors in what a manual says of that.
    """

    def __init__(self, manual: Manual) -> None:
        # The shipped manual, whichever manual is audited.
        self.manual = manual

    def __call__(self, explorer: Explorer) -> None:
        """Execute some commands towards the goal, until the policy has none."""
        try:
            goal = explorer.env.parse_goal(explorer.task["goal"])
        except RpmsError:
            return
        no_effect: list[str] = []
        for _ in range(STINT):
            belief = explorer.belief
            pointer = explorer.env.sub_goal(goal, belief, explorer.history)
            point = DecisionPoint(self.manual, goal, pointer, belief, no_effect)
            applicable = [choice["action"] for choice in applicable_actions(point)[:1]]
            actions = self._opportunities(explorer) or applicable
            if not actions or explorer.budget <= 0:
                return
            explorer.act(explorer.rng.choice(actions))
            no_effect = [*no_effect, *actions] if explorer.belief == belief else []

    def _opportunities(self, explorer: Explorer) -> list[str]:
        """Commands that seldom worked and that the manual calls possible, now or one step on."""
        near = names_at_hand(explorer.belief)
        every = explorer.experience.evidence.values()
        seldom = [
            command
            for evidence in every
            if evidence.total(evidence.accepted) < SELDOM
            for command in _commands(near, evidence.template)
        ]

        def possible(commands: Iterable[str], belief: Belief) -> list[str]:
            return [command for command in commands if can_work(self.manual, command, belief)]

        if direct := possible(seldom, explorer.belief):
            return direct
        commands = (command for evidence in every for command in _commands(near, evidence.template))
        return [
            command
            for command in possible(commands, explorer.belief)
            if possible(seldom, simulate(self.manual, command, explorer.belief))
        ]


def _commands(names: Sequence[str], template: CommandTemplate) -> Iterator[str]:
    """Every command of a template with these names as arguments."""
    for values in permutations(names, len(template.parameters)) if template.parameters else ():
        yield template.command(dict(zip(template.parameters, values, strict=True)))


class Audit(NamedTuple):
    """The result for one manual; ``actions`` is None if the simulator's rules cannot be read."""

    heading: str
    actions: dict[str, ActionAudit] | None
    predictions: Predictions

    def described(self) -> Iterator[str | Table]:
        """The lines and tables to print."""
        yield self.heading
        if self.actions is None:
            yield "the rules of this environment cannot be read, so only predictions are audited"
        else:
            yield from _described(self.actions)
        yield self.predictions.table()

    def as_json(self) -> dict[str, Any]:
        actions, predictions = self.actions or {}, self.predictions
        shares = {kind: share(actions, kind) for kind in SHARES} if actions else {}
        return {
            "shares": shares | predictions.rates()._asdict(),
            "truths": {name: asdict(audit) for name, audit in actions.items()},
            "predictions": {n: predictions.rates(n)._asdict() for n in predictions.actions},
        }


@dataclass
class ActionAudit:
    """The audit of one action: statements of the manual and of the simulator.

    Each statement has a counterexample, or an empty text.

    Attributes:
        preconditions: of the manual; counterexample: a command that was possible without it.
        demands: of the simulator, if they ever failed; counterexample: a command that the manual
            called possible without it.
        effects: of the manual; counterexample: a use after which it did not hold.
        allowed: the number of commands that the simulator allowed.
        granted: the number of commands that the manual called possible.
    """

    preconditions: Statements = field(default_factory=dict)
    demands: Statements = field(default_factory=dict)
    effects: Statements = field(default_factory=dict)
    allowed: int = 0
    granted: int = 0

    def statements(self, kind: str) -> Statements:
        statements: Statements = getattr(self, SHARES[kind][0])
        return statements


# Share -> the statements that it counts, and the line that reports a wrong one.
SHARES = {
    "preconditions true": ("preconditions", "false: {}: '{}' was possible without it"),
    "demands found": ("demands", "missed: {}: '{}'"),
    "effects true": ("effects", "not an effect: {}: '{}'"),
}


def share(actions: Mapping[str, ActionAudit], kind: str) -> float:
    """The share of correct statements of a kind, over all actions."""
    against = [example for audit in actions.values() for example in audit.statements(kind).values()]
    return against.count("") / len(against) if against else 1.0


def _described(actions: Mapping[str, ActionAudit]) -> Iterator[str | Table]:
    rows = []
    for name, audit in actions.items():
        against = [list(audit.statements(kind).values()) for kind in SHARES]
        rows.append([Cell(name), *(Cell(f"{a.count('')}/{len(a)}") for a in against)])
    rows.append([Cell("all"), *(Cell(f"{share(actions, kind):.1%}") for kind in SHARES)])
    yield Table("", "", ["action", *SHARES], rows, total=True)
    for name, audit in actions.items():
        for kind, (_, words) in SHARES.items():
            for text, example in audit.statements(kind).items():
                if example:
                    yield f"{name}: {words.format(text, example)}"


class RuleComparison(Watcher):
    """Compares a manual with the simulator's rules during the exploration."""

    def __init__(self, env: Environment, manual: Manual, seed: int = 0) -> None:
        """``seed`` decides which commands are compared."""
        self.env, self.manual = env, manual
        self.readable = True
        self._actions: dict[str, ActionAudit] = {}
        self._templates = [CommandTemplate(syntax) for syntax in env.command_templates()]
        self._rng = Random(f"{seed}/states")
        self._count = 0
        self._before: Belief | None = None

    def before(self, explorer: Explorer, action: str) -> None:
        """Compare all commands of the current state, once every ``EVERY`` commands."""
        self._before = self.env.true_belief(explorer.game.facts()) if self.readable else None
        self.readable = self._before is not None
        self._count += 1
        if self._before is None or self._count % EVERY:
            return
        commands = self._commands(self._before)
        demanded = explorer.game.demands(commands) or []
        for command, parts in zip(commands, demanded, strict=False):
            if parts is not None:
                self._judge(command, parts, self._before, explorer.game.facts())

    def after(self, explorer: Explorer, action: str, worked: bool) -> None:
        """Compare the effects of an accepted command."""
        after = self.env.true_belief(explorer.game.facts()) if self.readable and worked else None
        if after is None or self._before is None:
            return
        if matched := match_action(self.manual, action):
            rule, names = matched
            audit = self._actions.setdefault(rule.name, ActionAudit())
            for effect in rule.outcomes:
                wrong = self._holds(effect, after, names) is False
                _note(audit.effects, str(effect), action if wrong else "")

    def result(self) -> dict[str, ActionAudit] | None:
        """The audit by action; None if the simulator's rules cannot be read."""
        if not self.readable:
            return None
        for audit in self._actions.values():
            # A manual that calls no use possible implies no demand either.
            if audit.allowed and not audit.granted:
                audit.demands = dict.fromkeys(audit.demands, "the manual never calls it possible")
        return {name: a for name, a in self._actions.items() if a.allowed or a.demands}

    def _commands(self, belief: Belief) -> list[str]:
        """Commands about things within reach, and some about any thing."""
        near, names, rng = names_at_hand(belief), all_names(belief), self._rng
        commands: list[str] = []
        for template in self._templates:
            size = len(template.parameters)
            local = list(permutations(near, size))
            wide = [tuple(rng.sample(names, size)) for _ in range(SAMPLED // 3)] if size else []
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
        """Evaluate a predicate; unlike in a belief, a thing may be in several states at once."""
        if predicate.name == "state":
            thing, state = predicate.bind(names).arguments
            return (state in belief["flags"].get(thing, "").split(", ")) == predicate.positive
        return evaluate(predicate, belief, self.manual.facts, names)


def _note(statements: Statements, text: str, against: str) -> None:
    """Add a tested statement; its first counterexample stays."""
    statements[text] = statements.get(text) or against


class AuditRates(NamedTuple):
    """The shares of correct predictions (1.0 if there were none) and of open ones."""

    possible: float
    impossible: float
    open: float


class Predictions(Watcher):
    """Compares the manual's prediction for every command with its outcome, by action."""

    def __init__(self, manual: Manual, only: Collection[str] = ()) -> None:
        """``only`` names the actions that count; all if empty."""
        self.manual, self.only = manual, only
        self.counts: Counter[tuple[str, Truth, bool]] = Counter()

    def after(self, explorer: Explorer, action: str, worked: bool) -> None:
        # The explorer's belief is still the one before the command.
        matched = match_action(self.manual, action)
        name = matched[0].name if matched else action.split()[0]
        if not self.only or name in self.only:
            predicted = can_work(self.manual, action, explorer.belief) if matched else None
            self.counts[name, predicted, worked] += 1

    @property
    def actions(self) -> list[str]:
        return list(dict.fromkeys(name for name, _, _ in self.counts))

    def outcomes(self, action: str = "") -> list[int]:
        """Counts of worked and failed uses: called possible, impossible, neither."""
        totals: Counter[tuple[Truth, bool]] = Counter()
        for (name, predicted, worked), number in self.counts.items():
            if action in ("", name):
                totals[predicted, worked] += number
        return [totals[truth, did] for truth in (True, False, None) for did in (True, False)]

    def rates(self, action: str = "") -> AuditRates:
        """The shares of correct predictions and of open ones."""
        worked, failed, mistaken, rejected, *undecided = cells = self.outcomes(action)
        return AuditRates(
            worked / (worked + failed) if worked + failed else 1.0,
            rejected / (rejected + mistaken) if rejected + mistaken else 1.0,
            sum(undecided) / sum(cells) if sum(cells) else 0.0,
        )

    def table(self) -> Table:
        rows: list[Sequence[Cell]] = []
        for name in (*self.actions, ""):
            worked, failed, mistaken, rejected, *undecided = self.outcomes(name)
            rates = self.rates(name)
            rows.append([
                Cell(name or "all"),
                count(worked + failed), _rate(rates.possible, worked + failed),
                count(mistaken + rejected), _rate(rates.impossible, mistaken + rejected),
                Cell(f"{sum(undecided)}", f"({rates.open:.1%})"),
            ])  # fmt: skip
        heads = ["action", "called possible", "worked", "called impossible", "rejected",
                 "left open"]  # fmt: skip
        return Table("", "", heads, rows, total=True)


def _rate(rate: float, of: int) -> Cell:
    return Cell(f"{rate:.2%}" if of else NONE)
