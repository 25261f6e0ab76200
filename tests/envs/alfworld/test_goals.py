from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld.adapter import ENVIRONMENT, AlfworldGame
from rpms.envs.alfworld.goals import GOAL_TYPES, LOOK, PLACE, TWO, parse_goal, sub_goal
from rpms.envs.alfworld.tasks import ensure_games, read_game
from rpms.envs.base import Task
from rpms.nodes.manual import load_manual
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import Turn
from tests.envs import playing
from tests.envs.playing import believing

CLEAN = "pick_clean_then_place_in_recep"
HEAT = "pick_heat_then_place_in_recep"
COOL = "pick_cool_then_place_in_recep"

# sentence, type, object, state, count, destination
WORDINGS = [
    ("put a mug in cabinet.", PLACE, "mug", None, 1, "cabinet"),
    ("put some mug on shelf.", PLACE, "mug", None, 1, "shelf"),
    ("look at cd under the desklamp.", LOOK, "cd", None, 1, "desklamp"),
    ("examine the cd with the floorlamp.", LOOK, "cd", None, 1, "floorlamp"),
    ("put a clean fork in drawer.", CLEAN, "fork", "clean", 1, "drawer"),
    ("clean some fork and put it in drawer.", CLEAN, "fork", "clean", 1, "drawer"),
    ("put a hot apple in fridge.", HEAT, "apple", "hot", 1, "fridge"),
    ("heat some apple and put it in fridge.", HEAT, "apple", "hot", 1, "fridge"),
    ("put a cool pan in stoveburner.", COOL, "pan", "cool", 1, "stoveburner"),
    ("cool some pan and put it in stoveburner.", COOL, "pan", "cool", 1, "stoveburner"),
    ("put two pillow in sofa.", TWO, "pillow", None, 2, "sofa"),
    ("find two pillow and put them in sofa.", TWO, "pillow", None, 2, "sofa"),
]


@pytest.mark.parametrize(("sentence", "kind", "thing", "state", "count", "place"), WORDINGS)
def test_both_wordings_of_all_six_types(
    sentence: str, kind: str, thing: str, state: str | None, count: int, place: str
) -> None:
    goal = parse_goal(sentence)
    assert goal == GoalSpec(
        sentence=sentence,
        type=kind,
        object=thing,
        state=state,
        count=count,
        destination=place,
        signature=f"{kind}:{thing}:{state or 'none'}:{place}",
    )


def test_the_table_above_is_complete() -> None:
    assert sorted(GOAL_TYPES) == sorted({row[1] for row in WORDINGS})
    assert set(load_manual("alfworld").domain.procedures) == set(GOAL_TYPES)
    for kind in GOAL_TYPES:
        for wording in (0, 1):
            sentence = alfworld_package.goal_sentence(kind, wording, "Mug", "Shelf", "DeskLamp")
            assert parse_goal(sentence)["type"] == kind


@pytest.mark.parametrize(
    ("sentence", "signature"),
    [
        ("put a hot mug in cabinet", "pick_heat_then_place_in_recep:mug:hot:cabinet"),
        ("put a hot potato in fridge", "pick_heat_then_place_in_recep:potato:hot:fridge"),
        ("put a cold mug in cabinet", "pick_cool_then_place_in_recep:mug:cool:cabinet"),
    ],
)
def test_signatures_print_as_in_the_paper(sentence: str, signature: str) -> None:
    assert parse_goal(sentence)["signature"] == signature


@pytest.mark.parametrize(
    "loose",
    [
        "Put a Hot Apple in Fridge.",
        "  put a hot  apple in fridge . ",
        "Your task is to: put a hot apple in fridge.",
        "put a hot apple in the fridge",
        "put a hot apple into fridge",
        "put the hot apple in/on fridge",
        "heat an apple and put it in the fridge",
    ],
)
def test_small_differences_do_not_matter(loose: str) -> None:
    goal = parse_goal(loose)
    assert goal["signature"] == "pick_heat_then_place_in_recep:apple:hot:fridge"
    assert goal["sentence"] == loose.strip()


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "make me a sandwich",
        "put a mug",
        "put a mug with a spoon in it in sinkbasin",
        "slice an apple",
        "put three mug in shelf",
        "put a hot apple in fridge and then dance",
        "look at cd",
    ],
)
def test_a_sentence_of_no_known_shape_is_one_clear_line(sentence: str) -> None:
    with pytest.raises(RpmsError, match="cannot read the goal") as caught:
        parse_goal(sentence)
    assert f"'{sentence}'" in str(caught.value)
    assert "\n" not in str(caught.value)


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


def pointer(sentence: str, *done: Turn, **fields: Any) -> tuple[str, str, int]:
    found = sub_goal(parse_goal(sentence), believing(**fields), done)
    return found["name"], found["target"], found["progress"]


HOT = "put a hot mug in cabinet"
PAIR = "put two cd in safe"


@pytest.mark.parametrize(
    ("sentence", "done", "fields", "expected"),
    [
        (HOT, [], {}, ("find_object", "mug", 0)),
        (HOT, [], {"last_seen": {"cup 1": "desk 1"}}, ("find_object", "mug", 0)),
        (HOT, [], {"last_seen": {"mug 2": "desk 1"}}, ("take_object", "mug 2 from desk 1", 25)),
        (HOT, [], {"holding": ["cup 1"], "last_seen": {"mug 2": "desk 1"}},
         ("free_hand", "put down cup 1", 0)),
        (HOT, [], {"holding": ["mug 2"]}, ("heat_object", "mug 2", 50)),
        # Only this very object, really heated, is ready to be placed.
        (HOT, [turn("heat mug 2 with microwave 1", failed=True)], {"holding": ["mug 2"]},
         ("heat_object", "mug 2", 50)),
        (HOT, [turn("heat mug 1 with microwave 1")], {"holding": ["mug 2"]},
         ("heat_object", "mug 2", 50)),
        (HOT, [turn("clean mug 2 with sinkbasin 1")], {"holding": ["mug 2"]},
         ("heat_object", "mug 2", 50)),
        (HOT, [turn("heat mug 2 with microwave 1")], {"holding": ["mug 2"]},
         ("place_object", "mug 2 in/on cabinet", 75)),
        # Cooling undoes heating, cleaning does not.
        (HOT, [turn("heat mug 2 with microwave 1"), turn("cool mug 2 with fridge 1")],
         {"holding": ["mug 2"]}, ("heat_object", "mug 2", 50)),
        (HOT, [turn("heat mug 2 with microwave 1"), turn("clean mug 2 with sinkbasin 1")],
         {"holding": ["mug 2"]}, ("place_object", "mug 2 in/on cabinet", 75)),
        # Placed cold is not placed.
        (HOT, [], {"last_seen": {"mug 2": "cabinet 1"}},
         ("take_object", "mug 2 from cabinet 1", 25)),
        (HOT, [turn("heat mug 2 with microwave 1")], {"last_seen": {"mug 2": "cabinet 1"}},
         ("find_object", "mug", 100)),
        ("put a clean mug in shelf", [], {"holding": ["mug 1"]}, ("clean_object", "mug 1", 50)),
        ("put a cool mug in shelf", [], {"holding": ["mug 1"]}, ("cool_object", "mug 1", 50)),
        ("put a mug in shelf", [], {"holding": ["mug 1"]},
         ("place_object", "mug 1 in/on shelf", 66)),
        ("look at cd under the desklamp", [], {"holding": ["cd 1"]},
         ("find_lamp", "desklamp", 66)),
        ("look at cd under the desklamp", [],
         {"holding": ["cd 1"], "last_seen": {"desklamp 1": "desk 2"}},
         ("use_lamp", "desklamp 1 at desk 2", 66)),
        (PAIR, [], {"last_seen": {"cd 1": "safe 1"}}, ("find_object", "cd", 50)),
        (PAIR, [], {"last_seen": {"cd 1": "safe 1", "cd 2": "desk 1"}},
         ("take_object", "cd 2 from desk 1", 66)),
        # Both have to lie in the same place.
        (PAIR, [], {"last_seen": {"cd 1": "safe 1"}, "holding": ["cd 2"]},
         ("place_object", "cd 2 in/on safe 1", 83)),
        (PAIR, [], {"last_seen": {"cd 1": "safe 1", "cd 2": "safe 2"}},
         ("take_object", "cd 2 from safe 2", 66)),
        (PAIR, [], {"last_seen": {"cd 1": "safe 1", "cd 2": "safe 1"}}, ("find_object", "cd", 100)),
    ],
)  # fmt: skip
def test_the_pointer(
    sentence: str, done: list[Turn], fields: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    assert pointer(sentence, *done, **fields) == expected


@pytest.mark.engine
def test_in_the_real_game_too_two_objects_must_share_a_place(
    as_task: Callable[[Path], Task],
) -> None:
    file = ensure_games("generated_seen", 6)[5]
    *plan, go, put = [ENVIRONMENT.read_action(a) for a in read_game(file)["walkthrough"]]
    thing, place = put.removeprefix("put ").split(" in/on ")
    game = AlfworldGame()
    goal, belief = _begin(game, as_task(file))
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


def _begin(game: AlfworldGame, task: Task) -> tuple[GoalSpec, Belief]:
    observation = game.reset(task)
    goal = parse_goal(observation.split("Your task is to: ")[1])
    return goal, ENVIRONMENT.first_belief(observation)


@pytest.mark.engine
@pytest.mark.parametrize("index", range(12))
def test_pointer_and_progress_through_a_whole_game(
    index: int, as_task: Callable[[Path], Task]
) -> None:
    file = ensure_games("generated_seen", 12)[index]
    game = AlfworldGame()
    goal, belief = _begin(game, as_task(file))
    turns: list[Turn] = []
    names, progress = [sub_goal(goal, belief, turns)["name"]], [0]
    for action in (ENVIRONMENT.read_action(a) for a in read_game(file)["walkthrough"]):
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


@pytest.mark.parametrize(
    ("places", "location", "target"),
    [
        (["cabinet 2", "cabinet 10", "cabinet 1"], "desk 1", "cabinet 1"),
        (["cabinet 2", "cabinet 1"], "cabinet 2", "cabinet 2"),
        (["cabinet 4", "desk 1"], "desk 1", "cabinet 4"),
        ([], None, "cabinet"),
    ],
)
def test_the_destination_is_named_so_that_it_can_be_gone_to(
    places: list[str], location: str | None, target: str
) -> None:
    now = {"holding": ["mug 1"], "places": places, "location": location}
    assert pointer("put a mug in cabinet", **now)[1] == f"mug 1 in/on {target}"
