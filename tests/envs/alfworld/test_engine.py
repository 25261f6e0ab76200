from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rpms.envs.alfworld.engine import NOTHING_HAPPENS, EngineState, GameEngine
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

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
    assert engine.snapshot()["facts"] == {}


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
        assert other.snapshot()["facts"] == {}


def test_a_snapshot_of_another_game_is_refused(official_games: list[Path]) -> None:
    engine = GameEngine()
    engine.load(official_games[0])
    engine.reset()
    taken = engine.snapshot()
    engine.load(official_games[-1])
    with pytest.raises(EnvironmentFault, match="not the game"):
        engine.restore(taken)


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
    assert engine.walkthrough == ["look", "help"]
    engine.load(edited(game, walkthrough=None))
    assert engine.walkthrough is None


def half(text: str) -> str:
    return text[: len(text) // 2]


def aiming(goal: str) -> Callable[[str], str]:
    """A problem with another goal."""
    return lambda problem: problem[: problem.index("(:goal")] + f"(:goal {goal}))"


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
    "cut problem": ("pddl_problem", half, "PDDL"),
    "other domain": ("pddl_problem", lambda p: p.replace("(:domain alfred)", "(:domain x)"),
                     "PDDL"),
    "empty problem": ("pddl_problem", lambda _: "", "PDDL"),
    "unknown predicate": ("pddl_problem", aiming("(and (isNear agent1))"), "PDDL"),
    "undeclared object": ("pddl_problem", lambda p: p.replace("agent1 - agent", ""), ""),
    "hopeless goal": ("pddl_problem", aiming("(and (holds agent1 agent1))"), "goal"),
    "nul in names": ("pddl_problem", lambda p: p.replace("agent1", "agent\0"), "ASCII"),
    "accents": ("pddl_problem", lambda p: p.replace("agent1", "agént"), "ASCII"),
    "not a grammar": ("grammar", lambda _: "To be, or not to be", "grammar"),
    "cut grammar": ("grammar", half, "grammar"),
    "no intro": ("grammar", lambda g: g.replace('"intro"', '"outro"'), "intro"),
    "wordless action": ("grammar", lambda g: g.replace("action look", "action stare"), "look"),
    "code in a template": (
        "grammar", lambda g: g.replace("{o.name}", "{o.name.__class__.mro()}", 1), "read names",
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
    with pytest.raises(RpmsError) as caught:
        engine.load(game)
    message = str(caught.value)
    assert says in message
    assert "tw-pddl" in message
    assert "\n" not in message
    with pytest.raises(EnvironmentFault):
        engine.reset()
    engine.load(good)
    assert "Your task is to" in engine.reset().feedback
