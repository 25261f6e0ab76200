from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.grammar import fits, reply_gbnf, reply_schema
from nodes.reply import read_reply
from rules import load_manual

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
        "word ::= ([a-zA-Z-]{1,20}|[0-9]{1,3})",
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


@pytest.mark.parametrize("world", WORLDS)
@given(data=st.data())
def test_whatever_the_grammar_allows_is_read_as_one_known_action(
    world: str, data: st.DataObject
) -> None:
    """The reader must see in a constrained reply exactly what the grammar put there."""
    rules = load_manual(world).actions
    pattern = action_pattern([rule.syntax for rule in rules])
    # "then" separates actions for the reader; the grammar cannot leave out a single word.
    action = data.draw(st.from_regex(pattern, fullmatch=True).filter(_no_then))
    thought = data.draw(st.from_regex(r"[ !#-9;-Z^-~]{1,240}", fullmatch=True))
    verbs = {rule.syntax.split()[0] for rule in rules}
    for text in (
        f"Thought: {thought}\nAction: {action}",
        f"Action: {action}",
        json.dumps({"thought": thought, "action": action}),
    ):
        assert fits(text, [rule.syntax for rule in rules])
        read = read_reply(text, verbs).action
        assert read == action.strip()
        assert any(rule.pattern.match(read) for rule in rules)


def _no_then(action: str) -> bool:
    return " then " not in action
