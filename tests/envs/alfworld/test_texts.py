"""TextWorld's grammar format, read without TextWorld."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rpms.envs.alfworld.alfworld_package import DIALECTS, grammar
from rpms.envs.alfworld.texts import (
    Each,
    Expression,
    Listing,
    Reference,
    TypeTable,
    parse_grammar,
    parse_query,
    parse_text,
)

ODD = [
    "", " leading blank", "\nAvailable commands:\n  look: around", "a\tb", "\t\tx", "x;y", "x|y",
    '"quoted" text', 'a "b', "{o.name}", "{o.indefinite} {o.name} (in/on the {r.name})}", "#a##b#",
    "#a b(c)#, and #d#\n\n#e#", "[{r.name | at(r:room)}]", "[no list]", "{#x(o)# | p(o:thing)}",
    "{o.name | p(o:thing) & q(o:thing, r:room)} end", "a\n  b\n\n#c#\n  d", "{a.b", "tail #", "<b>",
    "// comment\ntext", "text\n// kept?\n#a#", "{o.name}\t{r.name}", "a{o.name}\n\t b", "#\ta#",
]  # fmt: skip


def plain(nodes: Any) -> list[Any]:
    """Our nodes in a form that can be compared."""

    def one(node: Any) -> Any:
        if isinstance(node, Reference):
            return ["#", node.name]
        if isinstance(node, Expression):
            return ["{}"]
        if isinstance(node, Each):
            return ["each", one(node.body), node.query]
        if isinstance(node, Listing):
            return ["list", one(node.each)]
        return node

    return [one(node) for node in nodes]


def theirs(symbols: Any) -> list[Any]:
    """TextWorld's symbols in the same form."""
    from textworld.envs.pddl import textgen

    def one(symbol: Any) -> Any:
        if isinstance(symbol, textgen.NonterminalSymbol):
            return ["#", str(symbol.symbol)]
        if isinstance(symbol, textgen.EvalSymbol):
            return ["{}"]
        if isinstance(symbol, textgen.ConditionalSymbol):
            query = parse_query(symbol.given) if symbol.given else None
            return ["each", one(symbol.expression), query]
        if isinstance(symbol, textgen.ListSymbol):
            return ["list", one(symbol.symbol)]
        return str(symbol.symbol)

    return [one(symbol) for symbol in symbols]


@pytest.mark.engine
@pytest.mark.parametrize("source", ODD)
def test_texts_are_read_as_textworld_reads_them(source: str, stock_textworld: None) -> None:
    from textworld.envs.pddl import textgen

    parsed = textgen._parse_and_convert(source, rule_name="symbols")
    assert plain(parse_text(source)) == theirs(parsed)


@pytest.mark.engine
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_whole_grammar_is_read_as_textworld_reads_it(
    dialect: Any, stock_textworld: None
) -> None:
    from textworld.envs.pddl import logic, textgen

    actions, rules = logic._parse_and_convert(grammar(dialect), rule_name="pddlStart")
    ours = parse_grammar(grammar(dialect))
    assert list(ours.rules) == list(rules._rules)
    for name, alternatives in rules._rules.items():
        for mine, other in zip(ours.rules[name], alternatives, strict=True):
            assert plain(mine.text) == theirs(other.rhs)
            condition = parse_query(other.condition) if other.condition else None
            assert mine.condition == condition
    assert list(ours.actions) == list(actions)
    for name, action in actions.items():
        for mine, source in (
            (ours.actions[name].command, action.template),
            (ours.actions[name].feedback, action.feedback_rule),
        ):
            parsed = textgen._parse_and_convert(source, rule_name="symbols")
            assert plain(mine) == theirs(parsed)


@pytest.mark.engine
def test_queries_and_types_are_textworlds(stock_textworld: None) -> None:
    from textworld.logic import Rule, Type, TypeHierarchy

    for source in ("p(a: t, b')", " !p(x:y) & q() ", "not_on(o:object,r:receptacle)&q( a )"):
        parsed = Rule.parse_conjunctive_query(source).preconditions
        assert [(p.signature, p.placeholders) for p in parse_query(source)] == [
            ((one.name, tuple(one.types)), tuple((h.name, h.type) for h in one.parameters))
            for one in parsed
        ]
    types = {"object": (), "b": ("object",), "a": ("b", "object"), "c": ("object",)}
    hierarchy = TypeHierarchy()
    for name, above in types.items():
        hierarchy.add(Type(name, above))
    table = TypeTable(types)
    for kinds in (("object",), ("object", "b"), ("a",), ("object", "object"), ()):
        expected = [
            ("p", tuple(kind.name for kind in combination))
            for combination in hierarchy.multi_subtypes([hierarchy.get(kind) for kind in kinds])
        ]
        assert list(table.covered(("p", kinds))) == expected


@pytest.mark.parametrize("source", ["", "p(", "p(a) &", "p(a:)", "p(a b)", "p(x:t, x:u)", "1 + 1"])
def test_no_query(source: str) -> None:
    with pytest.raises(ValueError, match=r"query|two types"):
        parse_query(source)


def test_a_document() -> None:
    table = json.dumps({"intro": [{"rhs": "hello {a.name}"}], "x": [{"rhs": "#intro#"}]})
    source = f'''# words
    grammar :: """{table}""";
    action Go {{ template :: "go to {{r}}"; feedback :: "#x#"; # more words
    grammar :: """
    # left out
    {{"y": [{{"condition": "p(r:room)", "rhs": "there"}}]}}
    """; }}'''
    found = parse_grammar(source)
    assert list(found.rules) == ["intro", "x", "y"]
    assert list(found.actions) == ["go"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("once upon a time", "line 1"),
        ('action go { template :: "x"; }', "go"),
        ('action go { template :: "x"; template :: "y"; feedback :: "z"; }', "second template"),
        ('grammar :: """{"a": 1}""";', "rule 'a'"),
        ('grammar :: """{"a": [{"rhs": "{o.name()}"}]}""";', "read names"),
        ('grammar :: """{"a": [{"rhs": "{1 +}"}]}""";', "no expression"),
        ('grammar :: """{"a": [{"rhs": "x", "condition": "p("}]}""";', "no query"),
        ('grammar :: """{"a": """;', "Expecting"),
    ],
)
def test_a_document_that_is_none(source: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_grammar(source)
