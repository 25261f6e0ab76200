"""Every line that a model reads, in every world, held against the simulator's truth.

What is printed about the state, about what an action needs or about where something is must be
true at that step; a line that nobody can check is a fault, too.
"""

from __future__ import annotations

import importlib
import os
import random
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, product

import pytest

from rpms.envs import get_environment
from rpms.envs.base import LiveGame, Task
from rpms.envs.telecom.adapter import all_tasks, demanded_tools
from rpms.rules import Manual, check_action, match_action
from rpms.rules.predicates import parse_predicate
from rpms.rules.wording import statement
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from tests.truth import alfworld_lines, scienceworld_lines, telecom_lines
from tests.truth.playing import PLAYERS, anything, play
from tests.truth.reading import false_lines, one_voice_faults

# Every condition with blocks, and both forms of memory; E shows the guard's offers, too.
ARMS: dict[str, RunContext] = {
    "S": RunContext.for_condition("S"),
    "B": RunContext.for_condition("B"),
    "B all rules": RunContext.for_condition("B").with_(rules_scope="all"),
    "C": RunContext.for_condition("C"),
    "C recorded": RunContext.for_condition("C").with_(memory_form="recorded"),
    "D": RunContext.for_condition("D"),
    "D recorded": RunContext.for_condition("D").with_(memory_form="recorded"),
    "D extras": RunContext.for_condition("D").with_(arbitration_extras=True),
    "D short history": RunContext.for_condition("D").with_(history=3),
    "E": RunContext.for_condition("E"),
}


def one_of_each_type(env: str, split: str, count: int | None = 12) -> list[Task]:
    world, chosen = get_environment(env), dict[str, Task]()
    for task in world.tasks(split, count):
        chosen.setdefault(world.task_name(task), task)
    return list(chosen.values())


def alfworld_faults(
    task: Task, context: RunContext, player: str, steps: int = 16
) -> Iterator[list[str]]:
    """What is false at each step of an episode."""
    before: Belief | None = None
    for moment in play("alfworld", task, context, player, steps):
        yield [
            *false_lines(moment, alfworld_lines.KINDS),
            *one_voice_faults(moment),
            *alfworld_lines.needs_hold(moment, before),
        ]
        before = alfworld_lines.truth_of(moment)


def test_alfworld_prints_no_false_line() -> None:
    """Some thousand steps: every goal type, condition, form of memory and player."""
    steps = [
        faults
        for task in one_of_each_type("alfworld", "generated_seen")
        for context in ARMS.values()
        for player in PLAYERS
        for faults in alfworld_faults(task, context, player)
    ]
    assert len(steps) > 2000
    assert [fault for faults in steps for fault in faults] == []


def telecom_faults(
    task: Task, context: RunContext, player: str, steps: int = 24
) -> Iterator[list[str]]:
    """What is false at each step of a ticket, also in what the guard would say of other calls."""
    before, rng = None, random.Random(f"veto|{task['id']}|{player}")
    for moment in play("telecom", task, context, player, steps):
        yield [
            *false_lines(moment, telecom_lines.KINDS),
            *one_voice_faults(moment),
            *telecom_lines.effects_hold(moment, before),
            *telecom_lines.vetoes_hold(moment, [anything(moment, rng) for _ in range(2)]),
        ]
        before = telecom_lines.truth_of(moment)


def tickets() -> list[Task]:
    """Training tickets of every type that together take every tool which tau2 demands of any."""
    tools = {task["id"]: demanded_tools(all_tasks("telecom")[task["source"]])
             for task in get_environment("telecom").tasks("train")}  # fmt: skip
    chosen = one_of_each_type("telecom", "train", 74)
    for task in get_environment("telecom").tasks("train"):
        if tools[task["id"]] - {*chain(*(tools[each["id"]] for each in chosen))}:
            chosen.append(task)
    return chosen


def test_telecom_prints_no_false_line() -> None:
    """Some thousand steps: every type of ticket, condition, form of memory and player."""
    steps = [
        faults
        for task in tickets()
        for context in ARMS.values()
        for player in PLAYERS
        for faults in telecom_faults(task, context, player)
    ]
    assert len(steps) > 2000
    assert [fault for faults in steps for fault in faults] == []


@pytest.fixture
def laboratory() -> Iterator[LiveGame]:
    """One running ScienceWorld, which plays all episodes of a test."""
    with closing(get_environment("scienceworld").open_game()) as game:
        yield game


def scienceworld_faults(
    game: LiveGame, task: Task, context: RunContext, player: str, steps: int
) -> Iterator[list[str]]:
    """What is false at each step of an episode."""
    for moment in play("scienceworld", task, context, player, steps, running=game):
        yield [
            *false_lines(moment, scienceworld_lines.KINDS),
            *one_voice_faults(moment),
            *scienceworld_lines.needs_hold(moment),
        ]


def scienceworld_episodes() -> Iterator[tuple[Task, RunContext, str, int]]:
    """A task of each of the 26 types with every player, and arms in turn; all arms on demand."""
    everything = bool(os.environ.get("RPMS_ALL_LINES"))
    arms, players = [*ARMS.values()], [*PLAYERS]
    tasks = one_of_each_type("scienceworld", "train_mini", count=None)
    assert len(tasks) == 26
    for (number, task), (turn, player) in product(enumerate(tasks), enumerate(players)):
        if everything:
            yield from ((task, context, player, 24) for context in arms)
        else:
            yield task, arms[(number + 3 * turn) % len(arms)], player, 8


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_scienceworld_prints_no_false_line(laboratory: LiveGame) -> None:
    """Hundreds of steps of all task types, arms and players; ``make lines`` plays thousands."""
    steps = [
        faults
        for episode in scienceworld_episodes()
        for faults in scienceworld_faults(laboratory, *episode)
    ]
    print(f"{len(steps)} steps")
    assert len(steps) > (8000 if os.environ.get("RPMS_ALL_LINES") else 500)
    assert [fault for faults in steps for fault in faults] == []


def melting() -> list[Task]:
    """A task of either type; all six on demand."""
    world = get_environment("scienceworld")
    tasks = (
        world.tasks("train_mini")
        if os.environ.get("RPMS_ALL_LINES")
        else one_of_each_type("scienceworld", "train_mini", count=None)
    )
    return [task for task in tasks if world.task_name(task).startswith("measure-melting-point")]


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_a_stale_temperature_in_scienceworld_is_found(
    laboratory: LiveGame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading that outlives the state of matter it was taken in is a false line."""
    world = get_environment("scienceworld")
    update, reading = world.update_belief, re.compile(r", (-?\d+ degrees celsius)")

    def found() -> Iterator[str]:
        for task in melting():
            for faults in scienceworld_faults(laboratory, task, ARMS["B"], "procedure", steps=30):
                yield from faults

    def stale(previous: Belief, action: str, observation: str) -> Belief:
        after = update(previous, action, observation)
        for name, states in previous["flags"].items():
            if (old := reading.search(f", {states}")) and not reading.search(
                f", {after['flags'].get(name, '')}"
            ):
                known = after["flags"].get(name, "")
                after["flags"][name] = f"{known}, {old[1]}".removeprefix(", ")
        return after

    assert [*found()] == []
    monkeypatch.setattr(type(world), "update_belief", staticmethod(stale))
    assert any(" is never " in fault and "degrees" in fault for fault in found())


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_a_place_that_is_left_behind_is_found(
    laboratory: LiveGame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in a pot goes where the pot goes, and a room is told where one is."""
    world = get_environment("scienceworld")
    update = world.update_belief

    def stale(previous: Belief, action: str, observation: str) -> Belief:
        after = update(previous, action, observation)
        return {**after, "location": previous["location"] or after["location"]}

    monkeypatch.setattr(type(world), "update_belief", staticmethod(stale))
    steps = scienceworld_faults(laboratory, melting()[0], ARMS["S"], "procedure", steps=12)
    assert any("truly in the " in fault for faults in steps for fault in faults)


def old_reason(manual: Manual, action: str, belief: Belief, answer: str = "") -> str:
    """The words that were printed once: what was missing, in the form of a fact."""
    matched = match_action(manual, action)
    names = matched[1] if matched else {}
    unmet = check_action(manual, action, belief).unmet
    violated = tuple(str(need.condition) for need in unmet)
    return "; ".join(statement(parse_predicate(text), names, manual.facts) for text in violated)


def test_a_need_printed_as_a_fact_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is worth something: put the old words back, and it fails."""
    task, context = one_of_each_type("alfworld", "generated_seen")[0], ARMS["B"]
    stage = importlib.import_module("rpms.nodes.rule_assembly")
    monkeypatch.setattr(stage, "explain_rejection", old_reason)
    faults = [fault for found in alfworld_faults(task, context, "anything") for fault in found]
    assert any("was rejected" in fault and "truly at" in fault for fault in faults)


def test_a_belief_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that outlives the change that ended it is a false line."""
    world = get_environment("alfworld")
    update = world.update_belief

    def stale(previous: Belief, action: str, observation: str) -> Belief:
        after = update(previous, action, observation)
        return {**after, "containers": {**after["containers"], **previous["containers"]}}

    monkeypatch.setattr(type(world), "update_belief", staticmethod(stale))
    faults = [
        fault
        for task in one_of_each_type("alfworld", "generated_seen")
        for found in alfworld_faults(task, ARMS["S"], "procedure")
        for fault in found
    ]
    assert any("Closed: " in fault for fault in faults)


def telecom_faults_of(condition: str, player: str) -> list[str]:
    return [fault for task in tickets() for found in telecom_faults(task, ARMS[condition], player)
            for fault in found]  # fmt: skip


def test_a_switch_that_is_told_as_it_was_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phone whose state outlives what was switched: the state block is false."""
    world = get_environment("telecom")
    update = world.update_belief

    def stale(previous: Belief, action: str, observation: str) -> Belief:
        after = update(previous, action, observation)
        phone = previous["flags"].get("phone") or after["flags"].get("phone", "")
        return {**after, "flags": {**after["flags"], "phone": phone}}

    monkeypatch.setattr(type(world), "update_belief", staticmethod(stale))
    faults = telecom_faults_of("S", "procedure")
    assert any("'airplane mode is on' is not so: Phone: " in fault for fault in faults)


def test_evidence_that_is_told_as_a_fact_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old words: what a call lacks as a statement, and unseen bills as overdue ones."""
    stage = importlib.import_module("rpms.nodes.rule_assembly")
    monkeypatch.setattr(stage, "explain_rejection", old_reason)
    assert any("was rejected" in fault and "is not so" in fault
               for fault in telecom_faults_of("B", "mistaken"))  # fmt: skip
    conditions = importlib.import_module("rpms.rules.things")
    monkeypatch.setattr(conditions, "UNSHOWN", "")
    assert any("met in truth: veto of" in fault for fault in telecom_faults_of("B", "anything"))


def test_a_snippet_that_switches_back_what_is_right_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without rules only the entry's own record tells that a switch is as it should be."""
    world = get_environment("telecom")
    monkeypatch.setattr(type(world), "steps_done", lambda self, entry, belief: set())
    assert any("would switch back what is right: From here" in fault
               for fault in telecom_faults_of("C", "procedure"))  # fmt: skip
