"""Record ScienceWorld's task sentences, furniture and some solutions from the simulator.

Listing tasks must not start a JVM, so their sentences are kept in a file. The sentences of a task
differ only in a few words, so the file has one sentence with gaps and the rows that fill them. The
furniture is what stands in a room in every variation of the train split. The solutions are for the
replay test: the simulator takes longer to find them than to run them. Run it
again after a change of the scienceworld package or tasks.yaml; it takes a quarter of an hour:

    python -m tools.record_scienceworld
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import yaml

from rpms.envs.scienceworld.names import FURNITURE
from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import SENTENCES, catalogue, simplifications

# The tree lists the sewer, which nobody can enter, and the parts of a battery.
NO_ROOMS, ELECTRODES = ("sewer",), ("anode", "cathode")
HEAD = """# What stands in each room in every variation of the train split: it is known to be there
# without having been seen. Recorded by tools/record_scienceworld.py.
"""
TESTS = Path(__file__).parents[1] / "tests" / "envs" / "scienceworld"


def main() -> None:
    """Write descriptions.json and furniture.yaml beside the task list, and the solutions."""
    SENTENCES.write_text(dump(sentences()), encoding="utf-8")
    listed = yaml.safe_dump(furniture(), default_flow_style=None, width=999)
    FURNITURE.write_text(HEAD + listed, encoding="utf-8")
    ends = [(name, v) for name, s in catalogue().items() for v in (s.test[0], s.test[-1])]
    write_solutions(TESTS / "gold.json", ends)
    train = [(name, v) for name, s in catalogue().items() for v in s.split("train_mini")]
    write_solutions(TESTS / "gold_train.json", train)


def write_solutions(file: Path, episodes: Sequence[tuple[str, int]]) -> None:
    """Write the gold actions, one episode per line."""
    solved = solutions(episodes).items()
    lines = [f"{json.dumps(key)}: {json.dumps(actions)}" for key, actions in solved]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def sentences() -> dict[str, Any]:
    """The task sentences of all variations in our lists."""
    simulator = Simulator()
    recorded = {}
    for name, task in catalogue().items():
        variations = []
        for variation in range(task.test.stop):
            simulator.load(name, variation, simplifications())
            variations.append(simulator.description())
        recorded[name] = pack(variations)
        print(f"{name}: {len(variations)} variations, {len(recorded[name]['rows'])} sentences")
    simulator.close()
    return recorded


def furniture() -> dict[str, list[str]]:
    """What is in each room at the start of every train variation, open to view or not."""
    simulator = Simulator()
    everywhere: dict[str, set[str]] = {}
    for name, task in catalogue().items():
        for variation in task.train:
            simulator.load(name, variation, simplifications())
            simulator.step("look around")
            for room, names in things_by_room(simulator).items():
                everywhere[room] = everywhere.get(room, names) & names
        print(f"{name}: {len(task.train)} variations")
    simulator.close()
    return {room: sorted(names) for room, names in sorted(everywhere.items())}


def things_by_room(simulator: Simulator) -> dict[str, set[str]]:
    """The things in each room, without numbered ones and without parts of electric devices."""

    def names(thing: dict[str, Any]) -> Iterator[str]:
        for inner in thing["contents"].values():
            yield inner["name"]
            yield from names(inner)

    rooms = {room["name"]: {*names(room)} for room in simulator.facts().tree["contents"].values()}
    return {
        name: {thing for thing in things if not thing[-1].isdigit() and thing not in ELECTRODES}
        for name, things in rooms.items()
        if name not in NO_ROOMS and not name[-1].isdigit()
    }


def solutions(episodes: Sequence[tuple[str, int]]) -> dict[str, list[str]]:
    """Gold actions of some episodes, each a task and its variation."""
    simulator = Simulator()
    solved = {}
    for name, variation in episodes:
        simulator.load(name, variation, simplifications(), gold=True)
        solved[f"{name}/{variation}"] = simulator.gold_actions()
        print(f"{name}/{variation}: solved")
    simulator.close()
    return solved


def pack(sentences: Sequence[str]) -> dict[str, Any]:
    """One sentence with gaps, the distinct rows of words for them, and each variation's row."""
    parts = shared_parts(list(dict.fromkeys(sentences)))
    pattern = re.compile("(.+?)".join(map(re.escape, parts)))
    matches = {sentence: pattern.fullmatch(sentence) for sentence in sentences}
    filled = {sentence: match.groups() for sentence, match in matches.items() if match}
    if len(filled) < len(matches):
        raise SystemExit(f"one sentence with gaps does not fit all of: {', '.join(matches)}")
    # A repeated word, such as the substance, is a single column.
    columns = list(zip(*filled.values(), strict=True))
    distinct = list(dict.fromkeys(columns))
    gaps = [f"{{{distinct.index(column)}}}" for column in columns]
    sentence = parts[0] + "".join(gap + part for gap, part in zip(gaps, parts[1:], strict=True))
    rows = [list(row) for row in zip(*distinct, strict=True)] or [[]]
    order = list(filled)
    return {
        "sentence": sentence,
        "rows": rows,
        "variations": [order.index(sentence) for sentence in sentences],
    }


def shared_parts(sentences: Sequence[str]) -> list[str]:
    """The pieces of text that all sentences have in common, in their order."""
    first = words(sentences[0])
    common = list(range(len(first)))
    for sentence in sentences[1:]:
        matcher = SequenceMatcher(None, [first[at] for at in common], words(sentence), False)
        blocks = matcher.get_matching_blocks()
        common = [common[block.a + step] for block in blocks for step in range(block.size)]
    parts = [""]
    end = len(first)
    for before, at in zip([-1, *common], [*common, end], strict=True):
        if at != before + 1:
            parts.append("")
        parts[-1] += first[at] if at < end else ""
    return parts


def words(text: str) -> list[str]:
    """Split into words, spaces and marks; a number or a hyphenated word is one word."""
    return re.findall(r"\w+(?:[.'-]\w+)*|\s+|.", text)


def dump(recorded: dict[str, Any]) -> str:
    """JSON with one line per sentence, row table and list, so that changes can be reviewed."""
    tasks = []
    for name, entry in recorded.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items()]
        tasks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(tasks) + "\n}\n"


if __name__ == "__main__":
    main()
