from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rpms.envs.alfworld.alfworld_package import DIALECTS, Dialect, domain, grammar
from rpms.envs.alfworld.engine import NOTHING_HAPPENS, EngineState, GameEngine
from rpms.vocabulary.errors import EnvironmentFault
from tests.refusal import refused

pytestmark = pytest.mark.engine

HEAVY = ("textworld", "fast_downward", "tatsu", "jericho", "spacy", "numpy", "torch")


def wander(engine: GameEngine, state: EngineState, steps: int, seed: str) -> EngineState:
    """Random valid steps, verbs taking turns."""
    rng = random.Random(seed)
    for _ in range(steps):
        verb = rng.choice(sorted({command.split()[0] for command in state.admissible_commands}))
        options = [c for c in state.admissible_commands if c.split()[0] == verb]
        state = engine.step(rng.choice(options))
    return state


def test_reset_brings_the_beginning_back(game: Path, engine: GameEngine) -> None:
    engine.load(game)
    first = engine.reset()
    before = engine.facts()
    wander(engine, first, 20, "reset")
    assert engine.facts() != before
    assert engine.reset() == first
    assert engine.facts() == before


def test_an_inadmissible_command_changes_nothing(game: Path, engine: GameEngine) -> None:
    engine.load(game)
    start = engine.reset()
    before = engine.facts()
    state = engine.step("fly to the moon")
    assert state.feedback == NOTHING_HAPPENS
    assert state.admissible_commands == start.admissible_commands
    assert engine.facts() == before
    assert engine.snapshot()["added"] == {}


def test_misuse_is_a_fault_not_a_crash(game: Path, engine: GameEngine) -> None:
    with pytest.raises(EnvironmentFault, match="load"):
        engine.reset()
    engine.load(game)
    for use in (lambda: engine.step("look"), engine.facts, engine.snapshot):
        with pytest.raises(EnvironmentFault, match="reset"):
            use()
    engine.close()
    with pytest.raises(EnvironmentFault, match="load"):
        engine.step("look")


def test_any_number_of_engines_on_any_thread(official_games: list[Path]) -> None:
    """Many open at once, each stepped from other threads than the one it began on."""
    small = sorted(official_games, key=lambda path: path.stat().st_size)[:6]
    alone = []
    for file in small:
        engine = GameEngine()
        engine.load(file)
        alone.append(wander(engine, engine.reset(), 15, file.parent.name))
    crowd = [GameEngine() for _ in range(12)]
    threads = set()

    def begin(number: int) -> EngineState:
        threads.add(threading.get_ident())
        crowd[number].load(small[number % 6])
        return crowd[number].reset()

    def go_on(number: int) -> EngineState:
        threads.add(threading.get_ident())
        engine, file = crowd[number], small[number % 6]
        return wander(engine, engine.step("nonsense"), 15, file.parent.name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin, range(12)))
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(go_on, range(12)))
    assert len(threads) > 1
    assert ended == [alone[number % 6] for number in range(12)]


def test_a_snapshot_is_small_plain_data_that_brings_a_game_back(
    official_games: list[Path],
) -> None:
    for file in official_games[:: max(1, len(official_games) // 5)]:
        engine, other = GameEngine(), GameEngine()
        engine.load(file)
        state = wander(engine, engine.reset(), 50, file.parent.name)
        text = json.dumps(engine.snapshot())
        assert len(text) < 4000
        other.load(file)
        restored = other.restore(json.loads(text))
        assert restored.admissible_commands == state.admissible_commands
        assert restored.won == state.won
        assert set(other.facts()) == set(engine.facts())
        assert other.snapshot() == json.loads(text)
        assert wander(engine, state, 25, "on") == wander(other, restored, 25, "on")
        # A reset forgets it again.
        assert other.reset() == engine.reset()
        assert other.snapshot()["added"] == {}


def test_a_snapshot_of_another_game_is_refused(official_games: list[Path]) -> None:
    engine = GameEngine()
    engine.load(official_games[0])
    engine.reset()
    taken = engine.snapshot()
    engine.load(official_games[-1])
    with pytest.raises(EnvironmentFault, match="of another game"):
        engine.restore(taken)


HOME = """(define (problem small) (:domain alfred)
 (:objects agent1 - agent  middle_bar_1 sink_bar_1 door_bar_1 - location
  AppleType KnifeType MugType DeskLampType - otype
  FridgeType MicrowaveType SinkBasinType CounterTopType - rtype
  Apple_bar_1 Knife_bar_1 Mug_bar_1 DeskLamp_bar_1 - object
  Fridge_bar_1 Microwave_bar_1 Sink_bar_1_bar_SinkBasin CounterTop_bar_1 - receptacle)
 (:init (atLocation agent1 middle_bar_1)
  (receptacleAtLocation Fridge_bar_1 door_bar_1) (receptacleType Fridge_bar_1 FridgeType)
  (receptacleAtLocation Microwave_bar_1 door_bar_1) (receptacleType Microwave_bar_1 MicrowaveType)
  (receptacleAtLocation Sink_bar_1_bar_SinkBasin sink_bar_1)
  (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType)
  (receptacleAtLocation CounterTop_bar_1 sink_bar_1)
  (receptacleType CounterTop_bar_1 CounterTopType)
  (openable Fridge_bar_1) (openable Microwave_bar_1)
  (objectType Apple_bar_1 AppleType) (inReceptacle Apple_bar_1 Fridge_bar_1)
  (objectAtLocation Apple_bar_1 door_bar_1)
  (pickupable Apple_bar_1) (heatable Apple_bar_1) (coolable Apple_bar_1) (cleanable Apple_bar_1)
  (sliceable Apple_bar_1) (canContain CounterTopType AppleType) (canContain SinkBasinType AppleType)
  (objectType Knife_bar_1 KnifeType) (inReceptacle Knife_bar_1 CounterTop_bar_1)
  (objectAtLocation Knife_bar_1 sink_bar_1) (pickupable Knife_bar_1)
  (canContain CounterTopType KnifeType)
  (objectType Mug_bar_1 MugType) (inReceptacle Mug_bar_1 CounterTop_bar_1)
  (objectAtLocation Mug_bar_1 sink_bar_1) (pickupable Mug_bar_1) (isReceptacleObject Mug_bar_1)
  (objectType DeskLamp_bar_1 DeskLampType) (inReceptacle DeskLamp_bar_1 CounterTop_bar_1)
  (objectAtLocation DeskLamp_bar_1 sink_bar_1) (toggleable DeskLamp_bar_1))
 (:goal (and (exists (?r - receptacle) (exists (?o - object) (and (heatable ?o)
  (objectType ?o AppleType) (receptacleType ?r CounterTopType) (isHot ?o) (inReceptacle ?o ?r)))))))
"""
# Commands and answers in the newer wording; what is not accepted is answered with nothing.
PLAYED = (
    ("look", "You are in the middle of a room. Looking quickly around you, you see nothing."),
    ("open fridge 1", NOTHING_HAPPENS),
    ("go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."),
    ("go to microwave 1", NOTHING_HAPPENS),  # already there
    ("take apple 1 from fridge 1", NOTHING_HAPPENS),
    ("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a apple 1."),
    ("examine apple 1", NOTHING_HAPPENS),  # not held
    ("take apple 1 from fridge 1", "You pick up the apple 1 from the fridge 1."),
    ("inventory", "You are carrying: a apple 1."),
    ("move apple 1 to fridge 1", NOTHING_HAPPENS),  # it cannot contain apples
    ("close fridge 1", "You close the fridge 1."),
    ("cool apple 1 with fridge 1", "You cool the apple 1 using the fridge 1."),
    ("examine apple 1", "This is a cold apple 1."),
    ("heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1."),
    ("examine apple 1", "This is a hot apple 1."),
    ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."),
    ("take mug 1 from countertop 1", NOTHING_HAPPENS),  # one hand
    ("clean apple 1 with sinkbasin 1", "You clean the apple 1 using the sinkbasin 1."),
    ("examine apple 1", "This is a hot and clean apple 1."),
    ("move apple 1 to sinkbasin 1", "You move the apple 1 to the sinkbasin 1."),
    ("take knife 1 from countertop 1", "You pick up the knife 1 from the countertop 1."),
    ("slice apple 1 with knife 1", "You sliced the apple 1 with the knife 1."),
    ("examine knife 1", "There's nothing special about knife 1."),
    ("move knife 1 to countertop 1", "You move the knife 1 to the countertop 1."),
    ("take apple 1 from sinkbasin 1", "You pick up the apple 1 from the sinkbasin 1."),
    ("examine apple 1", "This is a hot and clean sliced apple 1."),
    ("use desklamp 1", "You turn on the desklamp 1."),
    ("examine countertop 1",
     "On the countertop 1, you see a desklamp 1, a knife 1, and a mug 1."),
    ("move apple 1 to countertop 1", "You move the apple 1 to the countertop 1."),
    ("look", "You are facing the countertop 1, and sinkbasin 1. Next to it, you see a apple 1."),
    ("take mug 1 from countertop 1", "You pick up the mug 1 from the countertop 1."),
    ("examine mug 1", "This is a normal mug 1. In it, you see nothing."),
)  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_action_and_its_answer(dialect: Dialect, game: Path, engine: GameEngine) -> None:
    texts = {"grammar": grammar(dialect), "pddl_domain": domain(dialect)}
    engine.load(edited(game, pddl_problem=HOME, **texts))
    engine.reset()
    for command, answer in PLAYED:
        won_by = command == "move apple 1 to countertop 1"
        if dialect == "put":
            command = re.sub("^move (.*) to ", r"put \1 in/on ", command)
            answer = re.sub("^You move (.*) to the ", r"You put \1 in/on the ", answer)
            answer = re.sub(r"^You arrive at (fridge|sinkbasin) 1", "You arrive at LOC", answer)
        accepted = command in engine.step("nonsense").admissible_commands
        state = engine.step(command)
        assert re.sub(r"(?<=arrive at )(door|sink) 1", "LOC", state.feedback) == answer
        assert accepted == (answer != NOTHING_HAPPENS), command
        assert not won_by or state.won
    assert ("help" in state.admissible_commands) == (dialect == "move")
    assert engine.step("help").feedback.startswith("Available commands:") == (dialect == "move")
    facts = set(engine.facts())
    assert {("issliced", ("apple 1",)), ("not_iscool", ("apple 1",))} <= facts
    assert ("opened", ("fridge 1",)) not in facts


def test_nothing_that_needs_a_compiler_is_imported(game: Path) -> None:
    """A game is listed, generated, loaded and played without TextWorld and what it drags in."""
    program = (
        "import sys; from pathlib import Path;"
        "from rpms.envs.alfworld.adapter import ENVIRONMENT;"
        "from rpms.envs.alfworld.tasks import sample_home;"
        "sample_home('generated_seen', 0); game = ENVIRONMENT.open_game();"
        "game.reset({'source': sys.argv[1]}); game.step('look');"
        "print([name for name in sys.argv[2:] if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(game), *HEAVY],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "[]", done.stderr


def edited(game: Path, **changes: Any) -> Path:
    data = json.loads(game.read_text())
    data.update(changes)
    game.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return game


def test_walkthrough_comes_from_the_file_only(game: Path, engine: GameEngine) -> None:
    engine.load(edited(game, walkthrough=["look", "help"]))
    assert engine.game.walkthrough == ["look", "help"]
    engine.load(edited(game, walkthrough=None))
    assert engine.game.walkthrough is None


def half(text: str) -> str:
    return text[: len(text) // 2]


def aiming(goal: str) -> Callable[[str], str]:
    """A problem with another goal."""
    return lambda problem: problem[: problem.index("(:goal")] + f"(:goal {goal}))"


def starting(fact: str) -> Callable[[str], str]:
    """A problem with one more fact."""
    return lambda problem: problem.replace("(:init", f"(:init {fact}", 1)


# Which part of a game (empty: the whole file) becomes what, and what is said about it.
DAMAGED: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "missing file": ("", lambda _: None, "cannot read"),
    "empty": ("", lambda _: b"", "not JSON"),
    "half": ("", lambda text: half(text).encode(), "not JSON"),
    "binary": ("", lambda _: bytes(range(256)), "not JSON"),
    "list": ("", lambda _: b"[1, 2]", "no JSON object"),
    "nested": ("", lambda _: b"[" * 100_000, "not JSON"),
    "no grammar": ("grammar", lambda _: None, "'grammar'"),
    "no problem": ("pddl_problem", lambda _: None, "'pddl_problem'"),
    "domain is a number": ("pddl_domain", lambda _: 7, "'pddl_domain'"),
    "cut problem": ("pddl_problem", half, "PDDL problem"),
    "other domain": ("pddl_problem", lambda p: p.replace("(:domain alfred)", "(:domain x)"),
                     "PDDL problem"),
    "empty problem": ("pddl_problem", lambda _: "", "PDDL problem"),
    "another goal": ("pddl_problem", aiming("(and (holds agent1 agent1))"), "none of the six"),
    "hopeless goal": ("pddl_problem", lambda p: p.replace("(pickupable ", "(moveable "),
                      "can never be met"),
    "undeclared object": ("pddl_problem", lambda p: p.replace("agent1 - agent", ""),
                          "starts with (atlocation agent1 "),
    "unknown predicate": ("pddl_problem", lambda p: p.replace("(pickupable ", "(edible "),
                          "starts with (edible "),
    "something held": ("pddl_problem", starting("(holds agent1 agent1)"), "starts with (holds "),
    "no agent": ("pddl_problem", lambda p: re.sub(r"\(atLocation [^)]*\)", "", p), "one agent"),
    "two locations": ("pddl_problem", lambda p: p.replace("(:init", "(:init " + re.sub(
                      r" loc\w+", " " + re.findall(r"\(atLocation \w+ (\w+)", p)[0],
                      re.findall(r"\(receptacleAtLocation[^)]*\)", p)[0])),
                      "two values of receptacleatlocation"),
    "nul in names": ("pddl_problem", lambda p: p.replace("agent1", "agent\0"), "PDDL problem"),
    "accents": ("pddl_problem", lambda p: p.replace("agent1", "agént"), "PDDL problem"),
    "not a grammar": ("grammar", lambda _: "To be, or not to be", "grammar"),
    "cut grammar": ("grammar", half, "grammar"),
    "other words": ("grammar", lambda g: g.replace("You open the", "You unlock the"), "grammar"),
    "code in the task": ("grammar", lambda g: g.replace("task is to: ", "task is to: {o.name} "),
                         "grammar"),
    "another rule": (
        "pddl_domain", lambda d: d.replace("(not (holdsAny ?a))", "(holdsAny ?a)"), "PDDL domain",
    ),
    "an action less": (
        "pddl_domain", lambda d: d.replace("(isToggled ?o)\n            )", ")"), "PDDL domain",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_game_is_refused_by_name(kind: str, game: Path, engine: GameEngine) -> None:
    good = Path(shutil.copy(game, game.with_name("good.tw-pddl")))
    part, change, says = DAMAGED[kind]
    if part:
        edited(game, **{part: change(json.loads(game.read_text())[part])})
    elif (content := change(game.read_text())) is not None:
        game.write_bytes(content)
    else:
        game.unlink()
    with refused(says, "tw-pddl"):
        engine.load(game)
    with pytest.raises(EnvironmentFault):
        engine.reset()
    engine.load(good)
    assert "Your task is to" in engine.reset().feedback
