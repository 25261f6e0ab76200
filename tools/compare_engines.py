"""Our engine against stock TextWorld, word by word: ``python -m tools.compare_engines FILES...``.

``make textworld`` brings stock TextWorld, which serves as a reference here and nowhere else.

Every game is played on both: some steps at random, valid and invalid, then again from the start
its walkthrough and more random steps. Feedback, admissible commands, won, done and facts must be
equal after each. Games that stock cannot load must be rejected by ours as well. Folders are
searched for game files. The exit code is 1 if anything differed.

``--record`` plays generated homes on stock and writes it down, two of each goal type in both
wordings. The transcripts let anyone check our engine against stock without a compiler: the tests
play the same commands and must come to the same lines. Recording them again gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rpms.envs.alfworld.alfworld_package import DIALECTS, Dialect
from rpms.envs.alfworld.engine import EngineState, Fact, GameEngine
from rpms.envs.alfworld.tasks import GENERATED, GeneratedGame, Split, sample_home, write_game
from rpms.vocabulary.errors import RpmsError

NONSENSE = (
    "", "dance", "LOOK", "go to moon 1", "take from", "put mug 1 in/on", " look ", "  inventory",
    "examine", "help me", "use", "open fridge", "close", "go to", "move mug 1 to",
)  # fmt: skip
OUT = Path(__file__).resolve().parents[1] / "tests/envs/alfworld/stock_transcripts.jsonl"
PER_KIND = 12  # two of each goal type
BEFORE, AFTER = 10, 5
_STOCK = ("textworld", "fast_downward", "alfworld", "numpy")


def missing_stock() -> list[str]:
    """The packages that stock TextWorld lacks on this machine."""
    return [name for name in _STOCK if find_spec(name) is None]


def start_stock(gamefile: Path) -> Any:
    """TextWorld's own environment for a game, as alfworld starts it."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    if sys.version_info >= (3, 13):
        _repair_stock()
    infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=True)
    return textworld.start(str(gamefile), infos, wrappers=[AlfredDemangler(), AlfredInfos])


def _repair_stock() -> None:
    """Let stock TextWorld run on Python 3.13, where writing to ``locals()`` has no effect.

    Its text expansion evaluates names that it has put there. The same expression is evaluated
    with the same names, given explicitly; nothing else changes.
    """
    from textworld.envs.pddl import textgen

    def derive(self: Any, context: Any = None) -> list[Any]:
        names = {"context": context or self.context, **(context or self.context)["variables"]}
        return [textgen.TerminalSymbol(eval(self.expression, vars(textgen), names))]

    textgen.EvalSymbol.derive = derive


class StockEngine:
    """Stock TextWorld with the methods of our engine."""

    def __init__(self) -> None:
        if absent := missing_stock():
            raise RpmsError(
                f"stock TextWorld is not installed ({', '.join(absent)} missing); "
                "run 'make textworld'"
            )
        self._env: Any = None
        self._state: Any = None

    def load(self, gamefile: Path) -> None:
        """Load a game; the first one starts TextWorld."""
        if self._env is None:
            self._env = start_stock(gamefile)
        else:
            self._env.load(str(gamefile))

    def reset(self) -> EngineState:
        """Start the loaded game."""
        self._state = self._env.reset()
        return self._observe(bool(self._state["won"]))

    def step(self, command: str) -> EngineState:
        """Play one command."""
        self._state, _, done = self._env.step(command)
        return self._observe(bool(done))

    def facts(self) -> list[Fact]:
        """TextWorld's true facts, in the form our engine reports them."""
        return [
            Fact(fact.name, tuple(name.strip() for name in fact.names))
            for fact in self._state["facts"]
        ]

    def _observe(self, done: bool) -> EngineState:
        state = self._state
        commands = tuple(state["admissible_commands"])
        return EngineState(state["feedback"], commands, bool(state["won"]), done)


class Seen(NamedTuple):
    """What a game said after a reset (no command) or a step."""

    command: str | None
    feedback: str
    admissible: tuple[str, ...]
    won: bool
    done: bool
    facts: frozenset[Fact]

    def differences(self, other: Seen) -> list[str]:
        """In what two of them differ."""
        return [name for name, a, b in zip(self._fields, self, other, strict=True) if a != b]


def note(engine: GameEngine | StockEngine, command: str | None) -> Seen:
    """Reset (no command) or step an engine and write down all it says."""
    state = engine.reset() if command is None else engine.step(command)
    return Seen(
        command, state.feedback, state.admissible_commands, state.won, state.done,
        facts=frozenset(engine.facts()),
    )  # fmt: skip


def _propose(rng: random.Random, seen: Seen, played: Sequence[str]) -> str:
    """Three of four valid, verbs taking turns: most commands of a game are walks."""
    chance = rng.random()
    if chance < 0.75:
        verbs = sorted({command.split()[0] for command in seen.admissible})
        verb = rng.choice(verbs)
        command = rng.choice([c for c in seen.admissible if c.split()[0] == verb])
        return f"  {command} " if chance < 0.05 else command
    return rng.choice(played) if played and chance < 0.9 else rng.choice(NONSENSE)


def play(
    engine: GameEngine | StockEngine, name: str, walkthrough: Sequence[str], before: int, after: int
) -> Iterator[Seen]:
    """One game as it goes; the same name always proposes the same."""
    rng, seen, played = random.Random(name), note(engine, None), list[str]()
    yield seen
    for _ in range(before):
        played.append(_propose(rng, seen, played))
        yield (seen := note(engine, played[-1]))
    for command in (None, *walkthrough):
        yield (seen := note(engine, command))
    for _ in range(after):
        yield (seen := note(engine, _propose(rng, seen, played)))


def compare(file: Path, ours: GameEngine, stock: StockEngine, steps: int) -> tuple[int, str]:
    """How many steps one game was compared for, and the first difference, if there is one."""
    refused = ""
    try:
        ours.load(file)
    except RpmsError as error:
        refused = str(error)
    try:
        stock.load(file)
    except Exception as error:  # Stock falls over in many ways, each of them a refusal.
        return 0, "" if refused else f"stock cannot load it ({error!r}), ours can"
    if refused:
        return 0, f"ours refuses it ({refused}), stock does not"
    count = 0
    walkthrough = ours.game.walkthrough or []
    for theirs in play(stock, f"{file.parent.name}", walkthrough, steps, steps // 3):
        mine = note(ours, theirs.command)
        count += 1
        if differing := theirs.differences(mine):
            where = f"step {count}, {theirs.command!r}: {', '.join(differing)}"
            return count, f"{where}: stock {theirs.feedback!r}, ours {mine.feedback!r}"
    return count, ""


def find_games(paths: Sequence[Path]) -> list[Path]:
    """The game files among and below some paths, in order."""
    return [
        file
        for path in paths
        for file in (sorted(path.rglob("*.tw-pddl")) if path.is_dir() else [path])
    ]


def recorded_homes() -> list[tuple[Split, Dialect, int]]:
    """The homes that are recorded."""
    return [
        (split, dialect, index)
        for split in GENERATED
        for dialect in DIALECTS
        for index in range(PER_KIND)
    ]


def heading(game: GeneratedGame, dialect: Dialect) -> dict[str, Any]:
    """Which home a transcript is of, and how to tell that it is the same now."""
    digest = hashlib.sha256(game.game_file.encode()).hexdigest()[:16]
    return {"split": game.split, "index": game.index, "dialect": dialect, "game": digest}


def transcript(seen: Iterable[Seen]) -> Iterator[list[Any]]:
    """What was seen, each step by what changed; facts of a reset by their hash alone."""
    commands, known = tuple[str, ...](), set[str]()
    for now in seen:
        facts = {f"{fact.predicate}({', '.join(fact.args)})" for fact in now.facts}
        line: list[Any] = [now.command, now.feedback, int(now.won), int(now.done)]
        if now.command is None:
            digest = hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()[:16]
            line += [list(now.admissible), [], [digest], []]
        else:
            line += [[command for command in now.admissible if command not in commands]]
            line += [[command for command in commands if command not in now.admissible]]
            line += [sorted(facts - known), sorted(known - facts)]
        yield line
        commands, known = now.admissible, facts


def record(home: tuple[Split, Dialect, int]) -> str:
    """The transcript of one home on stock TextWorld."""
    split, dialect, index = home
    game = sample_home(split, index, dialect)
    with tempfile.TemporaryDirectory() as folder:
        stock = StockEngine()
        stock.load(write_game(game, Path(folder)))
        seen = list(play(stock, game.folder, game.walkthrough, BEFORE, AFTER))
    return _text([heading(game, dialect), *transcript(seen)])


def replay(entries: Sequence[Any], folder: Path) -> str:
    """The transcript of the same home and the same commands on our engine."""
    head = entries[0]
    game = sample_home(head["split"], head["index"], head["dialect"])
    engine = GameEngine()
    engine.load(write_game(game, folder))
    seen = [note(engine, entry[0]) for entry in entries[1:]]
    return _text([heading(game, head["dialect"]), *transcript(seen)])


def read_transcripts(file: Path = OUT) -> list[list[Any]]:
    """The recorded transcripts, one list per home."""
    homes: list[list[Any]] = []
    for text in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(text)
        if isinstance(entry, dict):
            homes.append([])
        homes[-1].append(entry)
    return homes


def _text(entries: Iterable[Any]) -> str:
    return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, or record; the exit code."""
    parser = argparse.ArgumentParser(prog="compare_engines", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="game files, or folders with some")
    parser.add_argument("--steps", type=int, default=50, help="random steps per game")
    parser.add_argument("--record", action="store_true", help="write the transcripts of stock")
    options = parser.parse_args(arguments)
    if options.record == bool(options.files):
        parser.error("give files to compare, or --record")
    if options.record:
        OUT.write_text("".join(map(record, recorded_homes())), encoding="utf-8")
        return 0
    ours, stock = GameEngine(), StockEngine()
    games, steps, differing = find_games(options.files), 0, 0
    for file in games:
        count, difference = compare(file, ours, stock, options.steps)
        steps += count
        if difference:
            differing += 1
            print(f"{file}: {difference}")
    print(f"{len(games)} games, {steps} steps, {differing} games with a difference")
    return 1 if differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RpmsError as error:
        sys.exit(f"compare_engines: {error}")
