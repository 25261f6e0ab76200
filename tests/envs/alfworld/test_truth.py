"""Belief against truth on random walks: no system publishes this, so it is tested hardest."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import ENVIRONMENT, AlfworldGame, read_action
from rpms.envs.alfworld.alfworld_package import grammar
from rpms.envs.alfworld.engine import Fact
from rpms.envs.alfworld.tasks import ensure_games
from rpms.envs.alfworld.truth import disagreements, true_belief
from rpms.rule_learning.evidence import CommandTemplate
from rpms.rule_learning.explore import draw_names
from rpms.vocabulary.belief import Belief
from tests.envs.playing import plan_of, task_of, unshown

Walks = Callable[[int], list[Any]]


@pytest.mark.engine
def test_the_belief_never_parts_from_the_truth(chunk: int, walks: Walks) -> None:
    played = walks(chunk)
    assert sum(len(walk.steps) for walk in played) >= 5_000
    parted = {walk.game.parent.name: walk.disagreements for walk in played if walk.disagreements}
    assert parted == {}


def test_the_first_belief_holds_only_what_the_opening_shows() -> None:
    game = AlfworldGame()
    for task in ENVIRONMENT.tasks("generated_seen", 12) + ENVIRONMENT.tasks("generated_unseen", 12):
        opening = game.reset(task)
        assert unshown(ENVIRONMENT.first_belief(opening), opening) == [], task["id"]
    game.close()


@pytest.mark.engine
def test_the_walks_do_everything_an_agent_can_do(chunk: int, walks: Walks) -> None:
    done: dict[str, int] = {}
    refused = 0
    for walk in walks(chunk):
        for step in walk.steps:
            verb = step.action.split()[0]
            if ENVIRONMENT.failed(step.observation):
                refused += 1
            else:
                done[verb] = done.get(verb, 0) + 1
    assert refused >= 500
    common = ("go", "open", "close", "take", "put", "examine", "look", "inventory")
    assert all(done.get(verb, 0) >= 30 for verb in common), done
    assert sum(done.get(verb, 0) for verb in ("heat", "cool", "clean")) >= 10, done
    assert done.get("use", 0) >= 3, done


@pytest.fixture(scope="module")
def midgame() -> tuple[Belief, list[Fact]]:
    """A belief with something in every field, and the true facts it agrees with."""
    file = ensure_games("generated_seen", 1)[0]
    game = AlfworldGame()
    belief = ENVIRONMENT.first_belief(game.reset(task_of(file)))
    for action in [*plan_of(file)[:3], "look"]:
        belief = ENVIRONMENT.update_belief(belief, action, game.step(action).observation)
    facts = game.facts()
    game.close()
    return belief, facts


def wrong_beliefs() -> Iterator[tuple[str, Callable[[Belief], None], str]]:
    def change(field: str, value: Any) -> Callable[[Belief], None]:
        return lambda belief: belief.__setitem__(field, value)  # type: ignore[literal-required]

    def add(field: str, key: str, value: Any) -> Callable[[Belief], None]:
        return lambda belief: belief[field].__setitem__(key, value)  # type: ignore[literal-required]

    def flip_a_door(belief: Belief) -> None:
        place, door = next(iter(belief["containers"].items()))
        belief["containers"][place] = "closed" if door == "open" else "open"

    def flip_every_door(belief: Belief) -> None:
        belief["containers"] = dict.fromkeys(belief["containers"], "closed")

    def misplace(belief: Belief) -> None:
        thing = next(iter(belief["last_seen"]))
        belief["last_seen"][thing] = next(
            place for place in belief["places"] if place != belief["last_seen"][thing]
        )

    def break_a_spot(belief: Belief) -> None:
        next(iter(belief["spots"].values())).append("moon 1")

    yield "elsewhere", change("location", "moon 1"), "location: believed moon 1"
    yield "nowhere", change("location", None), "location: believed None"
    yield "within reach", lambda belief: belief["reachable"].append("moon 1"), "reachable: moon 1"
    yield "empty hand", change("holding", []), "holding: believed []"
    yield "wrong hand", change("holding", ["moon 1"]), "holding: believed ['moon 1']"
    yield "full hand", lambda belief: belief["holding"].append("moon 1"), "holding: believed"
    yield "door", flip_a_door, ": believed closed"
    yield "doors", flip_every_door, ": believed closed"
    yield "no such door", add("containers", "shelf 1", "closed"), "shelf 1: believed closed"
    yield "misplaced", misplace, "last seen: "
    yield "invented", add("last_seen", "moon 1", "shelf 1"), "last seen: moon 1 is not at shelf 1"
    yield "spot", break_a_spot, "spot of "
    yield "invented spot", add("spots", "moon 1", ["moon 1"]), "spot of moon 1"
    yield "place", lambda belief: belief["places"].append("moon 1"), "places: ['moon 1']"
    yield "missing place", lambda belief: belief["places"].remove("shelf 1"), "places: ['shelf 1']"


@pytest.mark.engine
def test_a_true_belief_is_not_blamed(midgame: tuple[Belief, list[Fact]]) -> None:
    belief, facts = midgame
    for field in ("location", "holding", "containers", "last_seen", "spots", "places", "searched"):
        assert belief[field], field  # type: ignore[literal-required]
    assert disagreements(belief, facts) == []


@pytest.mark.engine
@pytest.mark.parametrize(
    ("spoil", "complaint"), [pytest.param(*row[1:], id=row[0]) for row in wrong_beliefs()]
)
def test_every_wrong_belief_is_found(
    midgame: tuple[Belief, list[Fact]], spoil: Callable[[Belief], None], complaint: str
) -> None:
    belief, facts = copy.deepcopy(midgame)
    spoil(belief)
    wrong = disagreements(belief, facts)
    assert len(wrong) == 1
    assert complaint in wrong[0]


@pytest.mark.engine
def test_the_true_state_in_words_is_what_the_game_says() -> None:
    env = ENVIRONMENT
    task = env.tasks("generated_unseen", 1)[0]
    game = env.open_game()
    game.reset(task)
    begun = env.true_state(game.facts())
    assert begun == {"location": "middle of the room", "holding": "nothing", "open": "nothing"}
    game.step("go to desk 1")
    assert "desk 1" in env.true_state(game.facts())["location"].split(", ")
    game.step("take cellphone 1 from desk 1")
    game.step("go to drawer 1")
    game.step("open drawer 1")
    state = env.true_state(game.facts())
    assert (state["holding"], state["open"]) == ("cellphone 1", "drawer 1")
    game.close()


ENV = get_environment("alfworld")


def test_all_demands_hold_exactly_where_the_engine_agrees() -> None:
    game, rng = AlfworldGame(), Random(5)
    templates = [CommandTemplate(syntax) for syntax in ENV.command_templates()]
    answers = set()
    for task in ENV.tasks("generated_seen", 2):
        game.reset(task)
        for _ in range(25):
            belief = ENV.true_belief(game.facts())
            assert belief is not None and ENV.belief_errors(belief, game.facts()) == []
            accepted = game.commands()
            drawn = [(one, draw_names(one, belief, rng)) for one in templates for _ in range(3)]
            commands = [one.command(names) for one, names in drawn if names is not None]
            demanded = game.demands(commands)
            assert demanded is not None
            for command, parts in zip(commands, demanded, strict=True):
                allowed = command in accepted
                assert parts is not None and all(parts.values()) == allowed, (command, parts)
                answers.add(allowed)
            game.step(rng.choice(accepted))
    assert answers == {True, False}


def test_commands_are_the_games_own() -> None:
    blank = re.compile(r"\[?\{[^}]+\}\]?")
    templates = re.findall(r'template :: "([^"]+)"', grammar("move"))
    own = {read_action(blank.sub("{}", template)) for template in templates}
    assert {blank.sub("{}", command) for command in ENV.command_templates()} == own


def test_of_several_places_of_a_thing_the_one_named_or_at_hand_counts() -> None:
    facts = [
        ("receptacleatlocation", ("drawer 2", "loc 1")),
        ("receptacleatlocation", ("shelf 1", "loc 2")),
        ("inreceptacle", ("keychain 1", "drawer 2")),
        ("inreceptacle", ("keychain 1", "shelf 1")),
    ]
    for spot, place in (("loc 1", "drawer 2"), ("loc 2", "shelf 1")):
        here = [*facts, ("atlocation", ("agent 1", spot))]
        assert true_belief(here)["last_seen"] == {"keychain 1": place}
        assert true_belief(here, ["drawer 2"])["last_seen"] == {"keychain 1": "drawer 2"}
