from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.models.constrained import fits, reply_gbnf, reply_schema
from rpms.nodes.reply import read_reply
from rpms.rules import load_manual

WORLDS = ("alfworld", "scienceworld")
HOME = ["go to {place}", "take {object} from {place}", "put {object} in/on {place}", "look"]


def syntaxes(world: str) -> list[str]:
    return [rule.syntax for rule in load_manual(world).actions]


def action_pattern(actions: list[str]) -> str:
    pattern: str = reply_schema(actions)["properties"]["action"]["pattern"]
    return pattern


def test_the_grammar_as_text() -> None:
    assert reply_gbnf(HOME).splitlines() == [
        'root ::= ("Thought: " thought "\\n")? "Action: " action',
        "thought ::= [ !#-9;-Z^-~]{1,240}",
        'action ::= "go to " name |',
        '  "take " name " from " name |',
        '  "put " name " in/on " name |',
        '  "look"',
        'name ::= word (" " word){0,7}',
        'word ::= [a-zA-Z]{1,20} ("-" [a-zA-Z]{1,20})? | [0-9]{1,3}',
    ]


@pytest.mark.parametrize("world", WORLDS)
def test_every_action_of_the_manual_has_its_alternative(world: str) -> None:
    grammar = reply_gbnf(syntaxes(world))
    (actions,) = re.findall(r"^action ::= (.*?)^name", grammar, re.M | re.S)
    assert len(actions.split("|")) == len(syntaxes(world))


def test_the_schema_is_strict() -> None:
    schema = reply_schema(HOME)
    assert schema["required"] == list(schema["properties"]) == ["thought", "action"]
    assert schema["additionalProperties"] is False
    json.dumps(schema)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Action: look", True),
        ("Thought: Where is it?\nAction: go to fridge 1", True),
        ("Action: take mug 1 from coffee table 12\n", True),
        ("Action: put mug 1 in/on desk 1", True),
        ("Action: go to violet-red paint", True),
        ("Action: go to b-b-b", False),
        ("Action: go to desk -", False),
        ('{"thought": "", "action": "look"}', True),
        ('{"action": "take mug 1 from desk 1", "thought": "so: this"}', True),
        ("", False),
        ("look", False),
        ("Action: dance", False),
        ("Action: look around", False),
        ("Action: go to ", False),
        ("Action: go to fridge 1.", False),
        ("Action: go to fridge 1111", False),
        ("Action: go to a b c d e f g h i", False),
        ("Action: take mug 1", False),
        ("Action: look\nAction: look", False),
        ("Thought: a\nThought: b\nAction: look", False),
        ("Thought: Action: look\nAction: look", False),
        ('{"thought": "", "action": "dance"}', False),
        ('{"thought": ""}', False),
        ('["look"]', False),
        ('{"action": "loo', False),
    ],
)
def test_what_keeps_to_the_format(text: str, kept: bool) -> None:
    assert fits(text, HOME) is kept


# "then" separates actions for the reader; the grammar cannot leave out a single word.
WORD = st.one_of(
    st.from_regex(r"[a-zA-Z]{1,20}(-[a-zA-Z]{1,20})?", fullmatch=True).filter(
        lambda word: word != "then"
    ),
    st.from_regex(r"[0-9]{1,3}", fullmatch=True),
)
NAME = st.lists(WORD, min_size=1, max_size=8).map(" ".join)
THOUGHT = st.from_regex(r"[ !#-9;-Z^-~]{1,240}", fullmatch=True)


@pytest.mark.parametrize("world", WORLDS)
@given(data=st.data())
def test_whatever_the_grammar_allows_is_read_as_one_known_action(
    world: str, data: st.DataObject
) -> None:
    """The reader must see in a constrained reply exactly what the grammar put there."""
    rules = load_manual(world).actions
    chosen = data.draw(st.sampled_from(rules))
    action = chosen.syntax.format(**{name: data.draw(NAME) for name in chosen.parameters})
    thought = data.draw(THOUGHT)
    assert re.fullmatch(action_pattern(syntaxes(world)), action)
    for text in (
        f"Thought: {thought}\nAction: {action}",
        f"Action: {action}",
        json.dumps({"thought": thought, "action": action}),
    ):
        assert fits(text, syntaxes(world))
        read = read_reply(text, {rule.syntax.split()[0] for rule in rules}).action
        assert read == action
        assert chosen.pattern.match(read)
