"""How true a manual is, and how often it is right, in games that it was not learned from.

The player is the one that explores: it knows no manual and learns as it goes, draws some commands
blindly, means others to work and sets up situations in which just one thing is wrong. A manual is
asked before each command, with the player's belief alone: its *predictions*.

Where the simulator's own rules can be read it is also held against those, with commands put
together from everything at hand. A precondition is *true* if it was never false where the simulator
allows the command. A demand of the simulator is *found* if it was never false where the manual,
asked by somebody who knows everything, calls the command possible. An effect is true if it held
after every use, and found if the manual has what every use changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rpms.envs.base import Environment
from rpms.evals.tables import NONE, Cell, Table, count
from rpms.nodes.manual import load_manual
from rpms.rule_learning.evidence import Experience, Snapshot
from rpms.rule_learning.explore import explore
from rpms.rule_learning.induction import changes, writable
from rpms.rule_learning.player import Player, Watcher, names_at_hand, names_known
from rpms.rule_learning.templates import CERTAIN
from rpms.rules.manual import Manual
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.semantics import can_work, match_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.naming import Truth

STEPS = 400
"""Commands per game."""
SAMPLED = 30
"""Commands of each action that are looked at in one state."""
EVERY = 15
"""Commands played between two states that are looked at."""
SHARES = ("preconditions true", "demands found", "effects true", "effects found")


@dataclass(frozen=True)
class Trial:
    """What a manual is judged on.

    Attributes:
        env: the world.
        split: the list of games; none that was learned from.
        games: how many of them.
        seed: of the play.
        only: names of the actions that count; all if empty.
    """

    env: Environment
    split: str
    games: int
    seed: int = 0
    only: tuple[str, ...] = ()


def audit_manual(trial: Trial, folder: Path | None) -> Audit:
    """Let a manual watch the play; None: the world's own."""
    env = trial.env
    manual = load_manual(env.name, str(folder or ""))
    comparison, predictions = Comparison(env, manual, trial.seed), Predictions(manual, trial.only)
    tasks = env.tasks(trial.split, trial.games)
    explore(env, tasks, trial.seed, steps=STEPS, watchers=[comparison, predictions])
    if trial.only and not predictions.actions:
        names = ", ".join(trial.only)
        raise RpmsError(f"--only {names}: nothing of that name was tried; leave it out to see all")
    heading = f"{folder or env.rules} in {trial.games} games of {trial.split}"
    return Audit(heading, comparison.result(), predictions)


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


def _described(actions: Mapping[str, ActionAudit]) -> Iterator[str | Table]:
    rows = [
        [Cell(name), *(Cell(f"{len(a) - len(b)}/{len(a)}") for a, b in audit.counts().values())]
        for name, audit in actions.items()
    ]
    yield Table("", "", "", ["action", *SHARES], rows)
    for name, audit in actions.items():
        for text, example in audit.false.items():
            yield f"{name}: false: {text}: '{example}' was possible without it"
        for text, example in audit.missed.items():
            yield f"{name}: missed: {text}: '{example}'"
        for text, example in audit.wrong_effects.items():
            yield f"{name}: not an effect: {text}: '{example}'"
        for text in audit.missed_effects:
            why = ", which no belief shows" if text in audit.hidden else ""
            yield f"{name}: missed effect: {text}{why}"
    shares = [share(actions, kind) for kind in SHARES]
    yield "preconditions: precision {:.3f}, recall {:.3f}".format(*shares[:2])
    yield "effects: precision {:.3f}, recall {:.3f}".format(*shares[2:])


@dataclass
class ActionAudit:
    """One action: what the manual says of it, and what is so.

    Attributes:
        false: preconditions that failed where the command was possible, with an example.
        preconditions: all that the manual has.
        missed: demands that failed where the manual called the command possible, with an example.
        demands: all that ever failed, the rest being no demands at all.
        wrong_effects: effects that did not hold after a use.
        effects: all that the manual has.
        missed_effects: changes common to all uses that the manual does not have.
        true_effects: all such changes.
        hidden: those of them that no belief of the player shows, so that nobody could learn them.
        allowed: commands the simulator allowed.
        granted: commands the manual called possible.
    """

    preconditions: list[str] = field(default_factory=list)
    false: dict[str, str] = field(default_factory=dict)
    demands: set[str] = field(default_factory=set)
    missed: dict[str, str] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    wrong_effects: dict[str, str] = field(default_factory=dict)
    true_effects: list[str] = field(default_factory=list)
    missed_effects: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    allowed: int = 0
    granted: int = 0

    def counts(self) -> dict[str, tuple[Collection[str], Collection[str]]]:
        """By kind of share: everything, and what of it is wrong or missed."""
        pairs = (
            (self.preconditions, self.false),
            (self.demands, self.missed),
            (self.effects, self.wrong_effects),
            (self.true_effects, self.missed_effects),
        )
        return dict(zip(SHARES, pairs, strict=True))


def share(actions: Mapping[str, ActionAudit], kind: str) -> float:
    """Of all actions' statements of a kind, how many are right; what nobody can see is left out."""
    listed = wrong = 0
    for audit in actions.values():
        hidden = audit.hidden if kind == "effects found" else set()
        everything, faults = audit.counts()[kind]
        listed += len({*everything} - hidden)
        wrong += len({*faults} - hidden)
    return 1 - wrong / listed if listed else 1.0


class Comparison(Watcher):
    """Holds a manual against the simulator's rules while somebody plays."""

    def __init__(self, env: Environment, manual: Manual, seed: int = 0) -> None:
        """``seed`` decides which commands are looked at."""
        self.env, self.manual = env, manual
        self.readable = True
        self._actions: dict[str, ActionAudit] = {}
        self._seen = Experience(env.command_templates())
        self._seen.doubts = True
        self._rng = Random(f"{seed}/states")
        self._count = 0
        self._before: Belief | None = None
        # Which states every use of a command left its things in, and which of them anew.
        self._common: dict[str, set[tuple[str, str]]] = {}
        self._turned: set[tuple[str, str, str]] = set()
        self._shown: set[str] = set()

    def before(self, player: Player, action: str) -> None:
        """Every now and then, look at all that could be done here."""
        self._before = self.env.true_belief(player.game.facts()) if self.readable else None
        self._count += 1
        if self._before is None or self._count % EVERY:
            self.readable = self._before is not None
            return
        commands = self._commands(self._before)
        demanded = self.env.demands(player.game, commands) or []
        for command, parts in zip(commands, demanded, strict=False):
            if parts is not None:
                self._judge(command, parts, self._before)

    def after(self, player: Player, action: str, worked: bool) -> None:
        """The effects of what was accepted."""
        after = self.env.true_belief(player.game.facts()) if self.readable and worked else None
        self._shown |= set(player.belief["flags"].values())
        if after is None or self._before is None:
            return
        if matched := match_action(self.manual, action):
            rule, names = matched
            audit = self._actions.setdefault(rule.name, ActionAudit())
            for text in rule.effects:
                if self._holds(text, after, names) is False:
                    audit.wrong_effects.setdefault(text, action)
        self._note_states(action, self._before, after)
        # Things may be in several states at once, which atoms cannot say.
        before = Belief(**{**self._before, "flags": {}})
        after = Belief(**{**after, "flags": {}})
        self._seen.note(action, Snapshot(before, CERTAIN), after, True)

    def result(self) -> dict[str, ActionAudit] | None:
        """Everything found, by action; None where the simulator's rules cannot be read."""
        if not self.readable:
            return None
        for syntax, evidence in self._seen.evidence.items():
            template = evidence.template
            matched = match_action(self.manual, syntax)
            name = matched[0].name if matched else template.name
            audit = self._actions.setdefault(name, ActionAudit())
            lasting = writable(template, changes(evidence))
            gained = {
                f"state({parameter}, {state})": state
                for parameter, state in sorted(self._common.get(syntax, ()))
                if (syntax, parameter, state) in self._turned
            }
            audit.true_effects = [*(str(template.predicate(one)) for one in lasting), *gained]
            audit.hidden = {text for text, state in gained.items() if state not in self._shown}
            audit.missed_effects = [e for e in audit.true_effects if e not in audit.effects]
            # Where the manual calls nothing possible it implies nothing either.
            if audit.allowed and not audit.granted:
                audit.missed |= dict.fromkeys(
                    sorted(audit.demands), "the manual never calls it possible"
                )
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
                names = dict(zip(template.parameters, values, strict=True))
                commands.append(template.command(names))
        return commands

    def _judge(self, command: str, demanded: Mapping[str, bool], belief: Belief) -> None:
        matched = match_action(self.manual, command)
        name = matched[0].name if matched else command.split()[0]
        audit = self._actions.setdefault(name, ActionAudit())
        failing = [text for text, holds in demanded.items() if not holds]
        audit.demands.update(failing)
        audit.allowed += not failing
        if matched is None:
            return
        rule, names = matched
        audit.preconditions, audit.effects = list(rule.preconditions), list(rule.effects)
        if not failing:
            for text in rule.preconditions:
                if text not in audit.false and self._holds(text, belief, names) is False:
                    audit.false[text] = command
        if can_work(self.manual, command, belief):
            audit.granted += 1
            for text in failing:
                audit.missed.setdefault(text, command)

    def _holds(self, text: str, belief: Belief, names: Mapping[str, str]) -> Truth:
        """Like any predicate, but things may be in several states at once."""
        predicate = parse_predicate(text)
        if predicate.name == "state":
            thing, state = (names.get(name, name) for name in predicate.arguments)
            return (state in belief["flags"].get(thing, "").split(", ")) == predicate.positive
        return evaluate(predicate, belief, self.manual.world, names)

    def _note_states(self, action: str, before: Belief, after: Belief) -> None:
        if (matched := self._seen.match(action)) is None:
            return
        syntax, states = matched[0].syntax, set()
        for parameter, name in matched[1].items():
            had = set(before["flags"].get(name, "").split(", "))
            has = set(after["flags"].get(name, "").split(", ")) - {""}
            states |= {(parameter, state) for state in has}
            self._turned |= {(syntax, parameter, state) for state in has - had}
        self._common[syntax] = self._common.get(syntax, states) & states


class Rates(NamedTuple):
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

    def after(self, player: Player, action: str, worked: bool) -> None:
        """The belief is still the one from before the command."""
        matched = match_action(self.manual, action)
        name = matched[0].name if matched else action.split()[0]
        if not self.only or name in self.only:
            predicted = can_work(self.manual, action, player.belief) if matched else None
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
        return [totals[said, did] for said in (True, False, None) for did in (True, False)]

    def rates(self, action: str = "") -> Rates:
        """Of what was called possible or impossible, how much was so; and what was left open."""
        worked, failed, mistaken, refused, lucky, vain = cells = self.outcomes(action)
        return Rates(
            worked / (worked + failed) if worked + failed else 1.0,
            refused / (refused + mistaken) if refused + mistaken else 1.0,
            (lucky + vain) / sum(cells) if sum(cells) else 0.0,
        )

    def table(self) -> Table:
        """A row for each action, and one for all."""
        rows: list[Sequence[Cell]] = []
        for name in (*self.actions, ""):
            worked, failed, mistaken, refused, lucky, vain = self.outcomes(name)
            possible, impossible, left_open = self.rates(name)
            rows.append([
                Cell(name or "all"),
                count(worked + failed), _rate(possible, worked + failed),
                count(mistaken + refused), _rate(impossible, mistaken + refused),
                Cell(f"{lucky + vain}", f"({left_open:.1%})"), count(lucky),
            ])  # fmt: skip
        heads = ["action", "called possible", "worked", "called impossible", "refused", "left open",
                 "of which worked"]  # fmt: skip
        return Table("", "", "", heads, rows, total=True)


def _rate(rate: float, of: int) -> Cell:
    return Cell(f"{rate:.2%}" if of else NONE)
