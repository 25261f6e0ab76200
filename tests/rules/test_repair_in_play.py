"""Repair advice in beliefs that are reached in play: of the right kind, and safe to follow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.guard.repair import BLANK, Repair, find_repair
from rpms.rules import Manual, forbidden_by, match_action
from rpms.rules.check import check_manual
from rpms.rules.predicates import Predicate, evaluate
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import refers_to
from tests.envs.playing import believing

SMALL = "rpms.commands.world_template.world:WORLD"
# StaticFacts, split that may be read, tasks and steps: the engines are not equally fast.
PLAYED = [("alfworld", "generated_seen", 4, 40), ("scienceworld", "train", 2, 40),
          ("telecom", "train", 4, 40), (SMALL, "practice", 4, 30)]  # fmt: skip


class Case(NamedTuple):
    manual: Manual
    action: str
    belief: Belief
    goal: GoalSpec
    repair: Repair


def names_known(belief: Belief, goal: GoalSpec) -> list[str]:
    named = [*belief["places"], *belief["holding"], *belief["last_seen"], *belief["visible"]]
    named += [*belief["last_seen"].values(), *belief["containers"], *belief["flags"]]
    return sorted({*named, goal["object"], goal["destination"], "100", "7"} - {""})


def cases(env: str, split: str, count: int, steps: int) -> Iterator[Case]:
    """Random play; at each step, the repair of one action of every rule."""
    world, manual, chance = get_environment(env), load_manual(env), random.Random(40)
    for task in chance.sample(world.tasks(split, 60), count):
        game, goal = world.open_game(), world.parse_goal(task["goal"])
        belief = world.first_belief(game.reset(task))
        for _ in range(steps):
            names = names_known(belief, goal)
            actions = [
                rule.syntax.format(**{name: chance.choice(names) for name in rule.parameters})
                for rule in manual.actions
            ]
            for action in actions:
                if (repair := find_repair(manual, action, belief, goal)) is not None:
                    yield Case(manual, action, belief, goal, repair)
            # Where nothing can be done at random, what is near is looked at.
            likely = [a for a in actions if find_repair(manual, a, belief) is None] or actions
            action = chance.choice(likely)
            outcome = game.step(action)
            if outcome.done:
                break
            belief = world.update_belief(belief, action, outcome.observation)
        game.close()


def needs(manual: Manual, action: str) -> list[Predicate]:
    rule, names = match_action(manual, action) or (None, {})
    return [need.bind(names) for need in rule.needs] if rule else []


def unfounded(case: Case) -> list[str]:
    """Names of an advice that nothing known supports.

    What supports one: a precondition about that parameter holds of it; it is a place and the
    parameter stands for one; or the effect that is wanted is about it.
    """
    manual, belief = case.manual, case.belief
    later = [case.action]
    wrong = []
    for action in reversed(case.repair.actions):
        rule, names = match_action(manual, action) or (None, {})
        assert rule is not None
        wanted = [{*need.arguments} for step in later for need in needs(manual, step)]
        wanted += [{thing} for thing in belief["holding"]] + [{p} for p in belief["containers"]]
        wanted += [{place} for place in belief["last_seen"].values()]
        same = match_action(manual, case.action)
        if case.repair.kind == "instead" and same:  # an action to the same end has its names
            wanted += [{*same[1].values()} | {*belief["last_seen"].values()}]
        for parameter, value in names.items():
            about = [need for need in rule.needs if parameter in need.arguments]
            held = any(
                need.positive
                and need.name != "at_most"
                and evaluate(need, belief, manual.facts, names) is True
                for need in about
            )
            a_place = parameter in rule.places and value in belief["places"]
            bound = any(
                parameter in effect.arguments and any(value in facts for facts in wanted)
                for effect in rule.outcomes
            )
            if BLANK not in value and not (held or a_place or bound):
                wrong.append(f"{case.action}: {action}: {parameter}={value}")
        later.append(action)
    return wrong


@pytest.mark.engine
@pytest.mark.parametrize(("env", "split", "count", "steps"), PLAYED)
def test_advice_in_play(env: str, split: str, count: int, steps: int) -> None:
    """Names of the right kind, nothing forbidden, and the goal's object is not let go of."""
    kinds = Counter[str]()
    for case in cases(env, split, count, steps):
        kinds[case.repair.kind] += 1
        assert unfounded(case) == []
        for action in case.repair.actions:
            assert not forbidden_by(case.manual, action, case.goal)
            rule, names = match_action(case.manual, action) or (None, {})
            lost = [
                effect.bind(names).arguments[0]
                for effect in (rule.outcomes if rule else ())
                if not effect.positive and effect.name == "holding"
            ]
            assert not any(refers_to(name, case.goal["object"]) for name in lost), case
    assert kinds["first"] + kinds["done"] + kinds["instead"] > 10, kinds


# A vending machine: tools with values of several kinds, which no place or hand tells apart.
MACHINE = """
things: [door, credit, price]
alternatives: [[opened, shut], [none, some], [stocked, sold out], [high, low]]
actions:
- {id: M-OPEN, name: open_door, syntax: open_door, preconditions: ["state(door, shut)"],
   effects: ["state(door, opened)"]}
- {id: M-RESTOCK, name: restock, syntax: "restock slot={slot}",
   preconditions: ["state(door, opened)"],
   effects: ["state(slot, stocked)", "state(door, shut)"]}
- {id: M-COIN, name: insert, syntax: "insert coin={coin}", preconditions: ["state(door, shut)"],
   effects: ["state(credit, some)"]}
- {id: M-BUY, name: buy, syntax: "buy slot={slot}",
   preconditions: ["state(slot, stocked)", "state(credit, some)"],
   effects: ["state(credit, none)", "state(slot, sold out)"]}
- {id: M-REFUND, name: refund, syntax: refund, preconditions: ["state(credit, some)"],
   effects: ["state(credit, none)"]}
- {id: M-SERVICE, name: service, syntax: service, preconditions: ["state(credit, none)"]}
- {id: M-LIMIT, name: discount, syntax: "discount percent={percent}",
   preconditions: ["at_most(percent, 200)"], effects: ["state(price, low)"]}
- {id: M-SALE, name: sale, syntax: sale of price, preconditions: ["state(price, low)"]}
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Manual:
    folder = tmp_path_factory.mktemp("machine")
    (folder / "environment.yaml").write_text(MACHINE)
    assert not check_manual(get_environment(SMALL).rules, over=folder)
    return load_manual(SMALL, str(folder))


OPEN = {"door": "opened", "credit": "none", "A1": "stocked", "A2": "sold out"}


@pytest.mark.parametrize(
    ("action", "flags", "words"),
    [
        # The coin is no slot: what is restocked stays open.
        ("insert coin=100", OPEN, "first: restock slot=<slot>"),
        # Buying something clears the credit too, but it has a name to choose.
        ("service", {**OPEN, "credit": "some"}, "first: refund"),
        ("service", {**OPEN, "credit": "some", "A1": "sold out"}, "first: refund"),
        # What is wanted names the slot.
        ("buy slot=A2", {**OPEN, "credit": "some"}, "first: restock slot=A2"),
        # A number that is small enough is not yet a percentage.
        ("sale of price", {"price": "high"}, "first: discount percent=<percent>"),
    ],
)
def test_values_of_one_kind_never_fill_a_blank_of_another(
    machine: Manual, action: str, flags: dict[str, str], words: str
) -> None:
    repair = find_repair(machine, action, believing(flags=flags))
    assert repair is not None and repair.words == words


GOAL = {"sentence": "", "type": "pick_heat_then_place_in_recep", "object": "mug", "state": "hot",
        "count": 1, "destination": "cabinet", "signature": ""}  # fmt: skip
HELD: dict[str, Any] = {
    "places": ["countertop 1", "cabinet 1"], "location": "countertop 1",
    "searched": ["countertop 1"], "last_seen": {"apple 1": "countertop 1"},
}  # fmt: skip


def test_nothing_is_said_rather_than_something_that_harms_the_goal() -> None:
    """The hand can be emptied; but what it holds is what the goal is about."""
    manual, action = load_manual("alfworld"), "take apple 1 from countertop 1"
    goal = GoalSpec(**GOAL)  # type: ignore[typeddict-item]
    other = find_repair(manual, action, believing(**HELD, holding=["fork 1"]), goal)
    assert other and other.words == "first: put fork 1 in/on countertop 1"
    assert find_repair(manual, action, believing(**HELD, holding=["mug 1"]), goal) is None


LAMPS = """
alternatives: [[lit, dark], [warm, cold]]
actions:
- {id: E-DOUSE, name: douse, syntax: "douse {lamp}",
   effects: ["state(lamp, cold)", "state(lamp, dark)"]}
- {id: E-TRIM, name: trim, syntax: "trim {lamp}",
   preconditions: ["state(lamp, lit)", "state(lamp, cold)"]}
"""
FAN = '- {id: E-FAN, name: fan, syntax: "fan {lamp}", effects: ["state(lamp, cold)"]}\n'


@pytest.mark.parametrize(("more", "words"), [(FAN, "first: fan lamp 1"), ("", "")])
def test_advice_does_not_spoil_what_the_action_needs_besides(
    more: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "environment.yaml").write_text(LAMPS + more)
    belief = believing(flags={"lamp 1": "lit, warm"})
    repair = find_repair(load_manual(SMALL, str(tmp_path)), "trim lamp 1", belief)
    assert (repair.words if repair else "") == words
