"""A manual against the simulator's own rules, where those can be read.

In states of games that it was not learned from, commands are put together from everything at hand.
A precondition is *true* if it was never false where the simulator allows the command. A demand of
the simulator is *found* if it was never false where the manual, asked by somebody who knows
everything, calls the command possible. An effect is true if it held after every use, and found if
the manual has what every use changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from random import Random

from rpms.envs.base import Environment
from rpms.rule_learning.exploring import Player, Watcher, names_at_hand, names_known
from rpms.rule_learning.induction import Hypothesis, changes, written_effects
from rpms.rule_learning.templates import CERTAIN
from rpms.rule_learning.transitions import Evidence, Experience, Snapshot
from rpms.rules.audit import text_of
from rpms.rules.manual import Manual
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.rules.semantics import can_work, match_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import Truth

ASKED = 30
"""Commands of each action that are looked at in one state."""
EVERY = 15
"""Commands played between two states that are looked at."""


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


@dataclass
class Truths:
    """Every action, and the sums."""

    actions: dict[str, ActionAudit]

    @property
    def precision(self) -> float:
        """The share of preconditions that are true."""
        listed = sum(len(one.preconditions) for one in self.actions.values())
        return 1 - sum(len(one.false) for one in self.actions.values()) / listed if listed else 1.0

    @property
    def recall(self) -> float:
        """The share of the simulator's demands that the preconditions imply."""
        listed = sum(len(one.demands) for one in self.actions.values())
        return 1 - sum(len(one.missed) for one in self.actions.values()) / listed if listed else 1.0

    @property
    def effect_precision(self) -> float:
        """The share of effects that are true."""
        listed = sum(len(one.effects) for one in self.actions.values())
        wrong = sum(len(one.wrong_effects) for one in self.actions.values())
        return 1 - wrong / listed if listed else 1.0

    @property
    def effect_recall(self) -> float:
        """The share of true effects that the manual has, of those that a belief can show."""
        shown = [e for one in self.actions.values() for e in {*one.true_effects} - one.hidden]
        listed = len(shown)
        missed = sum(len({*one.missed_effects} - one.hidden) for one in self.actions.values())
        return 1 - missed / listed if listed else 1.0


class Compared(Watcher):
    """Holds a manual against the simulator's rules while somebody plays."""

    def __init__(self, env: Environment, manual: Manual, seed: int = 0) -> None:
        """``seed`` decides which commands are looked at."""
        self.env = env
        self.manual = manual
        self.readable = True
        self._found: dict[str, ActionAudit] = {}
        self._seen = Experience(env.command_templates())
        self._seen.doubts = True
        self._rng = Random(f"{seed}/states")
        self._count = 0
        self._before: Belief | None = None
        self._states = _States()
        self._shown: set[str] = set()

    def before(self, player: Player, action: str) -> None:
        """Every now and then, look at all that could be done here."""
        self._before = self.env.true_belief(player.game.facts()) if self.readable else None
        self._count += 1
        if self._before is None or self._count % EVERY:
            self.readable = self._before is not None
            return
        commands = _commands(self._seen, self._before, self._rng)
        for command, parts in zip(
            commands, self.env.demands(player.game, commands) or [], strict=False
        ):
            if parts is not None:
                _judge(self.manual, command, parts, self._before, self._found)

    def after(self, player: Player, action: str, worked: bool) -> None:
        """What did it change?"""
        after = self.env.true_belief(player.game.facts()) if self.readable and worked else None
        self._shown |= set(player.belief["flags"].values())
        if after is None or self._before is None:
            return
        _effects(self.manual, action, after, self._found)
        self._states.note(action, self._before, after, self._seen)
        # Things may be in several states at once, which atoms cannot say.
        before = Belief(**{**self._before, "flags": {}})
        after = Belief(**{**after, "flags": {}})
        self._seen.note(action, Snapshot(before, CERTAIN), after, True)

    def result(self) -> Truths | None:
        """Everything found; None where the simulator's rules cannot be read."""
        if not self.readable:
            return None
        found = self._found
        for syntax, evidence in self._seen.evidence.items():
            matched = match_action(self.manual, syntax)
            name = matched[0].name if matched else evidence.template.name
            one = found.setdefault(name, ActionAudit())
            states = self._states.gained(syntax)
            one.true_effects = [*true_effects(evidence), *(_state(p, s) for p, s in states)]
            one.hidden = {_state(p, s) for p, s in states if s not in self._shown}
            one.missed_effects = [e for e in one.true_effects if e not in one.effects]
            # Where the manual calls nothing possible it implies nothing either.
            if one.allowed and not one.granted:
                one.missed |= dict.fromkeys(one.demands, "the manual never calls it possible")
        return Truths({name: one for name, one in found.items() if one.allowed or one.demands})


def true_effects(evidence: Evidence) -> list[str]:
    """What every use truly changed; a thing may be in several states, each is an effect."""
    found = Hypothesis(evidence.template, effects=changes(evidence))
    return [text_of(evidence.template.predicate(one)) for one in written_effects(found)]


class _States:
    """Which states every use of an action brought about in what it names."""

    def __init__(self) -> None:
        self._common: dict[str, set[tuple[str, str]]] = {}
        self._turned: set[tuple[str, str, str]] = set()

    def note(self, action: str, before: Belief, after: Belief, seen: Experience) -> None:
        """One more use."""
        if (found := seen.match(action)) is None:
            return
        syntax, then = found[0].syntax, set()
        for parameter, name in found[1].items():
            had = set(before["flags"].get(name, "").split(", "))
            has = set(after["flags"].get(name, "").split(", ")) - {""}
            then |= {(parameter, state) for state in has}
            self._turned |= {(syntax, parameter, state) for state in has - had}
        self._common[syntax] = self._common.get(syntax, then) & then

    def gained(self, syntax: str) -> list[tuple[str, str]]:
        """In every use, and anew in at least one."""
        common = self._common.get(syntax, set())
        return sorted(one for one in common if (syntax, *one) in self._turned)


def _state(parameter: str, state: str) -> str:
    return f"state({parameter}, {state})"


def _commands(experience: Experience, belief: Belief, rng: Random) -> list[str]:
    """Commands about what is at hand, and some about anything."""
    near, known = names_at_hand(belief), names_known(belief)
    found: list[str] = []
    for template in experience.templates:
        count = len(template.parameters)
        local = list(permutations(near, count))
        wide = [tuple(rng.sample(known, count)) for _ in range(ASKED // 3)] if count else []
        for values in [*rng.sample(local, min(len(local), ASKED)), *wide]:
            found.append(template.command(dict(zip(template.parameters, values, strict=True))))
    return found


def _judge(
    manual: Manual,
    command: str,
    demanded: Mapping[str, bool],
    belief: Belief,
    found: dict[str, ActionAudit],
) -> None:
    matched = match_action(manual, command)
    one = found.setdefault(matched[0].name if matched else command.split()[0], ActionAudit())
    one.demands |= {text for text, holds in demanded.items() if not holds}
    allowed = all(demanded.values())
    one.allowed += allowed
    if matched is None:
        return
    rule, names = matched
    one.preconditions = list(rule.preconditions)
    one.effects = list(rule.effects)
    if allowed:
        for text in rule.preconditions:
            if text not in one.false and _holds(text, belief, manual, names) is False:
                one.false[text] = command
    if can_work(manual, command, belief):
        one.granted += 1
        for text, holds in demanded.items():
            if not holds:
                one.missed.setdefault(text, command)


def _holds(text: str, belief: Belief, manual: Manual, names: Mapping[str, str]) -> Truth:
    """Like any predicate, but things may be in several states at once."""
    predicate = parse_predicate(text)
    if predicate.name == "state":
        thing, state = (names.get(one, one) for one in predicate.arguments)
        return (state in belief["flags"].get(thing, "").split(", ")) == predicate.positive
    return evaluate(predicate, belief, manual.world, names)


def _effects(manual: Manual, action: str, after: Belief, found: dict[str, ActionAudit]) -> None:
    matched = match_action(manual, action)
    if matched is None:
        return
    rule, names = matched
    one = found.setdefault(rule.name, ActionAudit())
    for text in rule.effects:
        if _holds(text, after, manual, names) is False:
            one.wrong_effects.setdefault(text, action)
