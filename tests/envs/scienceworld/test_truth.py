"""Belief against the simulator's object tree, over gold paths and random valid actions."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from rpms.envs.base import Task
from rpms.envs.scienceworld.belief import first_belief, refused, update_belief
from rpms.envs.scienceworld.simulator import Facts, ScienceWorldGame
from rpms.envs.scienceworld.tasks import catalogue, description
from rpms.envs.scienceworld.things import CARRYING, UNSURE
from rpms.envs.scienceworld.truth import disagreements
from rpms.vocabulary.belief import Belief, Door

GOLD_STEPS = 100
RANDOM_STEPS = 100
# Listing the valid actions takes as long as many steps; most of a list stays valid for a while.
ACTIONS_PER_LIST = 8
HANDLING = ["pick", "put", "move", "pour", "eat", "open"]
ROOMS = ["kitchen", "outside", "greenhouse", "workshop", "art studio", "bathroom", "living room"]


class Step(NamedTuple):
    action: str
    observation: str
    belief: Belief
    wrong: list[str]


class Walk(NamedTuple):
    kind: str
    task: str
    steps: list[Step]


def unsure(belief: Belief) -> bool:
    return belief["flags"].get(CARRYING) == UNSURE


def walk(
    game: ScienceWorldGame, task: Task, kind: str, actions: Callable[[list[Step]], Iterator[str]]
) -> Walk:
    """Play and compare after every step, the opening included."""
    opening = game.reset(task)
    belief = first_belief(opening)
    steps = [Step("", opening, belief, disagreements(belief, game.facts()))]

    def step(action: str) -> Belief:
        observation = game.step(action).observation
        after = update_belief(steps[-1].belief, action, observation)
        steps.append(Step(action, observation, after, disagreements(after, game.facts())))
        return after

    for action in actions(steps):
        if unsure(step(action)):
            # What an agent would do; it takes no time in the simulator.
            step("inventory")
    return Walk(kind, task["id"], steps)


def golden(actions: list[str]) -> Callable[[list[Step]], Iterator[str]]:
    return lambda _: iter(actions)


def at_random(game: ScienceWorldGame, seed: int) -> Callable[[list[Step]], Iterator[str]]:
    """Valid actions, those that move things twice as often, and now and then nonsense."""

    def actions(steps: list[Step]) -> Iterator[str]:
        chance = random.Random(seed)
        played = 0
        while played < RANDOM_STEPS:
            by_verb = valid_actions(game)
            handling = [v for v in HANDLING if v in by_verb] or list(by_verb)
            for _ in range(ACTIONS_PER_LIST):
                verb = chance.choice(handling if chance.random() < 0.5 else sorted(by_verb))
                yield chance.choice(by_verb[verb])
                if steps[-1].observation.startswith("Ambiguous request"):
                    yield chance.choice(["0", "0", "1", "99", "look around"])
                played += 1
            yield chance.choice(["look around", "look around", "dance", f"pick up {verb}", "wait1"])
            if chance.random() < 0.3:
                yield f"teleport to {chance.choice(ROOMS)}"
                yield "look around"

    return actions


def valid_actions(game: ScienceWorldGame) -> dict[str, list[str]]:
    """The simulator's own list, by verb. The game hides it, as it is not for the agent."""
    simulator = game._running()
    listed = simulator._strings(simulator._server.getValidActionObjectCombinations)
    by_verb: dict[str, list[str]] = {}
    for action in sorted(listed):
        # A wrong focus would end most walks at once, and resetting is refused by the game.
        if not action.startswith(("reset", "focus")):
            by_verb.setdefault(action.split()[0], []).append(action)
    return by_verb


@pytest.fixture(scope="module")
def walks(
    game: ScienceWorldGame, gold: dict[str, list[str]], episodes: dict[str, Task]
) -> list[Walk]:
    found = []
    for name, actions in gold.items():
        # Plants of many parts make every tick of these two tasks several times as long.
        length = 30 if name.startswith("mendelian") else GOLD_STEPS
        found.append(walk(game, episodes[name], "gold", golden(actions[:length])))
    for number, (name, science) in enumerate(catalogue().items(), start=100):
        variation = random.Random(number).choice(science.train)
        source = f"{name}/{variation}"
        goal = description(name, variation)
        task = Task(env="scienceworld", split="", index=0, id=source, goal=goal, source=source)
        found.append(walk(game, task, "random", at_random(game, number)))
    return found


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_room_and_inventory_agree_with_the_object_tree_at_every_step(walks: list[Walk]) -> None:
    assert sum(len(walk.steps) for walk in walks) >= 5_000
    parted = [
        (walk.task, step.action, step.observation, step.wrong)
        for walk in walks
        for step in walk.steps
        if step.wrong
    ]
    assert parted == []


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_the_belief_is_hardly_ever_unsure(walks: list[Walk]) -> None:
    """Saying nothing is no way to agree; on gold paths there is next to no reason for it."""
    for kind, share in (("gold", 0.005), ("random", 0.05)):
        beliefs = [step.belief for walk in walks if walk.kind == kind for step in walk.steps]
        assert len(beliefs) >= 2_000
        assert sum(map(unsure, beliefs)) / len(beliefs) < share


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_the_walks_do_what_an_agent_can_do(walks: list[Walk]) -> None:
    done: Counter[str] = Counter()
    held: Counter[int] = Counter()
    rooms = set()
    for walk in walks:
        for step in walk.steps[1:]:
            verb = step.action.split()[0]
            done["refused" if refused(step.observation) else verb] += 1
            held[len(step.belief["holding"])] += 1
            rooms.add(step.belief["location"])
    assert done["refused"] >= 200
    common = ("pick", "put", "move", "pour", "eat", "open", "close", "activate", "use", "look")
    assert all(done[verb] >= 20 for verb in common), done
    assert done["go"] + done["teleport"] >= 400
    assert done["0"] + done["1"] >= 20
    assert len(rooms) == 10
    assert held[0] >= 300 and sum(n for size, n in held.items() if size >= 3) >= 300, held


@pytest.fixture(scope="module")
def midgame(game: ScienceWorldGame, episodes: dict[str, Task]) -> tuple[Belief, Facts]:
    """A belief about two carried things, open and closed doors, and the facts it agrees with."""
    belief = first_belief(game.reset(episodes["boil/21"]))
    for action in (
        "teleport to kitchen",
        "look around",
        "pick up thermometer",
        "pick up apple",
        "open cupboard",
        "close door to hallway",
    ):
        belief = update_belief(belief, action, game.step(action).observation)
    return belief, game.facts()


def change(field: str, value: Any) -> Callable[[Belief], None]:
    return lambda belief: belief.__setitem__(field, value)


def shut(name: str, door: Door) -> Callable[[Belief], None]:
    return lambda belief: belief["containers"].__setitem__(name, door)


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_a_true_belief_is_not_blamed(midgame: tuple[Belief, Facts]) -> None:
    belief, facts = midgame
    assert belief["holding"] == ["orange", "thermometer", "apple"]
    assert {"open", "closed"} == set(belief["containers"].values())
    assert disagreements(belief, facts) == []


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        pytest.param(change("location", "hallway"), "room: believed hallway", id="elsewhere"),
        pytest.param(change("location", None), "room: believed None", id="nowhere"),
        pytest.param(change("holding", []), "inventory: believed []", id="nothing carried"),
        pytest.param(change("holding", ["orange", "apple"]), "inventory: ", id="one forgotten"),
        pytest.param(
            change("holding", ["orange", "thermometer", "apple", "axe"]),
            "inventory: ", id="one invented",
        ),
        pytest.param(
            change("holding", ["orange wire", "thermometer", "apple"]), "inventory: ", id="another",
        ),
        pytest.param(
            change("holding", ["orange", "orange", "thermometer"]), "inventory: ", id="twice",
        ),
        pytest.param(shut("cupboard", "closed"), "cupboard: believed closed", id="open container"),
        pytest.param(shut("fridge", "open"), "fridge: believed open", id="closed container"),
        pytest.param(shut("door to hallway", "open"), "door to hallway: believed", id="door"),
    ],
)  # fmt: skip
def test_every_wrong_belief_is_found(
    midgame: tuple[Belief, Facts], spoil: Callable[[Belief], None], complaint: str
) -> None:
    belief = copy.deepcopy(midgame[0])
    spoil(belief)
    wrong = disagreements(belief, midgame[1])
    assert len(wrong) == 1
    assert complaint in wrong[0]


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
@pytest.mark.parametrize(
    "held", [["orange", "thermometer", "red apple"], ["apple", "orange", "thermometer"]]
)
def test_longer_names_and_another_order_are_no_disagreement(
    midgame: tuple[Belief, Facts], held: list[str]
) -> None:
    belief = copy.deepcopy(midgame[0])
    belief["holding"] = held
    assert disagreements(belief, midgame[1]) == []


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_a_belief_that_says_it_is_unsure_states_no_inventory(
    midgame: tuple[Belief, Facts],
) -> None:
    belief = copy.deepcopy(midgame[0])
    belief["holding"] = []
    belief["flags"][CARRYING] = UNSURE
    assert disagreements(belief, midgame[1]) == []
