"""The PDDL this engine reads, and what it refuses by name."""

from __future__ import annotations

import pytest

from rpms.envs.alfworld.pddl import PddlError, read_domain, read_form, read_problem
from rpms.envs.alfworld.world import Ground, Operator, State

DOMAIN = """(define (domain d)
 (:requirements :adl :typing)
 (:types place thing - object box - thing)
 (:predicates (at ?p - place) (in ?t - thing ?p - place) (lit ?t - thing) (near ?a ?b) (seen ?p))
 (:action go :parameters (?from - place ?to - place) :precondition (and (at ?from) (near ?from ?to))
   :effect (and (not (at ?from)) (at ?to)))
 (:action flip :parameters (?t - thing)
   :precondition (exists (?p - place) (and (at ?p) (in ?t ?p)))
   :effect (and (when (lit ?t) (not (lit ?t))) (when (not (lit ?t)) (lit ?t))))
 (:action note :parameters (?p - place ?t - thing)
   :precondition (and (at ?p) (or (lit ?t) (not (in ?t ?p)))) :effect (and (seen ?p)))
 ADDED
)"""
PROBLEM = """(define (problem p) (:domain d)
 (:objects here there far - place lamp - thing crate - box)
 (:init (at here) (near here there) (near there here) (near here here)
        (in lamp there) (in crate far))
 (:goal (and (exists (?t - thing) (lit ?t)))))"""


def world(added: str = "", problem: str = PROBLEM) -> Ground:
    domain = read_domain(DOMAIN.replace("ADDED", added))
    return Ground(domain, read_problem(problem, domain))


def operators(rules: Ground, state: State) -> dict[str, Operator]:
    found = [rules.operator(*key) for key in state.applicable()]
    return {one.order[1]: one for one in found if one}


def test_what_can_be_done_and_what_it_changes() -> None:
    rules = world()
    state = State(rules)
    # Going from here to here would change nothing, so it is no operator at all.
    assert set(operators(rules, state)) == {
        "(go here there)", "(note here lamp)", "(note here crate)"
    }  # fmt: skip
    assert not state.won()
    state.apply(operators(rules, state)["(go here there)"])
    assert set(operators(rules, state)) == {
        "(go there here)", "(flip lamp)", "(note there crate)"
    }  # fmt: skip
    flip = operators(rules, state)["(flip lamp)"]
    # Both changes are reported; only the one whose condition holds is made.
    assert flip.added == flip.removed == (("lit", ("lamp",)),)
    state.apply(flip)
    assert state.won()
    assert "(note there lamp)" in operators(rules, state)
    state.apply(flip)
    assert not state.won()


def test_two_states_of_one_game_are_apart() -> None:
    rules = world()
    one, other = State(rules), State(rules)
    one.apply(operators(rules, one)["(go here there)"])
    assert ("there",) in one.relations["at"].rows and ("here",) in other.relations["at"].rows
    assert set(operators(rules, other)) == set(operators(rules, State(rules)))


def test_what_can_never_be_is_not_reported_as_changed() -> None:
    added = """(:action wipe :parameters (?t - thing) :precondition (at here)
                 :effect (and (not (lit ?t)) (seen here)))"""
    rules = world(added)
    found = operators(rules, State(rules))
    assert found["(wipe lamp)"].removed == (("lit", ("lamp",)),)
    assert found["(wipe crate)"].removed == ()  # nobody gets to where it is


def test_a_type_nobody_declared_has_no_objects() -> None:
    """The official rules have one by a slip of the pen: ``?l - location, ?r - receptacle``."""
    added = """(:action spot :parameters (?t - thing)
                 :precondition (exists (?p - place, ?q - place) (in ?t ?p))
                 :effect (and (lit ?t)))"""
    rules = world(added)
    assert not any("spot" in name for name in operators(rules, State(rules)))


def test_equality_and_types() -> None:
    added = """(:action pair :parameters (?a - box ?b - thing) :precondition (not (= ?a ?b))
                 :effect (and (lit ?a)))"""
    rules = world(added)
    found = [name for name in operators(rules, State(rules)) if name.startswith("(pair")]
    assert found == ["(pair crate lamp)"]


def test_a_goal_out_of_reach_is_refused() -> None:
    with pytest.raises(PddlError, match="never be met"):
        world(problem=PROBLEM.replace("(lit ?t)", "(and (lit ?t) (in ?t far))"))


@pytest.mark.parametrize(
    ("added", "says"),
    [
        (":parameters () :precondition (forall (?p - place) (seen ?p)) :effect (seen here)",
         r"\(forall"),
        (":parameters () :precondition (not (exists (?p - place) (seen ?p))) :effect (seen here)",
         r"a negated \(exists"),
        (":parameters () :precondition (imply (seen here) (at here)) :effect (seen here)",
         r"\(imply"),
        (":parameters () :precondition () :effect (forall (?p - place) (seen ?p))", r"\(forall"),
        (":parameters () :effect (when (exists (?p) (at ?p)) (lit lamp))", r"\(when \(exists"),
        (":parameters (?p - (either place thing)) :effect (seen ?p)", "typed names"),
        (":parameters () :precondition (at here there) :effect (seen here)", r"\(at"),
        (":parameters () :precondition (flying here) :effect (seen here)", "flying"),
        (":parameters () :vars () :effect (seen here)", ":vars"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_by_name(added: str, says: str) -> None:
    with pytest.raises(PddlError, match=says):
        world(f"(:action x {added})")
    with pytest.raises(PddlError, match=":derived"):
        world("(:derived (seen ?p) (at ?p))")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("(at here)", "(at nowhere)", "nowhere is not declared"),
        ("(:domain d)", "(:domain e)", "another domain"),
        ("(lit ?t)))))", "(lit ?t))))", "never closed"),
        ("(:init", ")) (:init", "too many"),
        ("here there far", "here thére far", "ASCII"),
    ],
)
def test_a_problem_that_does_not_fit_is_refused(old: str, new: str, says: str) -> None:
    assert old in PROBLEM
    with pytest.raises(PddlError, match=says):
        world(problem=PROBLEM.replace(old, new))


def test_brackets_comments_and_case() -> None:
    assert read_form("; a comment\n(A (b ?C)\n d) ; more") == ["a", ["b", "?c"], "d"]
