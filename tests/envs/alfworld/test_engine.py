from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envs.alfworld import memo
from envs.alfworld.engine import NOTHING_HAPPENS, GameEngine
from vocabulary.errors import EnvironmentFault, RpmsError

pytestmark = pytest.mark.engine

PARTS = 4
RANDOM_STEPS = 8
NONSENSE = ["", "dance", "LOOK", "go to moon 1", "take from", "put mug 1 in/on", "look around"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("RPMS_CACHE", str(folder))
    memo.forget()
    return folder


@pytest.fixture
def engine() -> Iterator[GameEngine]:
    engine = GameEngine()
    yield engine
    engine.close()


@pytest.fixture
def game(official_games: list[Path], tmp_path: Path) -> Path:
    """A private copy of the smallest game."""
    smallest = min(official_games, key=lambda path: path.stat().st_size)
    return Path(shutil.copy(smallest, tmp_path / "game.tw-pddl"))


def edited(game: Path, **changes: Any) -> Path:
    data = json.loads(game.read_text())
    data.update(changes)
    game.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return game


def stock_start(gamefile: Path) -> Any:
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=True)
    return textworld.start(str(gamefile), infos, wrappers=[AlfredDemangler(), AlfredInfos])


def sample(official: list[Path], put: list[Path]) -> list[Path]:
    """Games of both wordings: mostly small ones (stock is slow), and a spread over all sizes."""
    new, old = (sorted(games, key=lambda path: path.stat().st_size) for games in (official, put))
    # Stock TextWorld cannot even load a game whose goal is out of reach.
    old = [path for path in old if json.loads(path.read_text())["solvable"]]
    return [*old[:8], *new[:28], *(new[28 + (len(new) - 29) * part // 4] for part in range(5))]


@pytest.mark.parametrize("part", range(PARTS))
def test_replays_like_the_stock_engine(
    part: int, official_games: list[Path], put_games: list[Path], engine: GameEngine
) -> None:
    games = sample(official_games, put_games)
    assert len(set(games)) >= 40
    stock = None
    for gamefile in games[part::PARTS]:
        if stock is None:
            stock = stock_start(gamefile)
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


def test_walkthrough_comes_from_the_file_only(game: Path, engine: GameEngine) -> None:
    engine.load(edited(game, walkthrough=["look", "help"]))
    assert engine.walkthrough == ["look", "help"]
    engine.load(edited(game, walkthrough=None))
    assert engine.walkthrough is None


def damage(kind: str, game: Path) -> Path:
    data = json.loads(game.read_text())
    problem, grammar = data["pddl_problem"], data["grammar"]
    if kind == "missing file":
        return game.with_name("absent.tw-pddl")
    if kind == "empty":
        game.write_text("")
    elif kind == "half":
        game.write_text(game.read_text()[: game.stat().st_size // 2])
    elif kind == "binary":
        game.write_bytes(bytes(range(256)))
    elif kind == "list":
        game.write_text("[1, 2]")
    elif kind == "nested":
        game.write_text("[" * 100_000)
    else:
        changes: dict[str, dict[str, Any]] = {
            "no grammar": {"grammar": None},
            "no problem": {"pddl_problem": None},
            "domain is a number": {"pddl_domain": 7},
            "cut problem": {"pddl_problem": problem[: len(problem) // 2]},
            "other domain": {"pddl_problem": problem.replace("(:domain alfred)", "(:domain x)")},
            "empty problem": {"pddl_problem": ""},
            "unknown predicate": {"pddl_problem": no_goal(problem, "(and (isNear agent1))")},
            "undeclared object": {"pddl_problem": problem.replace("agent1 - agent", "")},
            "hopeless goal": {"pddl_problem": no_goal(problem, "(and (holds agent1 agent1))")},
            "long names": {"pddl_problem": problem.replace("agent1", "a" * 2000)},
            "nul in names": {"pddl_problem": problem.replace("agent1", "agent\0")},
            "accents": {"pddl_problem": problem.replace("agent1", "agént")},
            "huge cost": {
                "pddl_problem": problem.rstrip()[:-1] + "(:metric minimize (total-cost)))",
                "pddl_domain": data["pddl_domain"].replace(
                    "(increase (total-cost) 1)", "(increase (total-cost) 99999999999999)"
                ),
            },
            "not a grammar": {"grammar": "To be, or not to be"},
            "cut grammar": {"grammar": grammar[: len(grammar) // 2]},
            "no intro": {"grammar": grammar.replace('"intro"', '"outro"')},
            "wordless action": {"grammar": grammar.replace("action look", "action stare")},
            "code in a template": {
                "grammar": grammar.replace("{o.name}", "{o.name.__class__.mro()}", 1)
            },
        }
        edited(game, **changes[kind])
    return game


def no_goal(problem: str, goal: str) -> str:
    return problem[: problem.index("(:goal")] + f"(:goal {goal}))"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("missing file", "cannot read"),
        ("empty", "not JSON"),
        ("half", "not JSON"),
        ("binary", "not JSON"),
        ("list", "no JSON object"),
        ("nested", "not JSON"),
        ("no grammar", "'grammar'"),
        ("no problem", "'pddl_problem'"),
        ("domain is a number", "'pddl_domain'"),
        ("cut problem", "PDDL"),
        ("other domain", "PDDL"),
        ("empty problem", "PDDL"),
        ("unknown predicate", "PDDL"),
        ("undeclared object", ""),
        ("hopeless goal", "goal"),
        ("long names", "longer"),
        ("nul in names", "ASCII"),
        ("accents", "ASCII"),
        ("huge cost", "too large"),
        ("not a grammar", "grammar"),
        ("cut grammar", "grammar"),
        ("no intro", "intro"),
        ("wordless action", "look"),
        ("code in a template", "read names"),
    ],
)
def test_a_damaged_game_is_refused_by_name(
    kind: str, says: str, game: Path, engine: GameEngine
) -> None:
    good = Path(shutil.copy(game, game.with_name("good.tw-pddl")))
    with pytest.raises(RpmsError) as caught:
        engine.load(damage(kind, game))
    message = str(caught.value)
    assert says in message
    assert "tw-pddl" in message
    assert "\n" not in message
    with pytest.raises(EnvironmentFault):
        engine.reset()
    engine.load(good)
    assert "Your task is to" in engine.reset().feedback


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


@pytest.mark.parametrize("damaged", [b"", b"nonsense", b"0" * 64 + b"\n{}", None])
def test_a_damaged_cache_entry_is_made_again(
    damaged: bytes | None, game: Path, engine: GameEngine, own_cache: Path
) -> None:
    engine.load(game)
    start = engine.reset()
    (entry,) = own_cache.rglob("*.sas")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2] if damaged is None else damaged)
    memo.forget()
    engine.load(game)
    assert engine.reset() == start
    assert entry.read_bytes() == whole
    assert [path.name for path in entry.parent.iterdir()] == [entry.name]


def test_a_stored_translation_is_used_and_equal(
    game: Path, engine: GameEngine, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.load(game)
    start = engine.reset()
    memo.forget()

    def never(domain: str, problem: str) -> memo.Translation:
        raise AssertionError("translated again")

    monkeypatch.setattr(memo, "_translate", never)
    engine.load(game)
    assert engine.reset() == start


def test_an_unwritable_cache_only_costs_time(
    game: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.write_text("a file where the folder should be")
    engine = GameEngine()
    engine.load(game)
    assert engine.reset().admissible_commands
    engine.close()
    uncached = GameEngine(cache=False)
    memo.forget()
    uncached.load(game)
    assert uncached.reset().admissible_commands
    uncached.close()
    assert own_cache.read_text().startswith("a file")


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memo.cache_dir() == Path(os.environ["RPMS_CACHE"])
    monkeypatch.delenv("RPMS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert memo.cache_dir() == Path("/somewhere/rpms")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert memo.cache_dir() == Path.home() / ".cache" / "rpms"


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
