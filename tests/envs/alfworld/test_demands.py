"""The PDDL taken apart says exactly what the engine lets one do."""

from __future__ import annotations

from random import Random

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import AlfworldGame, to_game
from rpms.envs.alfworld.truth import true_belief
from rpms.rule_learning.exploring import draw_names
from rpms.rule_learning.templates import Template

ENV = get_environment("alfworld")


def test_all_demands_hold_exactly_where_the_engine_agrees() -> None:
    game, rng = AlfworldGame(), Random(5)
    templates = [Template(syntax) for syntax in ENV.command_templates()]
    answers = set()
    for task in ENV.tasks("generated_seen", 4):
        game.reset(task)
        for _ in range(40):
            belief = ENV.true_belief(game.facts())
            assert belief is not None and ENV.drift(belief, game.facts()) == []
            admissible = game.admissible()
            drawn = [(one, draw_names(one, belief, rng)) for one in templates for _ in range(3)]
            commands = [one.command(names) for one, names in drawn if names is not None]
            demanded = ENV.demands(game, commands)
            assert demanded is not None
            for command, parts in zip(commands, demanded, strict=True):
                allowed = to_game(command, "move") in admissible
                assert parts is not None and all(parts.values()) == allowed, (command, parts)
                answers.add(allowed)
            game.step(rng.choice(admissible))
    assert answers == {True, False}


def test_templates_are_the_games_own() -> None:
    templates = ENV.command_templates()
    assert "put {object} in/on {place}" in templates
    assert "examine {thing}" in templates
    assert {one.split()[0] for one in templates} == set(ENV.command_verbs())


def test_of_several_places_of_a_thing_the_one_at_hand_counts() -> None:
    facts = [
        ("receptacleatlocation", ("drawer 2", "loc 1")),
        ("receptacleatlocation", ("shelf 1", "loc 2")),
        ("inreceptacle", ("keychain 1", "drawer 2")),
        ("inreceptacle", ("keychain 1", "shelf 1")),
    ]
    for spot, place in (("loc 1", "drawer 2"), ("loc 2", "shelf 1")):
        belief = true_belief([*facts, ("atlocation", ("agent 1", spot))])
        assert belief["last_seen"] == {"keychain 1": place}
