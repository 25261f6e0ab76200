from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import sys
import threading
from pathlib import Path

import pytest

from rpms.envs.alfworld.engine import NOTHING_HAPPENS, GameEngine
from rpms.evals.bench.engine import start_stock
from rpms.vocabulary.errors import EnvironmentFault

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("own_cache")]

PARTS = 4
RANDOM_STEPS = 8
NONSENSE = ["", "dance", "LOOK", "go to moon 1", "take from", "put mug 1 in/on", "look around"]


def sample(official: list[Path], put: list[Path]) -> list[Path]:
    """Games of both wordings: mostly small ones (stock is slow), and a spread over all sizes."""
    new, old = (sorted(games, key=lambda path: path.stat().st_size) for games in (official, put))
    # Stock TextWorld cannot even load a game whose goal is out of reach.
    old = [path for path in old if json.loads(path.read_text())["solvable"]]
    return [*old[:6], *new[:30], *(new[30 + (len(new) - 31) * part // 4] for part in range(4))]


@pytest.mark.parametrize("part", range(PARTS))
def test_replays_like_the_stock_engine(
    part: int, official_games: list[Path], put_games: list[Path], engine: GameEngine
) -> None:
    games = sample(official_games, put_games)
    assert len(set(games)) >= 40
    stock = None
    for gamefile in games[part::PARTS]:
        if stock is None:
            stock = start_stock(gamefile)
        else:
            stock.load(str(gamefile))
        engine.load(gamefile)
        theirs, ours = stock.reset(), engine.reset()
        rng = random.Random(gamefile.parent.name)
        played: list[str] = []
        script = list(engine.walkthrough or [])
        for step in range(len(script) + RANDOM_STEPS + 1):
            where = f"{gamefile} after {played}"
            assert ours.feedback == theirs["feedback"], where
            assert list(ours.admissible_commands) == theirs["admissible_commands"], where
            assert ours.won == theirs["won"], where
            assert ours.done == bool(theirs["done"] if played else theirs["won"]), where
            assert {(fact.predicate, fact.args) for fact in engine.facts()} == {
                (fact.name, tuple(name.strip() for name in fact.names)) for fact in theirs["facts"]
            }, where
            if step < len(script):
                command = script[step]
            elif rng.random() < 0.75:
                command = rng.choice(ours.admissible_commands)
            else:
                command = rng.choice([*NONSENSE, *played, " look "])
            if step == len(script):
                assert ours.won or not script, where
            theirs, _, _ = stock.step(command)
            ours = engine.step(command)
            played.append(command)
    if stock is not None:
        stock.close()


def test_reset_brings_the_beginning_back(game: Path, engine: GameEngine) -> None:
    engine.load(game)
    first = engine.reset()
    before = set(engine.facts())
    for command in first.admissible_commands[:3]:
        engine.step(command)
    assert set(engine.facts()) != before
    assert engine.reset() == first
    assert set(engine.facts()) == before


def test_an_inadmissible_command_changes_nothing(game: Path, engine: GameEngine) -> None:
    engine.load(game)
    start = engine.reset()
    before = engine.facts()
    state = engine.step("fly to the moon")
    assert state.feedback == NOTHING_HAPPENS
    assert state.admissible_commands == start.admissible_commands
    assert engine.facts() == before


def test_misuse_is_a_fault_not_a_crash(game: Path, engine: GameEngine) -> None:
    with pytest.raises(EnvironmentFault, match="load"):
        engine.reset()
    engine.load(game)
    with pytest.raises(EnvironmentFault, match="reset"):
        engine.step("look")
    with pytest.raises(EnvironmentFault, match="reset"):
        engine.facts()
    engine.close()
    with pytest.raises(EnvironmentFault, match="load"):
        engine.step("look")


def test_an_engine_belongs_to_one_thread(game: Path, engine: GameEngine) -> None:
    engine.load(game)
    start = engine.reset()
    caught: list[BaseException] = []

    def meddle() -> None:
        for use in (engine.reset, lambda: engine.step("look"), lambda: engine.load(game)):
            try:
                use()
            except EnvironmentFault as fault:
                caught.append(fault)

    thread = threading.Thread(target=meddle)
    thread.start()
    thread.join()
    assert len(caught) == 3
    assert engine.reset() == start


def test_an_engine_belongs_to_one_process(game: Path, engine: GameEngine) -> None:
    engine.load(game)
    engine.reset()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def meddle() -> None:
        try:
            engine.step("look")
        except EnvironmentFault as fault:
            answers.put(str(fault))
        else:
            answers.put("")

    child = context.Process(target=meddle)
    child.start()
    child.join(30)
    assert "own engine" in answers.get()


def test_two_engines_do_not_disturb_each_other(official_games: list[Path]) -> None:
    small = sorted(official_games, key=lambda path: path.stat().st_size)[:2]
    first, second = GameEngine(), GameEngine()
    first.load(small[0])
    start = first.reset()
    second.load(small[1])
    second.reset()
    for command in second.reset().admissible_commands[:5]:
        second.step(command)
    assert first.step("dance").admissible_commands == start.admissible_commands
    assert first.reset() == start
    first.close()
    second.close()


def test_arguments_and_game_folder_stay_as_they_were(
    game: Path, engine: GameEngine, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["rpms", "run", "--json"])
    folder = game.parent / "data"
    folder.mkdir()
    inside = Path(shutil.copy(game, folder))
    before = (inside.read_bytes(), inside.stat().st_mtime_ns)
    engine.load(inside)
    engine.reset()
    assert sys.argv == ["rpms", "run", "--json"]
    assert [path.name for path in folder.iterdir()] == [inside.name]
    assert (inside.read_bytes(), inside.stat().st_mtime_ns) == before
    assert len(list(own_cache.rglob("*.sas"))) == 1


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_memory_stays_flat_over_many_games(official_games: list[Path], engine: GameEngine) -> None:
    games = sorted(official_games, key=lambda path: path.stat().st_size)[:30]

    def play(gamefile: Path) -> None:
        engine.load(gamefile)
        for command in engine.reset().admissible_commands[:5]:
            engine.step(command)

    play(games[-1])
    before = resident_mb()
    for turn in range(30):
        play(games[turn % len(games)])
    assert resident_mb() - before < 60
