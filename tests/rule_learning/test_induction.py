"""Induction on made-up actions whose conditions are known."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from rpms.rule_learning.evidence import Change, CommandTemplate, Evidence, ObservedUse, SignedAtom
from rpms.rule_learning.induction import changes, cover, induce, make_tables, survivors
from rpms.rules.predicates import Predicate
from rpms.vocabulary.belief import Belief, empty_belief

SYNTAX = "do {object} with {place}"
ATOMS = len(CommandTemplate(SYNTAX).atoms)
literals = st.builds(SignedAtom, st.integers(0, ATOMS - 1), st.booleans())
hidden = st.lists(literals, min_size=1, max_size=4, unique_by=lambda literal: literal.atom)
masks = st.integers(0, 2**ATOMS - 1)


def use(
    true: int, false: int, rule: list[SignedAtom], kinds: tuple[str, ...] = ("a", "b")
) -> ObservedUse:
    """A use that works if and only if the hidden literals hold."""
    probe = ObservedUse(true, false, kinds, False)
    return probe._replace(worked=all(probe.grants(literal) for literal in rule))


def state_for(rule: list[SignedAtom], base: int, broken: SignedAtom | None = None) -> int:
    """Which atoms are true where the rule holds, or all of it but one literal."""
    for literal in rule:
        holds = literal.positive != (literal == broken)
        base = base | 1 << literal.atom if holds else base & ~(1 << literal.atom)
    return base


def experience(rule: list[SignedAtom], bases: list[int], unknown: list[int]) -> Evidence:
    """Uses around the rule: holding, and with each literal broken; some atoms are unknown.

    The atoms of the rule itself are known: an experiment is made where they are.
    """
    evidence = Evidence(CommandTemplate(SYNTAX))
    own = sum(1 << literal.atom for literal in rule)
    everything = 2**ATOMS - 1
    for base, veiled in zip(bases, unknown, strict=True):
        veiled &= ~own
        for broken in (None, *rule):
            for flipped in (base, ~base & everything):
                true = state_for(rule, flipped, broken)
                evidence.uses[use(true & ~veiled, ~true & everything & ~veiled, rule)] += 1
    return evidence


@settings(deadline=None, max_examples=30)
@given(hidden, st.lists(masks, min_size=3, max_size=6), st.data())
def test_a_hidden_rule_is_recovered(
    rule: list[SignedAtom], bases: list[int], data: st.DataObject
) -> None:
    unknown = data.draw(st.lists(masks, min_size=len(bases), max_size=len(bases)))
    learned = induce(experience(rule, bases, unknown))
    assert learned is not None
    assert set(learned.conditions) == set(rule)
    assert not learned.unexplained


@settings(deadline=None, max_examples=30)
@given(hidden, st.lists(st.tuples(masks, masks), min_size=1, max_size=30))
def test_a_true_condition_is_never_deleted(
    rule: list[SignedAtom], states: list[tuple[int, int]]
) -> None:
    evidence = Evidence(CommandTemplate(SYNTAX))
    for true, veiled in states:
        everything = 2**ATOMS - 1
        true = state_for(rule, true) if true % 2 else true
        veiled_use = use(true & ~veiled, ~true & everything & ~veiled, rule)
        holds = use(true, ~true & everything, rule).worked
        evidence.uses[veiled_use._replace(worked=holds)] += 1
    alive = survivors(evidence)
    for literal in rule:
        seen = [u for u in evidence.accepted if u.grants(literal)]
        assert literal in alive or len(seen) * 50 <= len(evidence.accepted)


def test_one_contradiction_refutes_a_condition() -> None:
    evidence = Evidence(CommandTemplate(SYNTAX))
    evidence.uses[ObservedUse(0b11, 0, ("a", "b"), True)] += 99
    assert SignedAtom(0, True) in survivors(evidence)
    evidence.uses[ObservedUse(0b10, 0b01, ("a", "b"), True)] += 1
    alive = survivors(evidence)
    assert SignedAtom(0, True) not in alive and SignedAtom(1, True) in alive


def test_a_refusal_is_explained_by_the_literal_that_explains_most() -> None:
    evidence = Evidence(CommandTemplate(SYNTAX))
    alive = [SignedAtom(0, True), SignedAtom(1, True), SignedAtom(2, True)]
    evidence.uses[ObservedUse(0b001, 0b110, ("a", "b"), False)] += 3
    evidence.uses[ObservedUse(0b101, 0b010, ("a", "b"), False)] += 3
    evidence.uses[ObservedUse(0b110, 0b001, ("a", "b"), False)] += 1
    assert cover(evidence, alive) == [SignedAtom(0, True), SignedAtom(1, True)]
    assert induce(evidence) is None, "nothing is said of an action that never worked"


def test_an_effect_is_a_change_and_not_a_discovery() -> None:
    evidence = Evidence(CommandTemplate("open {place}"))
    numbers = {atom.name: at for at, atom in enumerate(evidence.template.atoms)}
    opened, at = 1 << numbers["open"], 1 << numbers["at"]
    evidence.uses[ObservedUse(0, opened, ("a",), True)] += 2
    # Being there was unknown before and is known now; the door was shut and is open.
    evidence.changes[Change(0, opened, opened | at, 0)] += 2
    learned = induce(evidence)
    assert learned is not None
    assert learned.effects == [SignedAtom(numbers["open"], True)]


def test_one_of_several_ways() -> None:
    evidence = Evidence(CommandTemplate("examine {thing}"))
    numbers = {atom.name: at for at, atom in enumerate(evidence.template.atoms)}
    at, holding = 1 << numbers["at"], 1 << numbers["holding"]
    evidence.uses[ObservedUse(at, holding, ("a",), True)] += 3
    evidence.uses[ObservedUse(holding, at, ("b",), True)] += 3
    evidence.uses[ObservedUse(0, at | holding, ("a",), False)] += 3
    evidence.uses[ObservedUse(0, at | holding, ("b",), False)] += 3
    learned = induce(evidence)
    assert learned is not None
    assert learned.alternatives == [
        SignedAtom(numbers["at"], True),
        SignedAtom(numbers["holding"], True),
    ]
    assert not learned.conditions and not learned.unexplained


def test_a_state_that_was_there_after_every_use_is_an_effect() -> None:
    template = CommandTemplate("fill {device}")
    filled = Predicate(True, "state", ("device", "filled"))
    before = len(template.atoms)
    # What no predicate can hold is no state.
    flags = {"task": "Fill it, then wait.", "lamp 1": "filled", "pot 1": "12 degrees"}
    template.add_states(Belief(**{**empty_belief(), "flags": flags}))
    assert template.atoms[before:] == [filled]
    number = template.atoms.index(filled)
    evidence = Evidence(template)
    evidence.uses[ObservedUse(0, 0, ("lamp",), True)] += 2
    evidence.changes[Change(0, 0, 1 << number, 0)] += 2
    assert changes(evidence) == [SignedAtom(number, True)]
    # Known once before, it may have been found out rather than brought about.
    evidence.changes[Change(1 << number, 0, 1 << number, 0)] += 1
    assert changes(evidence) == []


def test_a_kind_is_ruled_out_only_beside_kinds_that_work() -> None:
    accepted = Counter({("apple", "microwave"): 2, ("egg", "microwave"): 1})
    assert make_tables(accepted, Counter(), 2).works(("pen", "bed")) is True, "no refusal, no table"
    refused = Counter([("book", "microwave"), ("apple", "shelf"), ("pen", "bed")])
    tables = make_tables(accepted, refused, 2)
    assert tables.works(("egg", "microwave")) is True
    assert tables.works(("book", "microwave")) is False
    assert tables.works(("egg", "shelf")) is False
    # The pen was only tried with the bed: either may have been at fault.
    assert tables.works(("pen", "microwave")) is None
    assert tables.single[0]["apple"] == (2, 0) and tables.single[1]["shelf"] == (0, 1)


def test_pairs_where_every_kind_works_somewhere() -> None:
    accepted = Counter([("apple", "fridge"), ("pillow", "sofa")])
    refused = Counter({("apple", "sofa"): 2, ("pillow", "fridge"): 1})
    tables = make_tables(accepted, refused, 2)
    assert tables.pair[("apple", "sofa")] == (0, 2)
    assert tables.works(("pillow", "sofa")) is True
    assert tables.works(("apple", "sofa")) is False
    assert tables.works(("apple", "bed")) is None
    assert not tables.unexplained


def test_what_kinds_cannot_explain_is_counted() -> None:
    tables = make_tables(Counter({("lamp",): 3}), Counter({("lamp",): 2}), 1)
    assert tables.unexplained == 2
