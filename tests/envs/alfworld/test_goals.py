from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld.adapter import ENVIRONMENT, AlfworldGame
from rpms.envs.alfworld.goals import GOAL_TYPES, LOOK, PLACE, TWO, parse_goal, sub_goal
from rpms.envs.alfworld.tasks import ensure_games, read_game
from rpms.envs.manuals import load_manual
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import Turn
from tests.envs import playing


def test_the_types_are_those_of_the_manual() -> None:
    assert set(load_manual("alfworld").domain.procedures) == set(GOAL_TYPES)


# Words that carry the templates; no object or place of any game is called so.
RESERVED = {"a", "an", "the", "some", "one", "two", "clean", "hot", "cool", "cold"}
WORDS = st.from_regex(r"[a-z]{2,14}", fullmatch=True).filter(lambda word: word not in RESERVED)


@given(st.sampled_from(GOAL_TYPES), st.sampled_from([0, 1]), WORDS, WORDS)
def test_every_template_gives_back_its_words(kind: str, wording: int, thing: str, at: str) -> None:
    goal = parse_goal(alfworld_package.goal_sentence(kind, wording, thing, at, at) + ".")
    assert (goal["type"], goal["object"], goal["destination"]) == (kind, thing, at)
    assert goal["count"] == (2 if kind == TWO else 1)
    assert (goal["state"] is None) == (kind in (PLACE, LOOK, TWO))


def test_every_official_game_parses_to_what_its_trajectory_states(
    official_games: list[Path], put_games: list[Path], have_official: bool
) -> None:
    if have_official:
        assert len(official_games) == 340
    for file in [*official_games, *put_games]:
        sentence = read_game(file)["grammar"].split("Your task is to: ")[1].split(".")[0]
        goal = parse_goal(sentence)
        stated = json.loads((file.parent / "traj_data.json").read_text())
        params = stated["pddl_params"]
        target = params["toggle_target"] if goal["type"] == LOOK else params["parent_target"]
        assert goal["type"] == stated["task_type"]
        assert goal["object"] == params["object_target"].lower()
        assert goal["destination"] == target.lower()


def turn(action: str, failed: bool = False) -> Turn:
    return playing.turn(1, action, "", failed)


@pytest.mark.engine
def test_in_the_real_game_too_two_objects_must_share_a_place() -> None:
    file = ensure_games("generated_seen", 6)[5]
    *plan, go, put = playing.plan_of(file)
    thing, place = put.removeprefix("put ").split(" in/on ")
    game = AlfworldGame()
    goal, belief = _begin(game, file)
    assert goal["type"] == TWO
    other = next(p for p in belief["places"] if p != place and kind_of(p) == kind_of(place))
    apart = [f"go to {other}", f"put {thing} in/on {other}"]
    together = [f"take {thing} from {other}", go, put]
    turns: list[Turn] = []
    seen = []
    for action in [*plan, *apart, *together]:
        outcome = game.step(action)
        belief = ENVIRONMENT.update_belief(belief, action, outcome.observation)
        turns.append(turn(action, ENVIRONMENT.failed(outcome.observation)))
        seen.append((outcome.won, sub_goal(goal, belief, turns)))
    game.close()
    assert not any(entry["failed"] for entry in turns)
    assert [won for won, _ in seen] == [False] * (len(turns) - 1) + [True]
    split, united = seen[-4][1], seen[-1][1]
    assert (split["name"], split["progress"]) == ("take_object", 66)
    assert seen[-2][1]["target"] == f"{thing} in/on {place}"
    assert united["progress"] == 100


def _begin(game: AlfworldGame, file: Path) -> tuple[GoalSpec, Belief]:
    observation = game.reset(playing.task_of(file))
    goal = parse_goal(observation.split("Your task is to: ")[1])
    return goal, ENVIRONMENT.first_belief(observation)


@pytest.mark.engine
@pytest.mark.parametrize("index", range(12))
def test_pointer_and_progress_through_a_whole_game(index: int) -> None:
    file = ensure_games("generated_seen", 12)[index]
    game = AlfworldGame()
    goal, belief = _begin(game, file)
    turns: list[Turn] = []
    names, progress = [sub_goal(goal, belief, turns)["name"]], [0]
    for action in playing.plan_of(file):
        before = sub_goal(goal, belief, turns)
        outcome = game.step(action)
        belief = ENVIRONMENT.update_belief(belief, action, outcome.observation)
        turns.append(turn(action))
        after = sub_goal(goal, belief, turns)
        names.append(after["name"])
        progress.append(after["progress"])
    game.close()
    assert outcome.won
    assert progress == sorted(progress)
    # That a lamp has been lit is no part of the belief.
    assert progress[-1] >= 66 if goal["type"] == LOOK else progress[-1] == 100
    # Sub-goals come in the order of the manual's procedure; some take no step of their own.
    procedure = load_manual("alfworld").domain.procedures[goal["type"]]
    assert before["name"] == procedure[-1]
    position = 0
    for name in names if goal["type"] == LOOK else names[:-1]:
        position += procedure[position:].index(name)
    assert position == len(procedure) - 1
