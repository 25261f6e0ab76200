"""Every wording that a lesson or a schema can have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.nodes.manual import load_manual
from rpms.nodes.memories.grounding import FATAL, NOT_UNDERSTOOD, UNEXPLAINED, in_words, reason
from rpms.rules import Manual
from rpms.rules.predicates import PREDICATES, World, parse_predicate, phrase
from rpms.rules.schema import Wording

DOCUMENT = Path(__file__).parents[3] / "docs" / "memory.md"
LIGHTHOUSE = "examples.lighthouse.world:WORLD"
WORLDS = ["alfworld", "scienceworld", LIGHTHOUSE]


def conditions(manual: Manual) -> Iterator[str]:
    """Every predicate there is, those of the world's own that an action needs, and its tables."""
    arities = {name: arity for name, (arity, _) in PREDICATES.items()}
    used = [parse_predicate(text) for rule in manual.actions for text in rule.preconditions]
    arities |= {one.name: len(one.arguments) for one in used}
    for name, arity in arities.items():
        yield f"{name}({', '.join('XY'[:arity])})" if arity else name


def row(text: str, world: World) -> str:
    said = [in_words(text, {}, world), reason(text, {}, world), reason(f"not {text}", {}, world)]
    return f"| `{text}` | {' | '.join(said)} |"


def test_the_document_has_every_wording_of_both_worlds() -> None:
    manuals = [load_manual(env) for env in WORLDS[:2]]
    rows = dict.fromkeys(row(text, one.world) for one in manuals for text in conditions(one))
    rows[row("yours(X)", World({"yours": frozenset()}, {}))] = None
    document = DOCUMENT.read_text(encoding="utf-8")
    table = document.partition("| condition |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == list(rows)
    for text in (UNEXPLAINED, NOT_UNDERSTOOD.format("dance"), FATAL.format(-100)):
        assert text in " ".join(document.split())


@pytest.mark.parametrize("env", WORLDS)
def test_no_condition_is_said_as_it_is_written_nor_as_the_manual_says_it(env: str) -> None:
    manual = load_manual(env)
    world = manual.world
    for text in conditions(manual):
        for one in (text, f"not {text}"):
            predicate = parse_predicate(one)
            told = phrase(predicate, {}, world)
            for words in (in_words(one, {}, world), in_words(one, {}, world, still=True),
                          reason(one, {}, world)):  # fmt: skip
                assert not re.search(r"[:(){}_]|not not|\b(\w+) \1\b", words), words
                assert all(re.search(rf"\b{name}\b", words) for name in predicate.arguments), words
                assert told not in words, words
        assert in_words(text, {}, world) != in_words(f"not {text}", {}, world)


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ("hand_empty", "still empty-handed", "only when empty-handed"),
        ("not open(p)", "desk 1 does still not stand open", "only when desk 1 does not stand open"),
        ("at_hand(p)", "still holding desk 1 or still at desk 1",
         "only when holding desk 1 or at desk 1"),
        ("not at_hand(p)", "still not holding desk 1 and still not at desk 1",
         "only when not holding desk 1 and not at desk 1"),
        ("clean_and_dry(p)", "desk 1 still counts as clean and dry",
         "desk 1 does not count as clean and dry"),
        ("not clean_and_dry(p)", "desk 1 does still not count as clean and dry",
         "desk 1 counts as clean and dry"),
        ("warm(p)", "desk 1 is still warm to the hand", "desk 1 is not warm to the hand"),
        ("beside(p, o)", "desk 1 with {mug} still counts as beside",
         "only when desk 1 with {mug} counts as beside"),
        ("raining", "this still counts as raining", "only when this counts as raining"),
    ],
)  # fmt: skip
def test_a_users_own_predicate_reads_like_a_sentence(text: str, words: str, why: str) -> None:
    world = World(
        {"clean_and_dry": frozenset(), "warm": frozenset()}, {},
        predicates={"at_hand": [["holding(thing)"], ["at(thing)"]]},
        wording=Wording(recalled={"warm": "{0} is {how}warm to the hand"}),
    )  # fmt: skip
    names = {"p": "desk 1", "o": "{mug}"}
    assert (in_words(text, names, world, still=True), reason(text, names, world)) == (words, why)
