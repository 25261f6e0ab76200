"""``python -m tools.record_alfworld``: play generated homes on stock TextWorld, write it down.

The transcripts let anyone check our engine against stock without a compiler: the tests play the
same commands and must come to the same lines. Recording them again gives the same bytes. Every
goal type is in it, in both wordings; after a reset some steps are random, valid and invalid, then
the walkthrough is played, then some more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rpms.envs.alfworld.alfworld_package import DIALECTS, Dialect
from rpms.envs.alfworld.engine import GameEngine
from rpms.envs.alfworld.stock import StockEngine, require_stock
from rpms.envs.alfworld.tasks import GENERATED, Game, Split, sample_home, write_game
from rpms.vocabulary.errors import RpmsError
from tools.compare_engines import Seen, note, play

OUT = Path(__file__).resolve().parents[1] / "tests/envs/alfworld/stock_transcripts.jsonl"
PER_KIND = 12  # two of each goal type
BEFORE, AFTER = 10, 5


def kinds() -> list[tuple[Split, Dialect, int]]:
    """The homes that are recorded."""
    return [
        (split, dialect, index)
        for split in GENERATED
        for dialect in DIALECTS
        for index in range(PER_KIND)
    ]


def heading(game: Game, dialect: Dialect) -> dict[str, Any]:
    """Which home a transcript is of, and how to tell that it is the same one."""
    digest = hashlib.sha256(game.game_file.encode()).hexdigest()[:16]
    return {"split": game.split, "index": game.index, "dialect": dialect, "game": digest}


def lines(seen: Iterable[Seen]) -> Iterator[list[Any]]:
    """What was seen, each step by what changed; facts of a reset by their hash alone."""
    last: Seen | None = None
    for one in seen:
        facts = sorted(f"{fact.predicate}({', '.join(fact.args)})" for fact in one.facts)
        line: list[Any] = [one.command, one.feedback, int(one.won), int(one.done)]
        if one.command is None or last is None:
            digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
            line += [list(one.admissible), [], [digest], []]
        else:
            known = {f"{fact.predicate}({', '.join(fact.args)})" for fact in last.facts}
            line += [
                [command for command in one.admissible if command not in last.admissible],
                [command for command in last.admissible if command not in one.admissible],
                [fact for fact in facts if fact not in known],
                sorted(known.difference(facts)),
            ]
        yield line
        last = one


def record(kind: tuple[Split, Dialect, int]) -> str:
    """The transcript of one home on stock TextWorld."""
    split, dialect, index = kind
    game = sample_home(split, index, dialect)
    with tempfile.TemporaryDirectory() as folder:
        stock = StockEngine()
        stock.load(write_game(game, Path(folder)))
        seen = list(play(stock, game.folder, game.walkthrough, BEFORE, AFTER))
    return _text([heading(game, dialect), *lines(seen)])


def replay(entries: Sequence[Any], folder: Path) -> str:
    """The transcript of the same home and the same commands on our engine."""
    head = entries[0]
    game = sample_home(head["split"], head["index"], head["dialect"])
    engine = GameEngine()
    engine.load(write_game(game, folder))
    seen = [note(engine, entry[0]) for entry in entries[1:]]
    return _text([heading(game, head["dialect"]), *lines(seen)])


def read(file: Path = OUT) -> list[list[Any]]:
    """The recorded transcripts, one list per home."""
    found: list[list[Any]] = []
    for text in file.read_text(encoding="utf-8").splitlines():
        entry = json.loads(text)
        if isinstance(entry, dict):
            found.append([])
        found[-1].append(entry)
    return found


def _text(entries: Iterable[Any]) -> str:
    return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; the exit code."""
    parser = argparse.ArgumentParser(prog="record_alfworld", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes; stock takes its time")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    require_stock()
    with ProcessPoolExecutor(options.jobs) as pool:
        texts = []
        for text in pool.map(record, kinds()):
            texts.append(text)
            print(f"\r{len(texts)} of {len(kinds())} homes", end="", file=sys.stderr, flush=True)
    options.out.write_text("".join(texts), encoding="utf-8")
    print(f"\n{options.out}: {len(texts)} homes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RpmsError as error:
        sys.exit(f"record_alfworld: {error}")
