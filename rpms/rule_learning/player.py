"""An exploring player that needs no rule: it tries what is at hand, and what it is unsure of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from random import Random

from rpms.envs.base import Environment, LiveGame, Task
from rpms.rule_learning.evidence import Experience, Use
from rpms.rule_learning.induction import Hypotheses, Hypothesis
from rpms.rule_learning.templates import Template
from rpms.vocabulary.belief import Belief, in_order

# How many candidates are weighed before one command is chosen.
WEIGHED = 24
# How often a pair of kinds is tried although each of them was refused with others.
DISTRUST = 0.3


class Watcher:
    """Somebody who looks over the player's shoulder and does not interfere."""

    def before(self, player: Player, action: str) -> None:
        """A command is about to be given."""

    def after(self, player: Player, action: str, worked: bool) -> None:
        """It was answered; the player's belief is still the one from before."""


class Player:
    """Plays one home, command by command, and writes every answer down."""

    def __init__(
        self,
        env: Environment,
        game: LiveGame,
        experience: Experience,
        rng: Random,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        """Nothing is played yet."""
        self.watchers = watchers
        self.env = env
        self.game = game
        self.experience = experience
        self.rng = rng
        self.left = 0

    def begin(self, task: Task, steps: int) -> None:
        """Start a home with a budget of commands."""
        self.task, self.left = task, steps
        self._reset()

    def _reset(self) -> None:
        self.belief = self.env.first_belief(self.game.reset(self.task))
        self.now = self.experience.look_at(self.belief)

    def end(self) -> None:
        """Nothing more is played here."""
        self.experience.note_spots(self.belief)

    def say(self, action: str) -> bool:
        """Play a command and note what came of it; True if it was accepted."""
        self.left -= 1
        for watcher in self.watchers:
            watcher.before(self, action)
        outcome = self.game.step(action)
        answer = outcome.observation
        worked = not self.env.failed(answer)
        done = self.env.carried_out(action, self.belief, answer)
        after = self.env.update_belief(self.belief, action, answer)
        if done:
            self.experience.note(done, self.now, after, worked)
            for watcher in self.watchers:
                watcher.after(self, done, worked)
        if worked or after != self.belief:
            self.belief, self.now = after, self.experience.look_at(after)
        if outcome.done:
            # A home that was won is no longer played: begin it again, it is still the same home.
            self.end()
            self._reset()
        return worked


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


def draw_names(template: Template, belief: Belief, rng: Random) -> Mapping[str, str] | None:
    """Things for a command: mostly such as are at hand, else any; None if nothing has a name."""
    near, all_ = names_at_hand(belief), names_known(belief)
    if not all_:
        return {} if not template.parameters else None
    drawn: dict[str, str] = {}
    for parameter in template.parameters:
        pool = near if near and rng.random() < 0.7 else all_
        drawn[parameter] = rng.choice(pool)
    return drawn


class Curiosity:
    """Chooses the command whose answer says most, and otherwise walks on."""

    def __init__(self, player: Player) -> None:
        """The rules are induced again whenever ``learn`` is called."""
        self.player = player
        self.learn()

    def learn(self) -> None:
        """Take up what has been seen since."""
        self.rules = Hypotheses(self.player.experience)
        known = self.rules.rules.values()
        matter = {
            rule.template.atoms[one.atom].name for rule in known for one in (*rule.kept, *rule.ways)
        }
        self.masks: dict[str, int] = {}
        self.worked: set[tuple[str, ...]] = set()
        self.seen: Counter[tuple[str | int, ...]] = Counter()
        for syntax, evidence in self.player.experience.evidence.items():
            atoms = enumerate(evidence.template.atoms)
            self.masks[syntax] = sum(1 << n for n, atom in atoms if atom.name in matter)
            for use, count in evidence.uses.items():
                self._count(syntax, use, count)
            self.worked |= {(syntax, *use.kinds) for use in evidence.accepted}

    def _count(self, syntax: str, use: Use, count: int = 1) -> None:
        pattern = (syntax, use.true & self.masks[syntax])
        self.seen[pattern] += count
        self.seen[*pattern, *use.kinds] += count

    def test_here(self) -> None:
        """Try what is open at this very spot: one command of each template."""
        player = self.player
        belief, near = player.belief, names_at_hand(player.belief)
        templates = [one for one in player.experience.templates if one.parameters]
        player.rng.shuffle(templates)
        for template in templates:
            best = max(self._open_questions(template, near), default=None)
            if best is None:
                continue
            names = dict(zip(template.parameters, best[-1], strict=True))
            masks = player.now.masks(template, names)
            self._count(template.syntax, Use(*masks, template.kinds(names), False))
            player.say(template.command(names))
            if player.left <= 0 or player.belief is not belief:
                return

    def _open_questions(
        self, template: Template, near: Sequence[str]
    ) -> Iterator[tuple[float, float, tuple[str, ...]]]:
        """Bindings that no rule judges and that were not tried in such a situation.

        Where nothing is known of an action, others may be like it: half the time what comes closest
        to the conditions of another one goes first, else what was tried least.
        """
        player, count = self.player, len(template.parameters)
        bindings = list(permutations(near, count))
        rule = self.rules.rules.get(template.syntax)
        others = [r for r in self.rules.rules.values() if len(r.template.parameters) == count]
        by_likeness = player.rng.random() < 0.5
        for values in player.rng.sample(bindings, min(len(bindings), WEIGHED)):
            names = dict(zip(template.parameters, values, strict=True))
            use = Use(*player.now.masks(template, names), template.kinds(names), False)
            pattern = (template.syntax, use.true & self.masks[template.syntax])
            if self.seen[*pattern, *use.kinds] or (rule and not self._open(rule, use)):
                continue
            if by_likeness and not rule:
                rank = max((_likeness(other, use) for other in others), default=0.0)
            else:
                rank = -float(self.seen[pattern])
            yield rank, player.rng.random(), values

    def _open(self, rule: Hypothesis, use: Use) -> bool:
        """A rule leaves it open; or only its kinds speak against it, which may belong together."""
        said = rule.allows(use)
        if said is None:
            return True
        if said:
            # Where no table speaks against a kind, it may only never have been tried.
            return (rule.template.syntax, *use.kinds) not in self.worked
        by_kind = len(use.kinds) > 1 and all(use.grants(one) for one in rule.kept)
        return said is False and by_kind and self.player.rng.random() < DISTRUST

    def walk(self) -> None:
        """Do something that should work, preferably something that changes the state."""
        player, rng = self.player, self.player.rng
        templates = player.experience.templates
        changing = [t for t in templates if (r := self.rules.rules.get(t.syntax)) and r.effects]
        pool = changing if changing and rng.random() < 0.8 else templates
        for _ in range(4):
            template = rng.choice(pool)
            for _ in range(WEIGHED):
                names = draw_names(template, player.belief, rng)
                if names is None:
                    break
                unseen = any(name not in player.belief["searched"] for name in names.values())
                likely = unseen or rng.random() < 0.5
                if likely and self.rules.judge(template, names, player.now):
                    player.say(template.command(names))
                    return
        self.try_anything()

    def try_anything(self) -> None:
        """A command drawn blindly: it may contradict what everybody is sure of."""
        template = self.player.rng.choice(self.player.experience.templates)
        names = draw_names(template, self.player.belief, self.player.rng)
        if names is not None:
            self.player.say(template.command(names))

    def look(self) -> None:
        """Commands about nothing in particular cost little and may show something."""
        plain = [one for one in self.player.experience.templates if not one.parameters]
        if plain:
            self.player.say(self.player.rng.choice(plain).syntax)


def _likeness(rule: Hypothesis, use: Use) -> float:
    """How much of what another action needs holds here, its parameters taken in their order."""
    if not rule.kept:
        return 0.0
    return sum(use.grants(one) for one in rule.kept) / len(rule.kept)
