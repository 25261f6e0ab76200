"""Compare our engine with stock TextWorld: ``python -m tools.compare_engines FILES...``.

``make textworld`` installs stock TextWorld, which only serves as a reference here.

Every game runs on both engines: first random steps, valid and invalid, then from the start again
its walkthrough and more random steps. Feedback, admissible commands, won, done and facts must be
equal after each step. Our engine must reject the games that stock cannot load. Folders are searched
for game files. The exit code is 1 if anything differs.

``--record`` runs generated homes on stock TextWorld and writes transcripts, two of each goal type
in both wordings. The transcripts let anyone check our engine without a compiler: the tests run the
same commands and must get the same lines. Recording them again gives the same bytes.
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
    """The packages of stock TextWorld that are not installed."""
    return [name for name in _STOCK if find_spec(name) is None]


def start_stock(gamefile: Path) -> Any:
    """TextWorld's environment for a game, as alfworld starts it."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    if sys.version_info >= (3, 13):
        _repair_stock()
    infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=True)
    return textworld.start(str(gamefile), infos, wrappers=[AlfredDemangler(), AlfredInfos])


def _repair_stock() -> None:
    """Let stock TextWorld run on Python 3.13, where writing to ``locals()`` has no effect.

    Its text expansion evaluates names that it has put there. The replacement evaluates the same
    expression and passes the same names explicitly.
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
        self._state = self._env.reset()
        return self._observe(bool(self._state["won"]))

    def step(self, command: str) -> EngineState:
        self._state, _, done = self._env.step(command)
        return self._observe(bool(done))

    def facts(self) -> list[Fact]:
        """TextWorld's facts in the form of our engine."""
        return [
            Fact(fact.name, tuple(name.strip() for name in fact.names))
            for fact in self._state["facts"]
        ]

    def _observe(self, done: bool) -> EngineState:
        state = self._state
        commands = tuple(state["admissible_commands"])
        return EngineState(state["feedback"], commands, bool(state["won"]), done)


class Observed(NamedTuple):
    """The result of a reset (no command) or a step."""

    command: str | None
    feedback: str
    admissible: tuple[str, ...]
    won: bool
    done: bool
    facts: frozenset[Fact]

    def differences(self, other: Observed) -> list[str]:
        """The names of the fields that differ."""
        return [name for name, a, b in zip(self._fields, self, other, strict=True) if a != b]


def note(engine: GameEngine | StockEngine, command: str | None) -> Observed:
    """Reset (no command) or step an engine and return everything it reports."""
    state = engine.reset() if command is None else engine.step(command)
    return Observed(
        command, state.feedback, state.admissible_commands, state.won, state.done,
        facts=frozenset(engine.facts()),
    )  # fmt: skip


def _propose(rng: random.Random, seen: Observed, played: Sequence[str]) -> str:
    """Propose a command, valid in three of four cases, with all verbs equally likely."""
    chance = rng.random()
    if chance < 0.75:
        verbs = sorted({command.split()[0] for command in seen.admissible})
        verb = rng.choice(verbs)
        command = rng.choice([c for c in seen.admissible if c.split()[0] == verb])
        return f"  {command} " if chance < 0.05 else command
    return rng.choice(played) if played and chance < 0.9 else rng.choice(NONSENSE)


def play(
    engine: GameEngine | StockEngine, name: str, walkthrough: Sequence[str], before: int, after: int
) -> Iterator[Observed]:
    """Run one game; the same name always proposes the same commands."""
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
    """The number of compared steps of one game, and the first difference or an empty text."""
    rejection = ""
    try:
        ours.load(file)
    except RpmsError as error:
        rejection = str(error)
    try:
        stock.load(file)
    except Exception as error:  # Stock fails with many kinds of errors; each is a rejection.
        return 0, "" if rejection else f"stock cannot load it ({error!r}), ours can"
    if rejection:
        return 0, f"ours rejects it ({rejection}), stock does not"
    count = 0
    walkthrough = ours.game.walkthrough or []
    for expected in play(stock, f"{file.parent.name}", walkthrough, steps, steps // 3):
        actual = note(ours, expected.command)
        count += 1
        if differing := expected.differences(actual):
            where = f"step {count}, {expected.command!r}: {', '.join(differing)}"
            return count, f"{where}: stock {expected.feedback!r}, ours {actual.feedback!r}"
    return count, ""


def find_games(paths: Sequence[Path]) -> list[Path]:
    """The game files among and below some paths, in order."""
    return [
        file
        for path in paths
        for file in (sorted(path.rglob("*.tw-pddl")) if path.is_dir() else [path])
    ]


def recorded_homes() -> list[tuple[Split, Dialect, int]]:
    return [
        (split, dialect, index)
        for split in GENERATED
        for dialect in DIALECTS
        for index in range(PER_KIND)
    ]


def heading(game: GeneratedGame, dialect: Dialect) -> dict[str, Any]:
    """The home of a transcript, with a digest of its game file."""
    digest = hashlib.sha256(game.game_file.encode()).hexdigest()[:16]
    return {"split": game.split, "index": game.index, "dialect": dialect, "game": digest}


def transcript(seen: Iterable[Observed]) -> Iterator[list[Any]]:
    """One line per step, with the changes since the last; a reset has a digest of its facts."""
    commands, old_facts = tuple[str, ...](), set[str]()
    for step in seen:
        facts = {f"{fact.predicate}({', '.join(fact.args)})" for fact in step.facts}
        line: list[Any] = [step.command, step.feedback, int(step.won), int(step.done)]
        if step.command is None:
            digest = hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()[:16]
            line += [list(step.admissible), [], [digest], []]
        else:
            line += [[command for command in step.admissible if command not in commands]]
            line += [[command for command in commands if command not in step.admissible]]
            line += [sorted(facts - old_facts), sorted(old_facts - facts)]
        yield line
        commands, old_facts = step.admissible, facts


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
    """The transcript of the same home and commands on our engine."""
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
    """Compare or record; return the exit code."""
    parser = argparse.ArgumentParser(prog="compare_engines", description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, help="game files, or folders with game files"
    )
    parser.add_argument("--steps", type=int, default=50, help="random steps per game")
    parser.add_argument(
        "--record", action="store_true", help="record transcripts of stock TextWorld"
    )
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
